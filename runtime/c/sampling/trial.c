#include "trial.h"

#include "nuts.h"

int32_t ulam_try_leapfrog(ulam_context *ctx, void *entry, void *bound, int64_t n, int64_t metric,
                          const double *inverse, double step, int64_t steps, double *q, double *p, double *energies) {
  vector_store store = {0};
  hamiltonian system = {.ctx = ctx, .entry = entry, .bound = bound, .n = n};
  double *vectors[5];
  int32_t status = ULAM_FATAL;
  for (int i = 0; i < 5; ++i)
    if ((vectors[i] = vector_new(&store, n)) == NULL) goto end;
  if (metric_begin(&system.metric, &store, n, (int32_t)metric, inverse) != 1) goto end;
  phase_point z = {vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], 0, 0};
  memcpy(z.q, q, (size_t)n * sizeof(double));
  memcpy(z.p, p, (size_t)n * sizeof(double));
  z.lp = evaluate(&system, z.q, z.g);
  set_momentum(&system, &z);
  energies[0] = z.energy;
  for (int64_t i = 1; i <= steps; ++i) {
    leapfrog(&system, &z, z.q, z.p, z.g, z.v, step);
    energies[i] = z.energy;
  }
  memcpy(q, z.q, (size_t)n * sizeof(double));
  memcpy(p, z.p, (size_t)n * sizeof(double));
  status = system.failed.count ? ULAM_REJECT : ULAM_OK;
end:
  vectors_free(&store);
  return status;
}

int64_t ulam_try_turns(int64_t n, int64_t depth, const double *momenta, const double *velocities) {
  vector_store store = {0};
  const int64_t points = (int64_t)1 << depth;
  int64_t found = -1;
  tree *trees = (tree *)vector_new(&store, points * (int64_t)(sizeof(tree) / sizeof(double)));
  if (trees == NULL) goto end;
  for (int64_t i = 0; i < points; ++i) {
    tree *t = &trees[i];
    t->p_begin = vector_new(&store, n);
    t->v_begin = vector_new(&store, n);
    t->momenta = vector_new(&store, n);
    if (!t->p_begin || !t->v_begin || !t->momenta) goto end;
    memcpy(t->p_begin, momenta + i * n, (size_t)n * sizeof(double));
    memcpy(t->v_begin, velocities + i * n, (size_t)n * sizeof(double));
    t->p_end = t->p_begin;
    t->v_end = t->v_begin;
  }
  found = 0;
  for (int64_t level = 1; level <= depth && found == 0; ++level)
    for (int64_t i = 0; i < points && found == 0; i += (int64_t)1 << level) {
      tree *a = &trees[i], *b = &trees[i + ((int64_t)1 << (level - 1))];
      if (turns(a, b, level == 1, groups_of(n), a->momenta)) found = level;
      a->p_end = b->p_end;
      a->v_end = b->v_end;
    }
end:
  vectors_free(&store);
  return found;
}

int32_t ulam_try_metric(int64_t n, int64_t kind, int64_t count, const double *draws, double *inverse) {
  vector_store store = {0};
  metric m;
  double *q = vector_new(&store, n);
  int32_t status = q == NULL ? 0 : metric_begin(&m, &store, n, (int32_t)kind, NULL);
  if (status == 1) {
    for (int64_t i = 0; i < count; ++i) {
      memcpy(q, draws + i * n, (size_t)n * sizeof(double));
      metric_learn(&m, q);
    }
    status = metric_update(&m);
    metric_read(&m, inverse);
  }
  vectors_free(&store);
  return status;
}

void ulam_try_generator(const uint64_t words[4], uint64_t jumps, int64_t count, uint64_t *bits, double *uniform) {
  ulam_pcg generator;
  ulam_pcg_begin(&generator, words);
  ulam_pcg_jump(&generator, jumps);
  for (int64_t i = 0; i < count; ++i) bits[i] = ulam_pcg_next(&generator);
  for (int64_t i = 0; i < count; ++i) uniform[i] = ulam_pcg_uniform(&generator);
}
