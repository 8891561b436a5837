/* Functions of matrices that are compositions. Stan Functions Reference, "Matrix operations". */

matrix crossprod(matrix x) { return x' * x; }

matrix tcrossprod(matrix x) { return x * x'; }

/* L * L' of the lower triangle of L. */
matrix multiply_lower_tri_self_transpose(matrix L) {
  int n = rows(L);
  int m = cols(L);
  matrix[n, n] result;
  for (j in 1:n) {
    for (i in j:n) {
      real total = 0;
      for (k in 1:min(j, m)) total += L[i, k] * L[j, k];
      result[i, j] = total;
      result[j, i] = total;
    }
  }
  return result;
}

matrix quad_form(matrix A, matrix B) { return B' * (A * B); }

real quad_form(matrix A, vector b) { return dot_product(b, A * b); }

/* quad_form of a symmetric A, with a result that is exactly symmetric. */
matrix quad_form_sym(matrix A, matrix B) {
  require_symmetric(A);
  matrix[cols(B), cols(B)] C = B' * (A * B);
  return 0.5 * (C + C');
}

real quad_form_sym(matrix A, vector b) {
  require_symmetric(A);
  return dot_product(b, A * b);
}

matrix diag_pre_multiply(vector d, matrix x) {
  require_same_size(num_elements(d), rows(x));
  matrix[rows(x), cols(x)] result;
  for (j in 1:cols(x)) {
    for (i in 1:rows(x)) result[i, j] = d[i] * x[i, j];
  }
  return result;
}

matrix diag_pre_multiply(row_vector d, matrix x) { return diag_pre_multiply(d', x); }

matrix diag_post_multiply(matrix x, vector d) {
  require_same_size(num_elements(d), cols(x));
  matrix[rows(x), cols(x)] result;
  for (j in 1:cols(x)) {
    for (i in 1:rows(x)) result[i, j] = x[i, j] * d[j];
  }
  return result;
}

matrix diag_post_multiply(matrix x, row_vector d) { return diag_post_multiply(x, d'); }

/* diag(d) * A * diag(d). */
matrix quad_form_diag(matrix A, vector d) {
  require_same_size(cols(A), rows(A));
  require_same_size(num_elements(d), rows(A));
  matrix[rows(A), cols(A)] result;
  for (j in 1:cols(A)) {
    for (i in 1:rows(A)) result[i, j] = d[i] * d[j] * A[i, j];
  }
  return result;
}

matrix quad_form_diag(matrix A, row_vector d) { return quad_form_diag(A, d'); }

real trace(matrix A) {
  real total = 0;
  for (i in 1:min(rows(A), cols(A))) total += A[i, i];
  return total;
}

/* trace(A * B). */
real trace_dot(matrix A, matrix B) {
  require_same_size(rows(B), cols(A));
  require_same_size(cols(B), rows(A));
  return sum(A .* B');
}

real trace_quad_form(matrix A, matrix B) { return sum(B .* (A * B)); }

real trace_quad_form(matrix A, vector b) { return dot_product(b, A * b); }

/* trace(D * B' * A * B). */
real trace_gen_quad_form(matrix D, matrix A, matrix B) { return sum((B * D') .* (A * B)); }

matrix add_diag(matrix A, real d) {
  matrix[rows(A), cols(A)] result = A;
  for (i in 1:min(rows(A), cols(A))) result[i, i] += d;
  return result;
}

matrix add_diag(matrix A, vector d) {
  require_same_size(num_elements(d), min(rows(A), cols(A)));
  matrix[rows(A), cols(A)] result = A;
  for (i in 1:num_elements(d)) result[i, i] += d[i];
  return result;
}

matrix add_diag(matrix A, row_vector d) { return add_diag(A, d'); }

matrix symmetrize_from_lower_tri(matrix A) {
  int n = rows(A);
  require_same_size(cols(A), n);
  matrix[n, n] result;
  for (j in 1:n) {
    for (i in j:n) {
      result[i, j] = A[i, j];
      result[j, i] = A[i, j];
    }
  }
  return result;
}

row_vector columns_dot_product(matrix x, matrix y) {
  require_same_size(rows(x), rows(y));
  require_same_size(cols(x), cols(y));
  row_vector[cols(x)] result;
  for (j in 1:cols(x)) {
    real total = 0;
    for (i in 1:rows(x)) total += x[i, j] * y[i, j];
    result[j] = total;
  }
  return result;
}

row_vector columns_dot_product(vector x, vector y) { return [dot_product(x, y)]; }

row_vector columns_dot_product(row_vector x, row_vector y) { return x .* y; }

row_vector columns_dot_self(matrix x) { return columns_dot_product(x, x); }

row_vector columns_dot_self(vector x) { return [dot_self(x)]; }

row_vector columns_dot_self(row_vector x) { return x .* x; }

vector rows_dot_product(matrix x, matrix y) {
  require_same_size(rows(x), rows(y));
  require_same_size(cols(x), cols(y));
  vector[rows(x)] result = rep_vector(0, rows(x));
  for (j in 1:cols(x)) {
    for (i in 1:rows(x)) result[i] += x[i, j] * y[i, j];
  }
  return result;
}

vector rows_dot_product(vector x, vector y) { return x .* y; }

vector rows_dot_product(row_vector x, row_vector y) { return [dot_product(x, y)]'; }

vector rows_dot_self(matrix x) { return rows_dot_product(x, x); }

vector rows_dot_self(vector x) { return x .* x; }

vector rows_dot_self(row_vector x) { return [dot_self(x)]'; }

matrix identity_matrix(int n) { return diag_matrix(rep_vector(1, n)); }

vector zeros_vector(int n) { return rep_vector(0, n); }

row_vector zeros_row_vector(int n) { return rep_row_vector(0, n); }

array[] real zeros_array(int n) { return rep_array(0.0, n); }

array[] int zeros_int_array(int n) { return rep_array(0, n); }

vector ones_vector(int n) { return rep_vector(1, n); }

row_vector ones_row_vector(int n) { return rep_row_vector(1, n); }

array[] real ones_array(int n) { return rep_array(1.0, n); }

array[] int ones_int_array(int n) { return rep_array(1, n); }

vector one_hot_vector(int n, int k) {
  require_in_interval(k, 1, n);
  vector[n] result = rep_vector(0, n);
  result[k] = 1;
  return result;
}

row_vector one_hot_row_vector(int n, int k) { return one_hot_vector(n, k)'; }

array[] real one_hot_array(int n, int k) { return to_array_1d(one_hot_vector(n, k)); }

array[] int one_hot_int_array(int n, int k) {
  require_in_interval(k, 1, n);
  array[n] int result = rep_array(0, n);
  result[k] = 1;
  return result;
}

vector uniform_simplex(int n) {
  require_positive(n);
  return rep_vector(1.0 / n, n);
}

/* n equidistant points from low to high; high alone for n = 1. */
vector linspaced_vector(int n, data real low, data real high) {
  require_nonnegative(n);
  require_finite(low);
  require_finite(high);
  require_at_least(high, low);
  vector[n] result;
  for (i in 1:n) result[i] = i == n ? high : low + (i - 1) * ((high - low) / (n - 1));
  return result;
}

row_vector linspaced_row_vector(int n, data real low, data real high) { return linspaced_vector(n, low, high)'; }

array[] real linspaced_array(int n, data real low, data real high) { return to_array_1d(linspaced_vector(n, low, high)); }

/* Equal steps from low, each value as often as the next where there are more elements than values; may end below high. */
array[] int linspaced_int_array(int n, int low, int high) {
  require_nonnegative(n);
  require_at_least(high, low);
  array[n] int result;
  int steps = max(n - 1, 1);
  int span = high - low;
  int repeats = span >= steps || span == 0 ? 1 : (n + span) %/% (span + 1);
  for (i in 1:n) {
    result[i] = n == 1 ? high : span >= steps ? low + (i - 1) * (span %/% steps) : low + min((i - 1) %/% repeats, span);
  }
  return result;
}

vector reverse(vector x) {
  int n = num_elements(x);
  vector[n] result;
  for (i in 1:n) result[i] = x[n - i + 1];
  return result;
}

row_vector reverse(row_vector x) { return reverse(x')'; }

array[] real reverse(array[] real x) { return to_array_1d(reverse(to_vector(x))); }

array[] int reverse(array[] int x) {
  int n = size(x);
  array[n] int result;
  for (i in 1:n) result[i] = x[n - i + 1];
  return result;
}

/* A^n, n >= 0, by repeated squaring. */
matrix matrix_power(matrix A, int n) {
  require_same_size(cols(A), rows(A));
  require_nonnegative(n);
  matrix[rows(A), rows(A)] result = identity_matrix(rows(A));
  matrix[rows(A), rows(A)] square_power = A;
  int rest = n;
  while (rest > 0) {
    if (rest % 2 == 1) result = result * square_power;
    rest = rest %/% 2;
    if (rest > 0) square_power = square_power * square_power;
  }
  return result;
}

matrix matrix_exp_multiply(matrix A, matrix B) { return matrix_exp(A) * B; }

matrix scale_matrix_exp_multiply(real t, matrix A, matrix B) { return matrix_exp(t * A) * B; }

/* Q and R with all rows, by Householder's reflections; the diagonal of R is not negative. */
tuple(matrix, matrix) qr(matrix A) {
  int m = rows(A);
  int n = cols(A);
  matrix[m, n] R = A;
  matrix[m, m] Q = identity_matrix(m);
  for (k in 1:min(m - 1, n)) {
    real below = 0;
    for (i in (k + 1):m) below += square(R[i, k]);
    if (below > 0) {
      real head = R[k, k];
      real image = (head >= 0 ? -1 : 1) * sqrt(square(head) + below);
      vector[m] v = rep_vector(0, m);
      v[k] = 1;
      for (i in (k + 1):m) v[i] = R[i, k] / (head - image);
      real scale = (image - head) / image;
      for (j in (k + 1):n) {
        real share = 0;
        for (i in k:m) share += v[i] * R[i, j];
        for (i in k:m) R[i, j] -= scale * share * v[i];
      }
      R[k, k] = image;
      for (i in (k + 1):m) R[i, k] = 0;
      for (j in 1:m) {
        real share = 0;
        for (i in k:m) share += v[i] * Q[j, i];
        for (i in k:m) Q[j, i] -= scale * share * v[i];
      }
    }
  }
  for (i in 1:min(m, n)) {
    if (R[i, i] < 0) {
      for (j in 1:n) R[i, j] = -R[i, j];
      for (j in 1:m) Q[j, i] = -Q[j, i];
    }
  }
  return (Q, R);
}

matrix qr_Q(matrix A) {
  tuple(matrix[rows(A), rows(A)], matrix[rows(A), cols(A)]) parts = qr(A);
  return parts.1;
}

matrix qr_R(matrix A) {
  tuple(matrix[rows(A), rows(A)], matrix[rows(A), cols(A)]) parts = qr(A);
  return parts.2;
}

tuple(matrix, matrix) qr_thin(matrix A) { return (qr_thin_Q(A), qr_thin_R(A)); }

tuple(matrix, vector, matrix) svd(matrix A) { return (svd_U(A), singular_values(A), svd_V(A)); }

tuple(matrix, vector) eigendecompose_sym(matrix A) { return (eigenvectors_sym(A), eigenvalues_sym(A)); }

/* Moore and Penrose's inverse X. Its differential, of a matrix whose rank stays, is written with the values of A and X:
 * what it is applied to is 0. Singular values that are rounding errors of the largest count as 0. */
matrix generalized_inverse(matrix A) {
  int m = rows(A);
  int n = cols(A);
  int k = min(m, n);
  if (k == 0) return rep_matrix(0, n, m);
  matrix[m, n] at = matrix_value_of(A);
  vector[k] s = singular_values(at);
  matrix[m, k] U = svd_U(at);
  real least = max(s) * max(m, n) * machine_precision();
  vector[k] inverses;
  for (i in 1:k) inverses[i] = s[i] > least ? 1 / s[i] : 0;
  matrix[n, m] X = matrix_value_of(diag_post_multiply(svd_V(at), inverses) * U');
  matrix[m, n] step = A - at;
  return X - X * step * X + X * X' * (step' - step' * at * X) + (step' - X * at * step') * X' * X;
}

matrix matrix_value_of(matrix A) {
  matrix[rows(A), cols(A)] values;
  for (j in 1:cols(A)) {
    for (i in 1:rows(A)) values[i, j] = value_of(A[i, j]);
  }
  return values;
}
