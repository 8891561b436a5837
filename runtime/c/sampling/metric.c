#include "metric.h"

#include <math.h>

#include "random.h"

/* Of matrices: rows of whole groups, one after the other. */
static double *row(double *matrix, const metric *m, int64_t i) { return matrix + i * m->stride; }

static int make_scale(metric *m) {
  if (m->kind != METRIC_DENSE) {
    for (int64_t i = 0; i < m->n; ++i) {
      if (!(m->inverse[i] > 0 && isfinite(m->inverse[i]))) return -1;
      m->scale[i] = 1 / sqrt(m->inverse[i]);
    }
    return 1;
  }
  for (int64_t i = 0; i < m->n; ++i) {
    double *li = row(m->scale, m, i);
    const double *source = row(m->inverse, m, i);
    memset(li, 0, (size_t)m->stride * sizeof(double));
    for (int64_t j = 0; j <= i; ++j) {
      const double *lj = row(m->scale, m, j);
      double sum = source[j] - lanes_dot(li, lj, groups_of(j)); /* beyond j one of them has zeros */
      if (i == j && !(sum > 0 && isfinite(sum))) return -1;
      li[j] = i == j ? sqrt(sum) : sum / lj[j];
    }
  }
  return 1;
}

int metric_begin(metric *m, vector_store *store, int64_t n, int32_t kind, const double *inverse) {
  m->n = n;
  m->kind = kind;
  m->stride = groups_of(n) * LANES;
  m->count = 0;
  int64_t size = kind == METRIC_DENSE ? n * m->stride : n;
  m->inverse = vector_new(store, size);
  m->scale = vector_new(store, size);
  m->mean = vector_new(store, n);
  m->squares = vector_new(store, size);
  m->difference = vector_new(store, n);
  if (!m->inverse || !m->scale || !m->mean || !m->squares || !m->difference) return 0;
  for (int64_t i = 0; i < n; ++i) {
    if (kind != METRIC_DENSE)
      m->inverse[i] = inverse ? inverse[i] : 1;
    else if (inverse)
      memcpy(row(m->inverse, m, i), inverse + i * n, (size_t)n * sizeof(double));
    else
      row(m->inverse, m, i)[i] = 1;
  }
  return make_scale(m);
}

/* p of the covariance M: normal numbers over sqrt(M^-1), or L^-T of them where M^-1 = L L^T. */
void metric_draw_momentum(const metric *m, ulam_pcg *generator, double *p) {
  for (int64_t i = 0; i < m->n; ++i) p[i] = random_standard_normal(&generator->interface);
  if (m->kind != METRIC_DENSE) {
    for (int64_t i = 0; i < m->n; ++i) p[i] *= m->scale[i];
    return;
  }
  for (int64_t i = m->n - 1; i >= 0; --i) {
    const double *l = row(m->scale, m, i);
    double solved = p[i] /= l[i];
    for (int64_t j = 0; j < i; ++j) p[j] -= l[j] * solved;
  }
}

/* Four rows at a time: each number of `p` is loaded once for them. */
ULAM_CLONES void metric_multiply(const metric *m, const double *p, double *v) {
  const int64_t groups = groups_of(m->n);
  int64_t i = 0;
  for (; i + 4 <= m->n; i += 4) {
    const lanes *a = in_lanes(m->inverse + i * m->stride), *b = a + groups, *c = b + groups, *d = c + groups;
    lanes sum_a = {0}, sum_b = {0}, sum_c = {0}, sum_d = {0};
    for (int64_t k = 0; k < groups; ++k) {
      const lanes x = in_lanes(p)[k];
      sum_a += a[k] * x;
      sum_b += b[k] * x;
      sum_c += c[k] * x;
      sum_d += d[k] * x;
    }
    v[i] = SUM_OF_LANES(sum_a);
    v[i + 1] = SUM_OF_LANES(sum_b);
    v[i + 2] = SUM_OF_LANES(sum_c);
    v[i + 3] = SUM_OF_LANES(sum_d);
  }
  for (; i < m->n; ++i) {
    const lanes *a = in_lanes(m->inverse + i * m->stride);
    lanes sum = {0};
    for (int64_t k = 0; k < groups; ++k) sum += a[k] * in_lanes(p)[k];
    v[i] = SUM_OF_LANES(sum);
  }
}

ULAM_CLONES static void learn_diagonal(double *mean, double *squares, const double *q, int64_t groups, double count) {
  for (int64_t k = 0; k < groups; ++k) {
    const lanes x = in_lanes(q)[k], before = x - in_lanes(mean)[k];
    const lanes now = in_lanes(mean)[k] + before / count;
    to_lanes(mean)[k] = now;
    to_lanes(squares)[k] += before * (x - now);
  }
}

/* row += factor * x */
ULAM_CLONES static void add_scaled(double *to, const double *x, int64_t groups, double factor) {
  for (int64_t k = 0; k < groups; ++k) to_lanes(to)[k] += factor * in_lanes(x)[k];
}

void metric_learn(metric *m, const double *q) {
  m->count += 1;
  if (m->kind != METRIC_DENSE) {
    learn_diagonal(m->mean, m->squares, q, groups_of(m->n), m->count);
    return;
  }
  double share = (m->count - 1) / m->count; /* (x - old mean) (x - new mean)' is this times (x - old mean) squared */
  for (int64_t i = 0; i < m->n; ++i) {
    m->difference[i] = q[i] - m->mean[i];
    m->mean[i] += m->difference[i] / m->count;
  }
  for (int64_t i = 0; i < m->n; ++i) /* up to the diagonal */
    add_scaled(row(m->squares, m, i), m->difference, i / LANES + 1, share * m->difference[i]);
}

int metric_update(metric *m) {
  const double n = m->count, kept = n / (n + 5), towards = 1e-3 * 5 / (n + 5);
  for (int64_t i = 0; i < m->n; ++i) {
    if (m->kind != METRIC_DENSE) {
      m->inverse[i] = kept * (m->squares[i] / (n - 1)) + towards;
      continue;
    }
    for (int64_t j = 0; j <= i; ++j) {
      double found = kept * (row(m->squares, m, i)[j] / (n - 1)) + (i == j ? towards : 0);
      row(m->inverse, m, i)[j] = row(m->inverse, m, j)[i] = found;
    }
  }
  m->count = 0;
  memset(m->mean, 0, (size_t)m->n * sizeof(double));
  memset(m->squares, 0, (size_t)(m->kind == METRIC_DENSE ? m->n * m->stride : m->n) * sizeof(double));
  if (make_scale(m) == 1) return 1;
  if (m->kind != METRIC_DENSE) return -1;
  for (int64_t i = 0; i < m->n; ++i) /* rounding has made it indefinite: the variances alone are not */
    for (int64_t j = 0; j < m->n; ++j)
      if (i != j) row(m->inverse, m, i)[j] = 0;
  return make_scale(m);
}

void metric_read(const metric *m, double *inverse) {
  if (m->kind != METRIC_DENSE) {
    memcpy(inverse, m->inverse, (size_t)m->n * sizeof(double));
    return;
  }
  for (int64_t i = 0; i < m->n; ++i)
    memcpy(inverse + i * m->n, row(m->inverse, m, i), (size_t)m->n * sizeof(double));
}
