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
