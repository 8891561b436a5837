/* First passage times. Stan Functions Reference, "Wiener first passage time distribution". */

/* Wiener: time y, boundary separation alpha, non-decision time tau, relative starting point beta, drift delta. The
 * density of the scaled time by whichever of its two series needs fewer terms (Navarro and Fuss, 2009). */
real wiener_lpdf(real y, real alpha, real tau, real beta, real delta) {
  require_positive(y);
  require_positive_finite(alpha);
  require_positive_finite(tau);
  require_probability(beta);
  require_finite(delta);
  require_above_time(y, tau);
  return wiener_log_density(y - tau, alpha, beta, delta);
}

/* One summand: `~` drops no part of it. */
real wiener_log_density(real t, real alpha, real beta, real delta) {
  return delta * alpha * (1 - beta) - 0.5 * square(delta) * t - 2 * log(alpha)
         + wiener_log_series(t / square(alpha), 1 - beta);
}

real wiener_log_series(real x, real w) {
  real tolerance = 1e-16;
  real large = fmax(sqrt(fmax(0, -2 * log(pi() * x * tolerance) / x)) / pi(), 1 / (pi() * sqrt(x)));
  real small = fmax(2 + sqrt(fmax(0, -2 * x * log(2 * tolerance * sqrt(2 * pi() * x)))), sqrt(x) + 1);
  return small < large ? wiener_log_small_time(x, w, small) : wiener_log_large_time(x, w, large);
}

/* The first term is taken out, so that short times do not underflow. */
real wiener_log_small_time(real x, real w, real terms) {
  real total = 0;
  int k = 0;
  while (k < terms) {
    total += k == 0 ? w : (w + 2 * k) * exp(-0.5 * (square(w + 2 * k) - square(w)) / x)
                          + (w - 2 * k) * exp(-0.5 * (square(w - 2 * k) - square(w)) / x);
    k += 1;
  }
  return log(total) - 0.5 * square(w) / x - log_sqrt_two_pi() - 1.5 * log(x);
}

real wiener_log_large_time(real x, real w, real terms) {
  real total = 0;
  int k = 1;
  while (k < terms + 1) {
    total += k * sin(k * pi() * w) * exp(-0.5 * (k * k - 1) * square(pi()) * x);
    k += 1;
  }
  return log(total) - 0.5 * square(pi()) * x + log(pi());
}
