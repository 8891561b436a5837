/* log of the modified Bessel function of the first kind, order v, at z >= 0. Stan Functions Reference, "Bessel functions".
 * The power series has positive terms only; for large z the asymptotic series. */

real log_modified_bessel_first_kind(real v, real z) {
  require_at_least(v, -1.0);
  require_nonnegative(z);
  real order = v == -1 ? 1 : v; // I(-1, z) = I(1, z)
  return z == 0 ? (order == 0 ? 0 : order > 0 ? negative_infinity() : positive_infinity())
         : z == positive_infinity() ? z
         : order == positive_infinity() ? negative_infinity()
         : order >= 1000 ? bessel_first_kind_log_uniform(order, z)
         : z > 50 + square(order) ? bessel_first_kind_log_asymptotic(order, z)
         : bessel_first_kind_log_series(order, z);
}

/* The sum is head + rest, both in units of exp(log_scale); head is the first term. */
real bessel_first_kind_log_series(real v, real z) {
  real quarter = 0.25 * square(z);
  real head = 1;
  real rest = 0;
  real term = 1;
  real log_scale = 0;
  int k = 0;
  while (term > 1e-17 * (head + rest)) {
    k += 1;
    term *= quarter / (k * (k + v));
    rest += term;
    if (rest > 1e200) {
      log_scale += log(rest);
      head /= rest;
      term /= rest;
      rest = 1;
    }
  }
  return (rest < 1 ? log1p(rest) : log_scale + log(head + rest)) + v * log(0.5 * z) - lgamma(v + 1);
}

/* For large orders and all z: Debye's expansion, DLMF 10.41.3, of which four terms have all digits from order 1000 on. The
 * series would need about as many terms as z is large. */
real bessel_first_kind_log_uniform(real v, real z) {
  real root = hypot(v, z);
  real q = 1 / root;
  real p = square(v / root);
  real u1 = (3 - 5 * p) / 24;
  real u2 = (81 + p * (-462 + p * 385)) / 1152;
  real u3 = (30375 + p * (-369603 + p * (765765 - p * 425425))) / 414720;
  real u4 = (4465125 + p * (-94121676 + p * (349922430 + p * (-446185740 + p * 185910725)))) / 39813120;
  real angle = v / z > 1e8 ? log(v) - log(z) + log2() : asinh(v / z);
  return root - v * angle - 0.5 * log(2 * pi() * root) + log1p(q * (u1 + q * (u2 + q * (u3 + q * u4))));
}

/* Where v is half an integer the terms end; their derivatives do not, so a bound of both decides. */
real bessel_first_kind_log_asymptotic(real v, real z) {
  real mu = 4 * square(v);
  real term = 1;
  real total = 1;
  real bound = 1;
  int k = 0;
  while (k < 60 && bound > 1e-17) {
    k += 1;
    term *= -(mu - square(2 * k - 1)) / (k * 8 * z);
    bound *= (abs(mu - square(2 * k - 1)) + 1) / (k * 8 * z);
    total += term;
  }
  return z - 0.5 * log(2 * pi() * z) + log(total);
}

/* Bessel functions of both kinds, and modified ones, of an integer order. Values that run over are errors, as in Stan. */
real bessel_first_kind(int v, real z) {
  require_not_nan(z);
  return bessel_j(v, z);
}

real bessel_second_kind(int v, real z) {
  if (z <= 0) require_positive(z);
  real result = bessel_y(v, z);
  if (is_inf(result)) require_finite(result);
  return result;
}

real modified_bessel_first_kind(int v, real z) {
  require_not_nan(z);
  real result = bessel_i(v, z);
  require_finite(result);
  return result;
}

real modified_bessel_second_kind(int v, real z) {
  if (z <= 0) require_positive(z);
  real result = bessel_k(v, z);
  if (is_inf(result)) require_finite(result);
  return result;
}
