/* log of the modified Bessel function of the first kind, order v, at z >= 0. Stan Functions Reference, "Bessel functions".
 * The power series has positive terms only; for large z the asymptotic series. */

real log_modified_bessel_first_kind(real v, real z) {
  require_at_least(v, -1.0);
  require_nonnegative(z);
  return z == 0 ? (v == 0 ? 0 : v > 0 ? negative_infinity() : positive_infinity())
         : z > 50 + square(v) ? bessel_first_kind_log_asymptotic(v, z)
         : bessel_first_kind_log_series(v, z);
}

real bessel_first_kind_log_series(real v, real z) {
  real quarter = 0.25 * square(z);
  real term = 1;
  real total = 1;
  real log_scale = 0;
  int k = 0;
  while (term > 1e-17 * total) {
    k += 1;
    term *= quarter / (k * (k + v));
    total += term;
    if (total > 1e200) {
      log_scale += log(total);
      term /= total;
      total = 1;
    }
  }
  return log_scale + log(total) + v * log(0.5 * z) - lgamma(v + 1);
}

real bessel_first_kind_log_asymptotic(real v, real z) {
  real mu = 4 * square(v);
  real term = 1;
  real total = 1;
  int k = 0;
  while (k < 60 && abs(term) > 1e-17 * abs(total)) {
    k += 1;
    term *= -(mu - square(2 * k - 1)) / (k * 8 * z);
    total += term;
  }
  return z - 0.5 * log(2 * pi() * z) + log(total);
}
