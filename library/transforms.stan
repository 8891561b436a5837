/* Constraining transforms. Stan Reference Manual, "Constraint transforms". For each constraint X:
 *
 *   X_constrain(u, ...)           the value
 *   X_log_jacobian(u, ...)        log absolute Jacobian determinant of X_constrain at u
 *   X_unconstrain(x, ...)         the inverse of X_constrain
 *   X_check(x, ...)               requires that x satisfies the constraint
 *
 * Bounds and offset-multiplier are functions of scalars, applied element by element. An infinite bound is none. */

/* ---- lower bound: exp(u) + lb */

real lower_bound_constrain(real u, real lb) { return lb == negative_infinity() ? u : exp(u) + lb; }

real lower_bound_log_jacobian(real u, real lb) { return lb == negative_infinity() ? 0 : u; }

real lower_bound_unconstrain(real x, real lb) {
  require_at_least(x, lb);
  return lb == negative_infinity() ? x : log(x - lb);
}

void lower_bound_check(real x, real lb) {
  require_at_least(x, lb);
}

/* ---- upper bound: ub - exp(u) */

real upper_bound_constrain(real u, real ub) { return ub == positive_infinity() ? u : ub - exp(u); }

real upper_bound_log_jacobian(real u, real ub) { return ub == positive_infinity() ? 0 : u; }

real upper_bound_unconstrain(real x, real ub) {
  require_at_most(x, ub);
  return ub == positive_infinity() ? x : log(ub - x);
}

void upper_bound_check(real x, real ub) {
  require_at_most(x, ub);
}

/* ---- both bounds: lb + (ub - lb) * inv_logit(u) */

/* -abs(u), with a slope at 0 that is right for the functions below. */
real minus_magnitude(real u) { return u < 0 ? u : -u; }

/* inv_logit in terms of exp(-abs(u)), which the Jacobian has too: it is computed once. */
real inv_logit_of_bounded(real u) {
  real e = exp(minus_magnitude(u));
  return (u < 0 ? e : 1) / (1 + e);
}

real lower_upper_bound_constrain(real u, real lb, real ub) {
  require_less(lb, ub);
  return lb == negative_infinity() ? upper_bound_constrain(u, ub)
         : ub == positive_infinity() ? exp(u) + lb
         : inv_logit_of_bounded(u) * (ub - lb) + lb;
}

real lower_upper_bound_log_jacobian(real u, real lb, real ub) {
  return lb == negative_infinity() ? upper_bound_log_jacobian(u, ub)
         : ub == positive_infinity() ? u
         : log(ub - lb) + minus_magnitude(u) - 2 * log1p(exp(minus_magnitude(u)));
}

real lower_upper_bound_unconstrain(real x, real lb, real ub) {
  require_in_interval(x, lb, ub);
  return lb == negative_infinity() ? upper_bound_unconstrain(x, ub)
         : ub == positive_infinity() ? log(x - lb)
         : log((x - lb) / (ub - x));
}

void lower_upper_bound_check(real x, real lb, real ub) {
  require_at_least(x, lb);
  require_at_most(x, ub);
}

/* ---- offset and multiplier: offset + multiplier * u */

real offset_multiplier_constrain(real u, real mu, real sigma) {
  require_finite(mu);
  require_positive_finite(sigma);
  return mu + sigma * u;
}

real offset_multiplier_log_jacobian(real u, real mu, real sigma) { return log(sigma); }

real offset_multiplier_unconstrain(real x, real mu, real sigma) {
  require_finite(mu);
  require_positive_finite(sigma);
  return (x - mu) / sigma;
}

/* ---- ordered: the first as it is, then positive steps */

vector ordered_constrain(vector u) {
  int K = num_elements(u);
  vector[K] x;
  if (K > 0) x[1] = u[1];
  for (k in 2:K) x[k] = x[k - 1] + exp(u[k]);
  return x;
}

real ordered_log_jacobian(vector u) {
  real total = 0;
  for (k in 2:num_elements(u)) total += u[k];
  return total;
}

vector ordered_unconstrain(vector x) {
  require_ordered(x);
  int K = num_elements(x);
  vector[K] u;
  if (K > 0) u[1] = x[1];
  for (k in 2:K) u[k] = log(x[k] - x[k - 1]);
  return u;
}

void ordered_check(vector x) {
  require_ordered(x);
}

/* ---- positive_ordered: positive steps from 0 */

vector positive_ordered_constrain(vector u) {
  int K = num_elements(u);
  vector[K] x;
  if (K > 0) x[1] = exp(u[1]);
  for (k in 2:K) x[k] = x[k - 1] + exp(u[k]);
  return x;
}

real positive_ordered_log_jacobian(vector u) { return sum(u); }

vector positive_ordered_unconstrain(vector x) {
  require_positive_ordered(x);
  int K = num_elements(x);
  vector[K] u;
  if (K > 0) u[1] = log(x[1]);
  for (k in 2:K) u[k] = log(x[k] - x[k - 1]);
  return u;
}

void positive_ordered_check(vector x) {
  require_positive_ordered(x);
}

/* ---- sum_to_zero_vector: an orthonormal basis of the vectors that sum to zero */

vector sum_to_zero_constrain(vector u) {
  int K = num_elements(u) + 1;
  vector[K] x;
  real total = 0;
  x[K] = 0;
  for (i in 1:(K - 1)) {
    int n = K - i;
    real w = u[n] / sqrt(n * (n + 1.0));
    x[n + 1] = total - n * w;
    total += w;
  }
  x[1] = total;
  return x;
}

real sum_to_zero_log_jacobian(vector u) { return 0; }

vector sum_to_zero_unconstrain(vector x) {
  require_zero_sum(sum(x));
  int K = num_elements(x);
  vector[K - 1] u;
  real total = 0;
  for (i in 1:(K - 1)) {
    int n = K - i;
    real w = (total - x[n + 1]) / n;
    u[n] = w * sqrt(n * (n + 1.0));
    total += w;
  }
  return u;
}

void sum_to_zero_check(vector x) {
  require_nonempty(num_elements(x));
  require_zero_sum(sum(x));
}

/* ---- sum_to_zero_matrix: a basis of vectors that sum to zero, whose last entry balances the others, along both dimensions */

vector balanced_constrain(vector u) {
  int n = num_elements(u);
  vector[n + 1] x;
  real above = 0;
  real total = 0;
  for (k in 1:n) {
    int i = n + 1 - k;
    real w = u[i] / sqrt(i * (i + 1.0));
    x[i] = i * w - above;
    total += x[i];
    above += w;
  }
  x[n + 1] = 0 - total;
  return x;
}

vector balanced_unconstrain(vector x) {
  int n = num_elements(x) - 1;
  vector[n] u;
  real above = 0;
  for (k in 1:n) {
    int i = n + 1 - k;
    real w = (x[i] + above) / i;
    u[i] = w * sqrt(i * (i + 1.0));
    above += w;
  }
  return u;
}

matrix sum_to_zero_matrix_constrain(vector u, int N, int M) {
  matrix[N, M - 1] half;
  matrix[N, M] x;
  for (j in 1:(M - 1)) half[, j] = balanced_constrain(segment(u, (j - 1) * (N - 1) + 1, N - 1));
  for (i in 1:N) x[i] = balanced_constrain(half[i]')';
  return x;
}

real sum_to_zero_matrix_log_jacobian(vector u, int N, int M) { return 0; }

vector sum_to_zero_matrix_unconstrain(matrix x) {
  int N = rows(x);
  int M = cols(x);
  matrix[N, M - 1] half;
  vector[(N - 1) * (M - 1)] u;
  for (i in 1:N) half[i] = balanced_unconstrain(x[i]')';
  for (j in 1:(M - 1)) u[((j - 1) * (N - 1) + 1):(j * (N - 1))] = balanced_unconstrain(half[, j]);
  return u;
}

void sum_to_zero_matrix_check(matrix x) {
  for (i in 1:rows(x)) require_zero_sum(sum(x[i]));
  for (j in 1:cols(x)) require_zero_sum(sum(x[, j]));
}

/* ---- simplex: softmax of a vector that sums to zero (isometric log-ratio, since Stan 2.37) */

vector simplex_constrain(vector u) { return softmax(sum_to_zero_constrain(u)); }

real simplex_log_jacobian(vector u) {
  int K = num_elements(u) + 1;
  return 0.5 * log(K) - K * log_sum_exp(sum_to_zero_constrain(u));
}

vector simplex_unconstrain(vector x) {
  require_simplex(x);
  int K = num_elements(x);
  vector[K] log_x = log(x);
  return sum_to_zero_unconstrain(log_x - mean(log_x));
}

void simplex_check(vector x) {
  require_simplex(x);
}

/* ---- stochastic matrices: each column, or each row, a simplex; unconstrained values in column-major order */

matrix column_stochastic_matrix_constrain(vector u, int N, int M) {
  matrix[N, M] x;
  for (j in 1:M) x[, j] = simplex_constrain(segment(u, (j - 1) * (N - 1) + 1, N - 1));
  return x;
}

real column_stochastic_matrix_log_jacobian(vector u, int N, int M) {
  real total = 0;
  for (j in 1:M) total += simplex_log_jacobian(segment(u, (j - 1) * (N - 1) + 1, N - 1));
  return total;
}

vector column_stochastic_matrix_unconstrain(matrix x) {
  int N = rows(x);
  int M = cols(x);
  vector[(N - 1) * M] u;
  for (j in 1:M) u[((j - 1) * (N - 1) + 1):(j * (N - 1))] = simplex_unconstrain(x[, j]);
  return u;
}

void column_stochastic_matrix_check(matrix x) {
  for (j in 1:cols(x)) require_simplex(x[, j]);
}

matrix row_stochastic_matrix_constrain(vector u, int N, int M) {
  matrix[N, M - 1] free = to_matrix(u, N, M - 1);
  matrix[N, M] x;
  for (i in 1:N) x[i] = simplex_constrain(free[i]')';
  return x;
}

real row_stochastic_matrix_log_jacobian(vector u, int N, int M) {
  matrix[N, M - 1] free = to_matrix(u, N, M - 1);
  real total = 0;
  for (i in 1:N) total += simplex_log_jacobian(free[i]');
  return total;
}

vector row_stochastic_matrix_unconstrain(matrix x) {
  int N = rows(x);
  int M = cols(x);
  matrix[N, M - 1] free;
  for (i in 1:N) free[i] = simplex_unconstrain(x[i]')';
  return to_vector(free);
}

void row_stochastic_matrix_check(matrix x) {
  for (i in 1:rows(x)) require_simplex(x[i]);
}

/* ---- unit_vector: a point scaled to length 1; its density is that of a standard normal point */

vector unit_vector_constrain(vector u) {
  real length_squared = dot_self(u);
  require_positive_finite(length_squared);
  return u / sqrt(length_squared);
}

real unit_vector_log_jacobian(vector u) { return -0.5 * dot_self(u); }

vector unit_vector_unconstrain(vector x) {
  require_unit_length(x);
  return x;
}

void unit_vector_check(vector x) {
  require_unit_length(x);
}

/* ---- cholesky_factor_corr: canonical partial correlations tanh(u), row by row. What is left of a row's unit length
 * shrinks by sqrt(1 - tanh(u)^2) = 1 / cosh(u), which keeps its digits where tanh(u) is nearly 1. */

matrix cholesky_factor_corr_constrain(vector u, int K) {
  matrix[K, K] L = rep_matrix(0, K, K);
  int position = 0;
  for (i in 1:K) {
    real rest = 1;
    for (j in 1:(i - 1)) {
      position += 1;
      L[i, j] = tanh(u[position]) * rest;
      rest /= cosh(u[position]);
    }
    L[i, i] = rest;
  }
  return L;
}

/* The sum over rows of log(1 - tanh^2) and of half the log of what is left of the row's unit length. */
real cholesky_factor_corr_log_jacobian(vector u, int K) {
  real total = 0;
  int position = 0;
  for (i in 1:K) {
    real log_rest = 0;
    for (j in 1:(i - 1)) {
      position += 1;
      real log_sech_squared = log1m_tanh_squared(u[position]);
      total += log_sech_squared + 0.5 * log_rest;
      log_rest += log_sech_squared;
    }
  }
  return total;
}

/* log(1 - tanh(u)^2), accurate for large u. */
real log1m_tanh_squared(real u) { return 2 * (log_two() - abs(u) - log1p_exp(-2 * abs(u))); }

vector cholesky_factor_corr_unconstrain(matrix L) {
  require_cholesky_factor_corr(L);
  int K = rows(L);
  vector[(K * (K - 1)) %/% 2] u;
  int position = 0;
  for (i in 1:K) {
    real rest = 1;
    for (j in 1:(i - 1)) {
      position += 1;
      u[position] = atanh(L[i, j] / sqrt(rest));
      rest -= square(L[i, j]);
    }
  }
  return u;
}

void cholesky_factor_corr_check(matrix x) {
  require_cholesky_factor_corr(x);
}

/* ---- cholesky_factor_cov: row by row, the diagonal through exp */

matrix cholesky_factor_cov_constrain(vector u, int M, int N) {
  matrix[M, N] L = rep_matrix(0, M, N);
  int position = 0;
  for (i in 1:M) {
    for (j in 1:min(i, N)) {
      position += 1;
      L[i, j] = i == j ? exp(u[position]) : u[position];
    }
  }
  return L;
}

real cholesky_factor_cov_log_jacobian(vector u, int M, int N) {
  real total = 0;
  int position = 0;
  for (j in 1:N) {
    position += j;
    total += u[position];
  }
  return total;
}

vector cholesky_factor_cov_unconstrain(matrix L) {
  require_cholesky_factor(L);
  int M = rows(L);
  int N = cols(L);
  vector[(N * (N + 1)) %/% 2 + (M - N) * N] u;
  int position = 0;
  for (i in 1:M) {
    for (j in 1:min(i, N)) {
      position += 1;
      u[position] = i == j ? log(L[i, j]) : L[i, j];
    }
  }
  return u;
}

void cholesky_factor_cov_check(matrix x) {
  require_cholesky_factor(x);
}

/* ---- corr_matrix: canonical partial correlations tanh(u), column by column, of its Cholesky factor */

matrix corr_matrix_constrain(vector u, int K) {
  return multiply_lower_tri_self_transpose(corr_matrix_cholesky(u, K));
}

matrix corr_matrix_cholesky(vector u, int K) {
  matrix[K, K] L = rep_matrix(0, K, K);
  vector[K] rest = rep_vector(1, K);
  int position = 0;
  for (j in 1:K) {
    L[j, j] = rest[j];
    for (i in (j + 1):K) {
      position += 1;
      L[i, j] = tanh(u[position]) * rest[i];
      rest[i] /= cosh(u[position]);
    }
  }
  return L;
}

real corr_matrix_log_jacobian(vector u, int K) {
  real total = 0;
  int position = 0;
  for (j in 1:(K - 1)) {
    for (i in (j + 1):K) {
      position += 1;
      total += (1 + 0.5 * (K - j - 1)) * log1m_tanh_squared(u[position]);
    }
  }
  return total;
}

vector corr_matrix_unconstrain(matrix x) {
  int K = rows(x);
  if (K == 0) return rep_vector(0, 0);
  require_corr_matrix(x);
  matrix[K, K] L = cholesky_decompose(x);
  vector[(K * (K - 1)) %/% 2] u;
  vector[K] rest = rep_vector(1, K);
  int position = 0;
  for (j in 1:(K - 1)) {
    for (i in (j + 1):K) {
      position += 1;
      real partial = L[i, j] / sqrt(rest[i]);
      u[position] = atanh(partial);
      rest[i] *= 1 - square(partial);
    }
  }
  return u;
}

void corr_matrix_check(matrix x) {
  require_corr_matrix(x);
}

/* ---- cov_matrix: L L' of a Cholesky factor read as for cholesky_factor_cov */

matrix cov_matrix_constrain(vector u, int K) {
  return multiply_lower_tri_self_transpose(cholesky_factor_cov_constrain(u, K, K));
}

real cov_matrix_log_jacobian(vector u, int K) {
  real total = K * log_two();
  int position = 0;
  for (j in 1:K) {
    position += j;
    total += (K - j + 2) * u[position];
  }
  return total;
}

vector cov_matrix_unconstrain(matrix x) {
  if (rows(x) == 0) return rep_vector(0, 0);
  require_cov_matrix(x);
  return cholesky_factor_cov_unconstrain(cholesky_decompose(x));
}

void cov_matrix_check(matrix x) {
  require_cov_matrix(x);
}

/* ---- transforms of matrices as programs call them: what is unconstrained is a matrix, too, smaller by a row or a column;
 * X_log_jacobian is what X_jacobian adds */

matrix sum_to_zero_constrain(matrix u) {
  return sum_to_zero_matrix_constrain(to_vector(u), rows(u) + 1, cols(u) + 1);
}

real sum_to_zero_log_jacobian(matrix u) { return 0; }

matrix sum_to_zero_unconstrain(matrix x) {
  return to_matrix(sum_to_zero_matrix_unconstrain(x), rows(x) - 1, cols(x) - 1);
}

matrix stochastic_column_constrain(matrix u) {
  return column_stochastic_matrix_constrain(to_vector(u), rows(u) + 1, cols(u));
}

real stochastic_column_log_jacobian(matrix u) {
  return column_stochastic_matrix_log_jacobian(to_vector(u), rows(u) + 1, cols(u));
}

matrix stochastic_column_unconstrain(matrix x) {
  return to_matrix(column_stochastic_matrix_unconstrain(x), rows(x) - 1, cols(x));
}

matrix stochastic_row_constrain(matrix u) {
  return row_stochastic_matrix_constrain(to_vector(u), rows(u), cols(u) + 1);
}

real stochastic_row_log_jacobian(matrix u) {
  return row_stochastic_matrix_log_jacobian(to_vector(u), rows(u), cols(u) + 1);
}

matrix stochastic_row_unconstrain(matrix x) {
  return to_matrix(row_stochastic_matrix_unconstrain(x), rows(x), cols(x) - 1);
}
