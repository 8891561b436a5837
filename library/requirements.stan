/* Checks of containers, made of the scalar requirements of requirements.py. Stan Reference Manual, "Constrained data
 * types"; the tolerance is Stan's, 1e-8. */

void require_simplex(vector theta) {
  require_nonempty(num_elements(theta));
  require_simplex_sum(sum(theta));
  require_nonnegative(theta);
}

void require_simplex(row_vector theta) {
  require_nonempty(num_elements(theta));
  require_simplex_sum(sum(theta));
  require_nonnegative(theta);
}

void require_unit_length(vector x) {
  require_nonempty(num_elements(x));
  require_unit_sum_of_squares(dot_self(x));
}

void require_zero_total(real total) {
  require_zero_sum(total);
}

void require_ordered(vector x) {
  for (i in 2:num_elements(x)) require_above_previous(x[i], x[i - 1]);
}

void require_positive_ordered(vector x) {
  if (num_elements(x) > 0) require_nonnegative(x[1]);
  for (i in 2:num_elements(x)) require_above_previous(x[i], x[i - 1]);
}

void require_square(matrix x) {
  require_same_size(cols(x), rows(x));
}

/* Entries may differ by 1e-8. */
void require_symmetric(matrix x) {
  require_same_size(cols(x), rows(x));
  for (j in 1:cols(x)) {
    for (i in (j + 1):rows(x)) require_mirrored(x[i, j], x[j, i]);
  }
}

void require_lower_triangular(matrix x) {
  for (j in 2:cols(x)) {
    for (i in 1:min(j - 1, rows(x))) require_zero_above_diagonal(x[i, j]);
  }
}

/* Lower triangular, at least as many rows as columns, positive diagonal. */
void require_cholesky_factor(matrix x) {
  require_no_more(cols(x), rows(x));
  require_lower_triangular(x);
  for (j in 1:cols(x)) require_positive_diagonal(x[j, j]);
}

/* The same of a call that stands for several, as Stan asks; of a single one nothing. */
void require_cholesky_factor_of_arrays(matrix x) {
  require_cholesky_factor(x);
}

/* A Cholesky factor whose rows have length 1. */
void require_cholesky_factor_corr(matrix x) {
  require_same_size(cols(x), rows(x));
  require_lower_triangular(x);
  for (j in 1:cols(x)) require_positive_diagonal(x[j, j]);
  for (i in 1:rows(x)) require_unit_sum_of_squares(dot_self(x[i]));
}

void require_corr_matrix(matrix x) {
  require_symmetric(x);
  for (j in 1:cols(x)) require_unit_diagonal(x[j, j]);
  require_pos_definite(x);
}

void require_cov_matrix(matrix x) {
  require_symmetric(x);
  require_pos_definite(x);
}

/* Positive semidefinite, by the same pivots; those of a singular matrix are off 0 by rounding. */
void require_pos_semidefinite(matrix x) {
  int n = rows(x);
  require_symmetric(x);
  matrix[n, n] rest = x;
  for (j in 1:n) {
    require_finite(x[j, j]);
    real pivot = rest[j, j];
    require_pivot_at_least(pivot, -1e-8 * abs(x[j, j]));
    for (i in (j + 1):n) {
      real factor = rest[j, j] > 1e-8 * x[j, j] ? rest[i, j] / rest[j, j] : 0;
      for (k in (j + 1):i) rest[i, k] -= factor * rest[k, j];
    }
  }
}

/* Positive definite, by the pivots of an LDL' factorisation of the lower triangle. */
void require_pos_definite(matrix x) {
  int n = rows(x);
  require_nonempty(n);
  require_same_size(cols(x), n);
  matrix[n, n] l;
  vector[n] pivots;
  for (j in 1:n) {
    real pivot = x[j, j];
    for (k in 1:(j - 1)) pivot -= square(l[j, k]) * pivots[k];
    require_positive_pivot(pivot);
    pivots[j] = pivot;
    for (i in (j + 1):n) {
      real v = x[i, j];
      for (k in 1:(j - 1)) v -= l[i, k] * l[j, k] * pivots[k];
      l[i, j] = v / pivot;
    }
  }
}
