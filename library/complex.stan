/* Functions of complex numbers. `complex_f` is what `f` is of complex arguments; what is done part by part is not here
 * (library/complex_functions.py). Branch cuts are those of C99, Annex G: on a cut the sign of a zero says the side.
 * Formulas: Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit", 1987. */

/* Whether the sign of a number is not negative; that of a zero counts. */
int has_positive_sign(real x) { return x == 0 ? inv(x) > 0 : !(x < 0); }

complex complex_divide(complex z, complex w) {
  real a = get_real(z);
  real b = get_imag(z);
  real c = get_real(w);
  real d = get_imag(w);
  /* by the larger part, so that nothing overflows that need not */
  if (abs(c) >= abs(d)) {
    real ratio = d / c;
    real denominator = c + d * ratio;
    return to_complex((a + b * ratio) / denominator, (b - a * ratio) / denominator);
  }
  real ratio = c / d;
  real denominator = c * ratio + d;
  return to_complex((a * ratio + b) / denominator, (b * ratio - a) / denominator);
}

complex complex_exp(complex z) {
  real x = get_real(z);
  real y = get_imag(z);
  if (x == negative_infinity()) return to_complex(0, 0);
  if (x > 709) {  /* exp(x) may be infinite where the parts are not */
    real size = exp(x - 709);
    real scale = exp(709.0);
    return to_complex(size * cos(y) * scale, y == 0 ? y : size * sin(y) * scale);
  }
  real size = exp(x);
  return to_complex(size * cos(y), y == 0 ? size * y : size * sin(y));
}

/* log |z| */
real log_size(real x, real y) {
  real larger = abs(x) > abs(y) ? abs(x) : abs(y);
  real smaller = abs(x) > abs(y) ? abs(y) : abs(x);
  if (larger > 0.5 && larger < 2) return 0.5 * log1p((larger - 1) * (larger + 1) + smaller * smaller);
  if (larger > 1e300) return log(hypot(0.5 * x, 0.5 * y)) + log2();
  return log(hypot(x, y));
}

complex complex_log(complex z) {
  return to_complex(log_size(get_real(z), get_imag(z)), atan2(get_imag(z), get_real(z)));
}

complex complex_log10(complex z) {
  complex found = log(z);
  return to_complex(get_real(found) / log10(), get_imag(found) / log10());
}

complex complex_sqrt(complex z) {
  real x = get_real(z);
  real y = get_imag(z);
  if (x == 0 && y == 0) return to_complex(0, y);
  if (is_inf(y)) return to_complex(positive_infinity(), y);
  int is_upper = has_positive_sign(y);
  /* powers of 4, so that neither sums overflow nor squares vanish */
  real scale = abs(x) > 1e300 || abs(y) > 1e300 ? 0.0625 : abs(x) < 1e-290 && abs(y) < 1e-290 ? 3.2451855365842673e32 : 1;
  real root = scale == 1 ? 1 : scale < 1 ? 4 : 5.551115123125783e-17;
  real t = sqrt(0.5 * (abs(scale * x) + hypot(scale * x, scale * y)));
  real size = is_upper ? scale * y : -scale * y;
  real other = 0.5 * size / t;
  return x >= 0 ? to_complex(root * t, root * (is_upper ? other : -other))
                : to_complex(root * other, root * (is_upper ? t : -t));
}

complex complex_pow(complex z, complex w) {
  if (z == 0) {
    if (w == 0) return to_complex(1, 0);
    if (get_real(w) > 0) return to_complex(0, 0);
  }
  return exp(w * log(z));
}

complex complex_proj(complex z) {
  if (is_inf(get_real(z)) || is_inf(get_imag(z))) {
    return to_complex(positive_infinity(), has_positive_sign(get_imag(z)) ? 0.0 : -0.0);
  }
  return z;
}

/* sinh and cosh of x, times a factor of the size of 1: they may be infinite where the product is not. */
real sinh_times(real x, real factor) {
  return abs(x) > 709 ? (x > 0 ? 0.5 : -0.5) * exp(abs(x) - 709) * factor * exp(709.0) : sinh(x) * factor;
}

real cosh_times(real x, real factor) {
  return abs(x) > 709 ? 0.5 * exp(abs(x) - 709) * factor * exp(709.0) : cosh(x) * factor;
}

complex complex_sinh(complex z) {
  real x = get_real(z);
  real y = get_imag(z);
  return to_complex(x == 0 ? x * cos(y) : sinh_times(x, cos(y)), y == 0 ? (is_inf(x) ? y : cosh(x) * y) : cosh_times(x, sin(y)));
}

complex complex_cosh(complex z) {
  real x = get_real(z);
  real y = get_imag(z);
  return to_complex(cosh_times(x, cos(y)), x == 0 || y == 0 ? (is_inf(x) ? y : sinh(x) * sin(y)) : sinh_times(x, sin(y)));
}

complex complex_tanh(complex z) {
  real x = get_real(z);
  real y = get_imag(z);
  if (abs(x) > 22) {  /* 1 to the last digit */
    real beside = 4 * sin(y) * cos(y) * exp(-2 * abs(x));
    return to_complex(x > 0 ? 1 : -1, is_inf(x) && is_inf(y) ? 0 : beside);
  }
  real tangent = tan(y);
  real sine = sinh(x);
  real squared = 1 + tangent * tangent;
  real denominator = 1 + squared * sine * sine;
  return to_complex(squared * sqrt(1 + sine * sine) * sine / denominator, tangent / denominator);
}

/* f(iz) and -i f(iz): the circular functions of the hyperbolic ones. */
complex turned(complex z) { return to_complex(-get_imag(z), get_real(z)); }

complex turned_back(complex z) { return to_complex(get_imag(z), -get_real(z)); }

complex complex_sin(complex z) { return turned_back(sinh(turned(z))); }

complex complex_cos(complex z) { return cosh(turned(z)); }

complex complex_tan(complex z) { return turned_back(tanh(turned(z))); }

complex complex_asin(complex z) { return turned_back(asinh(turned(z))); }

complex complex_atan(complex z) { return turned_back(atanh(turned(z))); }

/* 1 - z and 1 + z: the sign of a zero imaginary part is kept. */
complex one_less(complex z) { return to_complex(1 - get_real(z), -get_imag(z)); }

complex one_more(complex z) { return to_complex(1 + get_real(z), get_imag(z)); }

/* Im(conj(z) w) */
real crossed(complex z, complex w) { return get_real(z) * get_imag(w) - get_imag(z) * get_real(w); }

complex complex_acos(complex z) {
  complex less = sqrt(one_less(z));
  complex more = sqrt(one_more(z));
  return to_complex(2 * atan2(get_real(less), get_real(more)), asinh(crossed(more, less)));
}

complex complex_acosh(complex z) {
  complex less = sqrt(to_complex(get_real(z) - 1, get_imag(z)));
  complex more = sqrt(one_more(z));
  real along = get_real(less) * get_real(more) + get_imag(less) * get_imag(more);
  return to_complex(asinh(along), 2 * atan2(get_imag(less), get_real(more)));
}

/* asinh(z) = -i asin(iz), with asin(w) = (atan2(Re w, Re(sqrt(1 - w) sqrt(1 + w))), asinh(Im(conj(sqrt(1 - w)) sqrt(1 + w)))) */
complex complex_asinh(complex z) {
  complex less = sqrt(one_less(turned(z)));
  complex more = sqrt(one_more(turned(z)));
  real along = get_real(less) * get_real(more) - get_imag(less) * get_imag(more);
  return to_complex(asinh(crossed(less, more)), atan2(get_imag(z), along));
}

complex complex_atanh(complex z) {
  real x = get_real(z);
  real y = get_imag(z);
  real sign = x < 0 ? -1 : 1;
  if (abs(x) > 1e150 || abs(y) > 1e150) {  /* Re(1/z) and a right angle */
    return to_complex(get_real(to_complex(1, 0) / z), has_positive_sign(y) ? 0.5 * pi() : -0.5 * pi());
  }
  real size = sign * x;
  real real_part = sign * 0.25 * log1p(4 * size / ((1 - size) * (1 - size) + y * y));
  return to_complex(real_part, 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y));
}

/* Products. What Stan calls a dot product of complex vectors takes the conjugate of the first one; the products of rows
 * and of columns of matrices do not. */

complex complex_dot_product(complex_vector z, complex_vector w) {
  return to_complex(dot_product(get_real(z), get_real(w)) + dot_product(get_imag(z), get_imag(w)),
                    dot_product(get_real(z), get_imag(w)) - dot_product(get_imag(z), get_real(w)));
}

complex complex_dot_product(complex_vector z, complex_row_vector w) { return dot_product(z, w'); }

complex complex_dot_product(complex_row_vector z, complex_vector w) { return dot_product(z', w); }

complex complex_dot_product(complex_row_vector z, complex_row_vector w) { return dot_product(z', w'); }

complex complex_dot_product(array[] complex z, array[] complex w) { return dot_product(to_vector(z), to_vector(w)); }

complex complex_dot_self(complex_vector z) {
  return to_complex(dot_self(get_real(z)) + dot_self(get_imag(z)), 0);
}

complex complex_dot_self(complex_row_vector z) { return dot_self(z'); }

complex_row_vector complex_columns_dot_product(complex_matrix z, complex_matrix w) {
  return to_complex(
    columns_dot_product(get_real(z), get_real(w)) - columns_dot_product(get_imag(z), get_imag(w)),
    columns_dot_product(get_real(z), get_imag(w)) + columns_dot_product(get_imag(z), get_real(w)));
}

complex_row_vector complex_columns_dot_product(complex_vector z, complex_vector w) {
  return columns_dot_product(to_matrix(z), to_matrix(w));
}

complex_row_vector complex_columns_dot_product(complex_row_vector z, complex_row_vector w) { return z .* w; }

complex_vector complex_rows_dot_product(complex_matrix z, complex_matrix w) {
  return to_complex(rows_dot_product(get_real(z), get_real(w)) - rows_dot_product(get_imag(z), get_imag(w)),
                    rows_dot_product(get_real(z), get_imag(w)) + rows_dot_product(get_imag(z), get_real(w)));
}

complex_vector complex_rows_dot_product(complex_vector z, complex_vector w) { return z .* w; }

complex_vector complex_rows_dot_product(complex_row_vector z, complex_row_vector w) {
  return rows_dot_product(to_matrix(z), to_matrix(w));
}

complex_row_vector complex_columns_dot_self(complex_matrix z) {
  return to_complex(columns_dot_self(get_real(z)) + columns_dot_self(get_imag(z)), 0);
}

complex_row_vector complex_columns_dot_self(complex_vector z) { return columns_dot_self(to_matrix(z)); }

complex_row_vector complex_columns_dot_self(complex_row_vector z) { return columns_dot_self(to_matrix(z)); }

complex_vector complex_rows_dot_self(complex_matrix z) {
  return to_complex(rows_dot_self(get_real(z)) + rows_dot_self(get_imag(z)), 0);
}

complex_vector complex_rows_dot_self(complex_vector z) { return rows_dot_self(to_matrix(z)); }

complex_vector complex_rows_dot_self(complex_row_vector z) { return rows_dot_self(to_matrix(z)); }

complex_matrix complex_diag_pre_multiply(complex_vector d, complex_matrix z) {
  return to_complex(diag_pre_multiply(get_real(d), get_real(z)) - diag_pre_multiply(get_imag(d), get_imag(z)),
                    diag_pre_multiply(get_real(d), get_imag(z)) + diag_pre_multiply(get_imag(d), get_real(z)));
}

complex_matrix complex_diag_pre_multiply(complex_row_vector d, complex_matrix z) { return diag_pre_multiply(d', z); }

complex_matrix complex_diag_post_multiply(complex_matrix z, complex_vector d) {
  return to_complex(diag_post_multiply(get_real(z), get_real(d)) - diag_post_multiply(get_imag(z), get_imag(d)),
                    diag_post_multiply(get_imag(z), get_real(d)) + diag_post_multiply(get_real(z), get_imag(d)));
}

complex_matrix complex_diag_post_multiply(complex_matrix z, complex_row_vector d) { return diag_post_multiply(z, d'); }

complex complex_prod(complex_vector z) {
  complex total = 1;
  for (n in 1:num_elements(z)) total *= z[n];
  return total;
}

complex complex_prod(complex_row_vector z) { return prod(z'); }

complex complex_prod(complex_matrix z) { return prod(to_vector(z)); }

complex complex_prod(array[] complex z) { return prod(to_vector(z)); }

/* The lower triangle and its conjugate. */
complex_matrix complex_symmetrize_from_lower_tri(complex_matrix z) {
  int n = rows(z);
  require_same_size(cols(z), n);
  complex_matrix[n, n] result;
  for (j in 1:n) {
    result[j, j] = get_real(z[j, j]);
    for (i in (j + 1):n) {
      result[i, j] = z[i, j];
      result[j, i] = conj(z[i, j]);
    }
  }
  return result;
}

/* The real matrix [Re, Im; -Im, Re], which acts on rows [Re, Im] as the complex one does. */
matrix acting_on_rows(complex_matrix A) {
  return append_row(append_col(get_real(A), get_imag(A)), append_col(-get_imag(A), get_real(A)));
}

complex_matrix complex_mdivide_right(complex_matrix B, complex_matrix A) {
  require_same_size(rows(A), cols(A));
  int n = cols(A);
  matrix[rows(B), 2 * n] found = append_col(get_real(B), get_imag(B)) / acting_on_rows(A);
  return to_complex(found[, 1:n], found[, (n + 1):(2 * n)]);
}

complex_row_vector complex_mdivide_right(complex_row_vector b, complex_matrix A) {
  require_same_size(rows(A), cols(A));
  int n = cols(A);
  row_vector[2 * n] found = append_col(get_real(b), get_imag(b)) / acting_on_rows(A);
  return to_complex(found[1:n], found[(n + 1):(2 * n)]);
}

/* Fourier transforms: Stockham's algorithm, with a stage for each prime factor; Bluestein's where one of these is large. */

/* exp(-2 pi i k / n) for k from 0 on, exact at multiples of a right angle. */
complex_vector roots_of_one(int n) {
  complex_vector[n] result;
  for (k in 0:(n - 1)) {
    int quadrant = (4 * k) %/% n;
    int beyond = 4 * k - quadrant * n;
    real angle = 0.5 * pi() * beyond / n;
    real rest = 0.5 * pi() * (n - beyond) / n;
    real c = 2 * beyond > n ? sin(rest) : cos(angle);
    real s = 2 * beyond > n ? cos(rest) : sin(angle);
    result[k + 1] = quadrant == 0 ? to_complex(c, -s) : quadrant == 1 ? to_complex(-s, -c)
                    : quadrant == 2 ? to_complex(-c, s) : to_complex(s, c);
  }
  return result;
}

complex_vector complex_fft(complex_vector z) {
  complex_vector[num_elements(z)] result;
  if (largest_prime_factor(num_elements(z)) > 100) result = fft_by_convolution(z);
  else result = fft_by_factors(z);
  return result;
}

int largest_prime_factor(int n) {
  int rest = n;
  int p = 2;
  while (p <= rest %/% p) {
    if (rest % p == 0) rest = rest %/% p;
    else p += 1;
  }
  return rest;
}

complex_vector fft_by_factors(complex_vector z) {
  int n = num_elements(z);
  complex_vector[n] x = z;
  complex_vector[n] roots = roots_of_one(n);
  int rest = n;
  int stride = 1;
  int p = 2;
  while (rest > 1) {
    while (rest % p != 0) p = p * p > rest ? rest : p + 1;
    int m = rest %/% p;
    complex_vector[n] y;
    for (k in 0:(m - 1)) {
      for (r in 0:(p - 1)) {
        for (q in 1:stride) {
          complex total = x[q + stride * k];
          for (t in 1:(p - 1)) total += roots[1 + ((t * r) % p) * (n %/% p)] * x[q + stride * (k + m * t)];
          y[q + stride * (p * k + r)] = roots[1 + k * r * stride] * total;
        }
      }
    }
    x = y;
    rest = m;
    stride *= p;
  }
  return x;
}

/* Bluestein: 2 j k is j^2 + k^2 - (j - k)^2, so a transform is a convolution with exp(pi i k^2 / n), which is made with
 * three transforms of the length of a power of 2. */
complex_vector fft_by_convolution(complex_vector z) {
  int n = num_elements(z);
  int m = 1;
  while (m < 2 * n) m *= 2;
  complex_vector[2 * n] roots = roots_of_one(2 * n);
  complex_vector[n] chirp;
  complex_vector[m] other = rep_vector(0, m);
  int k_squared = 0;
  for (k in 0:(n - 1)) {
    chirp[k + 1] = roots[k_squared + 1];
    other[k + 1] = conj(chirp[k + 1]);
    if (k > 0) other[m - k + 1] = other[k + 1];
    k_squared = (k_squared + 2 * k + 1) % (2 * n);
  }
  complex_vector[m] roots_m = roots_of_one(m);
  complex_vector[m] x = rep_vector(0, m);
  x[1:n] = z .* chirp;
  complex_vector[m] of_z;
  for (pass in 1:3) {
    x = fft_of_power_of_2(x, roots_m);
    if (pass == 1) {
      of_z = x;
      x = other;
    } else if (pass == 2) {
      x = conj(of_z .* x);
    }
  }
  return conj(x[1:n]) .* chirp / m;
}

complex_vector fft_of_power_of_2(complex_vector z, complex_vector roots) {
  int n = num_elements(z);
  complex_vector[n] x = z;
  int stride = 1;
  int half = n %/% 2;
  while (half > 0) {
    complex_vector[n] y;
    for (k in 0:(half - 1)) {
      for (q in 1:stride) {
        complex a = x[q + stride * k];
        complex b = x[q + stride * (k + half)];
        y[q + stride * 2 * k] = a + b;
        y[q + stride * (2 * k + 1)] = roots[1 + k * stride] * (a - b);
      }
    }
    x = y;
    half = half %/% 2;
    stride *= 2;
  }
  return x;
}

complex_vector complex_inv_fft(complex_vector z) {
  int n = num_elements(z);
  if (n == 0) return z;
  return conj(fft(conj(z))) / n;
}

complex_matrix complex_fft2(complex_matrix z) {
  complex_matrix[rows(z), cols(z)] result;
  for (i in 1:rows(z)) result[i] = fft(z[i]')';
  for (j in 1:cols(z)) result[, j] = fft(result[, j]);
  return result;
}

complex_matrix complex_inv_fft2(complex_matrix z) {
  if (num_elements(z) == 0) return z;
  return conj(fft2(conj(z))) / num_elements(z);
}

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
