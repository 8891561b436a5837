/* The Schur decomposition A = U T U*: to Hessenberg form by reflections, then QR steps with Wilkinson's shifts (Golub and
 * Van Loan, "Matrix Computations", sections 7.4 and 7.5). Derivatives go through the steps. */

real size_of_parts(complex z) { return abs(get_real(z)) + abs(get_imag(z)); }

/* c (real) and s of the rotation that makes of (p, q) a vector (r, 0). */
tuple(real, complex) rotation_of(complex p, complex q) {
  if (q == 0) return (get_real(p) < 0 ? -1.0 : 1.0, to_complex(0, 0));
  if (p == 0) return (0.0, -q / abs(q));
  real scale = size_of_parts(p) > size_of_parts(q) ? size_of_parts(p) : size_of_parts(q);
  complex a = p / scale;
  complex b = q / scale;
  real length = abs(a);
  real total = hypot(length, abs(b));
  real signed_total = get_real(p) < 0 ? -total : total;
  return (length / signed_total, -conj(a) * b / (length * signed_total));
}

complex wilkinson_shift(complex a, complex b, complex c, complex d) {
  real scale = size_of_parts(a) + size_of_parts(b) + size_of_parts(c) + size_of_parts(d);
  complex half = (a - d) / (2 * scale);
  complex mean_value = (a + d) / (2 * scale);
  complex root = sqrt(half * half + b / scale * (c / scale));
  complex first = mean_value + root;
  complex second = mean_value - root;
  complex determinant = a / scale * (d / scale) - b / scale * (c / scale);
  if (size_of_parts(first) > size_of_parts(second)) second = determinant / first;
  else if (size_of_parts(second) != 0) first = determinant / second;
  return scale * (size_of_parts(first - d / scale) < size_of_parts(second - d / scale) ? first : second);
}

/* H and Q with A = Q H Q*. */
tuple(complex_matrix, complex_matrix) hessenberg(complex_matrix A) {
  int n = rows(A);
  complex_matrix[n, n] H = A;
  complex_matrix[n, n] Q = identity_matrix(n);
  for (k in 1:(n - 2)) {
    complex first = H[k + 1, k];
    real below = 0;
    for (i in (k + 2):n) below += norm(H[i, k]);
    if (below == 0 && get_imag(first) == 0) continue;
    real length = sqrt(norm(first) + below);
    real beta = get_real(first) >= 0 ? -length : length;
    complex factor = conj((beta - first) / beta);
    complex_vector[n] v = rep_vector(0, n);
    v[k + 1] = 1;
    for (i in (k + 2):n) v[i] = H[i, k] / (first - beta);
    H[k + 1, k] = beta;
    for (i in (k + 2):n) H[i, k] = 0;
    for (j in (k + 1):n) {
      complex along = 0;
      for (i in (k + 1):n) along += conj(v[i]) * H[i, j];
      for (i in (k + 1):n) H[i, j] -= factor * along * v[i];
    }
    for (i in 1:n) {
      complex along = 0;
      for (j in (k + 1):n) along += H[i, j] * v[j];
      for (j in (k + 1):n) H[i, j] -= conj(factor) * along * conj(v[j]);
      along = 0;
      for (j in (k + 1):n) along += Q[i, j] * v[j];
      for (j in (k + 1):n) Q[i, j] -= conj(factor) * along * conj(v[j]);
    }
  }
  return (H, Q);
}

tuple(complex_matrix, complex_matrix) complex_complex_schur_decompose(complex_matrix A) {
  int n = rows(A);
  require_same_size(cols(A), n);
  for (j in 1:n) {
    for (i in 1:n) {
      require_finite(get_real(A[i, j]));
      require_finite(get_imag(A[i, j]));
    }
  }
  tuple(complex_matrix[n, n], complex_matrix[n, n]) begun = hessenberg(A);
  complex_matrix[n, n] T = begun.1;
  complex_matrix[n, n] U = begun.2;
  int last = n;
  int steps = 0;
  int all_steps = 0;
  while (last > 1) {
    int first = last;
    while (first > 1) {
      if (size_of_parts(T[first, first - 1])
          <= machine_precision() * (size_of_parts(T[first - 1, first - 1]) + size_of_parts(T[first, first]))) {
        T[first, first - 1] = 0;
        break;
      }
      first -= 1;
    }
    if (first == last) {
      last -= 1;
      steps = 0;
      continue;
    }
    steps += 1;
    all_steps += 1;
    if (all_steps > 30 * n) reject("complex_schur_decompose: the QR algorithm did not converge");
    complex shift = (steps == 10 || steps == 20) && last > 2
                    ? abs(get_real(T[last, last - 1])) + abs(get_real(T[last - 1, last - 2]))
                    : wilkinson_shift(T[last - 1, last - 1], T[last - 1, last], T[last, last - 1], T[last, last]);
    for (k in first:(last - 1)) {
      tuple(real, complex) found;
      if (k == first) {
        found = rotation_of(T[k, k] - shift, T[k + 1, k]);
      } else {
        found = rotation_of(T[k, k - 1], T[k + 1, k - 1]);
      }
      real c = found.1;
      complex s = found.2;
      for (j in (k > first ? k - 1 : k):n) {
        complex kept = T[k, j];
        T[k, j] = c * kept - conj(s) * T[k + 1, j];
        T[k + 1, j] = s * kept + c * T[k + 1, j];
      }
      if (k > first) T[k + 1, k - 1] = 0;
      for (i in 1:min(k + 2, last)) {
        complex kept = T[i, k];
        T[i, k] = c * kept - s * T[i, k + 1];
        T[i, k + 1] = conj(s) * kept + c * T[i, k + 1];
      }
      for (i in 1:n) {
        complex kept = U[i, k];
        U[i, k] = c * kept - s * U[i, k + 1];
        U[i, k + 1] = conj(s) * kept + c * U[i, k + 1];
      }
    }
  }
  return (U, T);
}

complex_matrix complex_complex_schur_decompose_t(complex_matrix A) { return complex_schur_decompose(A).2; }

complex_matrix complex_complex_schur_decompose_u(complex_matrix A) { return complex_schur_decompose(A).1; }

tuple(complex_matrix, complex_matrix) complex_schur_decompose(matrix A) {
  return complex_schur_decompose(to_complex(A, 0));
}

complex_matrix complex_schur_decompose_t(matrix A) { return complex_schur_decompose(to_complex(A, 0)).2; }

complex_matrix complex_schur_decompose_u(matrix A) { return complex_schur_decompose(to_complex(A, 0)).1; }

/* Eigenvalues are the diagonal of T; eigenvectors, of norm 1, follow from T by substitution. Their phases are what the
 * steps make them. */
tuple(complex_matrix, complex_vector) eigenpairs(complex_matrix A) {
  int n = rows(A);
  tuple(complex_matrix[n, n], complex_matrix[n, n]) found = complex_schur_decompose(A);
  complex_matrix[n, n] T = found.2;
  complex_matrix[n, n] X = rep_matrix(0, n, n);
  real size = 0;
  for (j in 1:n) {
    for (i in 1:j) size += abs(T[i, j]);
  }
  for (k in 1:n) {
    X[k, k] = 1;
    for (m in 1:(k - 1)) {
      int i = k - m;
      complex total = -T[i, k];
      for (j in (i + 1):(k - 1)) total -= T[i, j] * X[j, k];
      complex gap = T[i, i] - T[k, k];
      X[i, k] = total / (gap == 0 ? to_complex(machine_precision() * size, 0) : gap);
    }
  }
  complex_matrix[n, n] V = found.1 * X;
  for (j in 1:n) V[, j] = V[, j] / sqrt(get_real(dot_self(V[, j])));
  return (V, diagonal(T));
}

/* The columns of V and the elements of w in another order. */
tuple(complex_matrix, complex_vector) in_order(complex_matrix V, complex_vector w, array[] int order) {
  return (V[, order], w[order]);
}

tuple(complex_matrix, complex_vector) complex_eigendecompose(complex_matrix A) {
  int n = rows(A);
  tuple(complex_matrix[n, n], complex_vector[n]) found = eigenpairs(A);
  return in_order(found.1, found.2, sort_indices_asc(abs(found.2)));
}

complex_vector complex_eigenvalues(complex_matrix A) {
  complex_vector[rows(A)] found = diagonal(complex_schur_decompose(A).2);
  return found[sort_indices_asc(abs(found))];
}

complex_matrix complex_eigenvectors(complex_matrix A) { return eigendecompose(A).1; }

/* Of a real matrix: real eigenvalues have real eigenvectors, others come in pairs, that with the positive imaginary part
 * first. */
tuple(complex_matrix, complex_vector) eigendecompose(matrix A) {
  int n = rows(A);
  require_same_size(cols(A), n);
  tuple(complex_matrix[n, n], complex_vector[n]) found = eigenpairs(to_complex(A, 0));
  complex_matrix[n, n] V = found.1;
  complex_vector[n] w = found.2;
  real size = max(append_row(0, abs(w)));
  int k = 1;
  while (k <= n) {
    if (abs(get_imag(w[k])) <= 16 * n * machine_precision() * size) {
      w[k] = get_real(w[k]);
      int largest = sort_indices_desc(abs(V[, k]))[1];
      complex phase = V[largest, k] / abs(V[largest, k]);
      complex turn = get_real(phase) < 0 ? -conj(phase) : conj(phase);
      V[, k] = to_complex(get_real(turn * V[, k]), 0);
      k += 1;
    } else {
      int other = k;
      for (j in (k + 1):n) {
        if (other == k || abs(w[j] - conj(w[k])) < abs(w[other] - conj(w[k]))) other = j;
      }
      if (other == k) break;
      array[n] int order = linspaced_int_array(n, 1, n);
      order[other] = k + 1;
      order[k + 1] = other;
      V = V[, order];
      w = w[order];
      if (get_imag(w[k]) < 0) {
        order = linspaced_int_array(n, 1, n);
        order[k] = k + 1;
        order[k + 1] = k;
        V = V[, order];
        w = w[order];
      }
      k += 2;
    }
  }
  return (V, w);
}

complex_vector eigenvalues(matrix A) { return eigendecompose(A).2; }

complex_matrix eigenvectors(matrix A) { return eigendecompose(A).1; }

/* Of a Hermitian matrix, of which the lower triangle is read: the Schur decomposition is diagonal. Ascending. */
tuple(complex_matrix, complex_vector) complex_eigendecompose_sym(complex_matrix A) {
  int n = rows(A);
  tuple(complex_matrix[n, n], complex_matrix[n, n]) found = complex_schur_decompose(symmetrize_from_lower_tri(A));
  vector[n] w = get_real(diagonal(found.2));
  array[n] int order = sort_indices_asc(w);
  return (found.1[, order], to_complex(w[order], 0));
}

complex_vector complex_eigenvalues_sym(complex_matrix A) { return eigendecompose_sym(A).2; }

complex_matrix complex_eigenvectors_sym(complex_matrix A) { return eigendecompose_sym(A).1; }

/* The eigenvalues of [0, A; A*, 0] are the singular values and their negatives, its eigenvectors [u; v] / sqrt(2). Their
 * phases hang on rounding, since an eigenvalue and its negative are found together: the largest element of u is made
 * positive. */
tuple(complex_matrix, vector, complex_matrix) complex_svd(complex_matrix A) {
  int m = rows(A);
  int n = cols(A);
  int k = min(m, n);
  complex_matrix[m + n, m + n] joint = rep_matrix(0, m + n, m + n);
  for (j in 1:n) {
    for (i in 1:m) joint[m + j, i] = conj(A[i, j]);
  }
  tuple(complex_matrix[m + n, m + n], complex_vector[m + n]) found = eigendecompose_sym(joint);
  complex_matrix[m, k] U;
  complex_matrix[n, k] V;
  vector[k] s;
  for (j in 1:k) {
    int from = m + n + 1 - j;
    s[j] = get_real(found.2[from]);
    complex_vector[m + n] both = sqrt2() * found.1[, from];
    int largest = sort_indices_desc(abs(both[1:m]))[1];
    if (abs(both[largest]) > 0) both *= conj(both[largest]) / abs(both[largest]);
    U[, j] = both[1:m];
    V[, j] = both[(m + 1):(m + n)];
  }
  return (U, s, V);
}

vector complex_singular_values(complex_matrix A) { return svd(A).2; }

complex_matrix complex_svd_U(complex_matrix A) { return svd(A).1; }

complex_matrix complex_svd_V(complex_matrix A) { return svd(A).3; }
