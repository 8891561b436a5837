/* First passage times. Stan Functions Reference, "Wiener first passage time distribution". */

/* Wiener: time y, boundary separation alpha, non-decision time tau, relative starting point beta, drift delta. The
 * density of the scaled time by whichever of its two series needs fewer terms (Navarro and Fuss, 2009). From the lower
 * boundary, beta 0, nothing comes through; the series would be what rounding leaves. */
real wiener_lpdf(real y, real alpha, real tau, real beta, real delta) {
  require_positive(y);
  require_positive_finite(alpha);
  require_positive_finite(tau);
  require_probability(beta);
  require_finite(delta);
  require_above_time(y, tau);
  if (beta == 0) return negative_infinity();
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

/* With a drift that is normal with standard deviation sv over trials; sv >= 0. The last form has a precision, which is not
 * needed: the series has all digits. */
real wiener_lpdf(real y, real alpha, real tau, real beta, real delta, real sv) {
  require_positive_finite(y);
  require_positive_finite(alpha);
  require_nonnegative(tau);
  require_finite(tau);
  require_greater(beta, 0.0);
  require_less(beta, 1.0);
  require_finite(delta);
  require_nonnegative(sv);
  require_finite(sv);
  require_above_time(y, tau);
  return wiener_log_density(y - tau, alpha, beta, delta, sv);
}

real wiener_lpdf(real y, real alpha, real tau, real beta, real delta, real sv, data real precision) {
  return wiener_lpdf(y | alpha, tau, beta, delta, sv);
}

real wiener_log_density(real t, real alpha, real beta, real delta, real sv) {
  real distance = alpha * (1 - beta);
  real spread = 1 + square(sv) * t;
  return (square(sv * distance) + 2 * delta * distance - square(delta) * t) / (2 * spread) - 0.5 * log1p(square(sv) * t)
         - 2 * log(alpha) + wiener_log_series(t / square(alpha), 1 - beta);
}

/* Also with a starting point that is uniform on [beta - sw / 2, beta + sw / 2], and a nondecision time that is uniform on
 * [tau, tau + st]: means over both. */
real wiener_lpdf(real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st) {
  wiener_requirements(y, alpha, tau, beta, delta, sv, sw, st);
  return wiener_log_mean(0, y - tau, alpha, beta, delta, sv, sw, st);
}

real wiener_lpdf(real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st, data real precision) {
  return wiener_lpdf(y | alpha, tau, beta, delta, sv, sw, st);
}

void wiener_requirements(real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st) {
  require_positive_finite(y);
  require_positive_finite(alpha);
  require_nonnegative(tau);
  require_finite(tau);
  require_greater(beta, 0.5 * sw);
  require_less(beta, 1 - 0.5 * sw);
  require_finite(delta);
  require_nonnegative(sv);
  require_finite(sv);
  require_nonnegative(sw);
  require_nonnegative(st);
  require_finite(st);
  require_above_time(y, tau);
}

/* The rule of Gauss and Legendre with 20 points: nodes on [-1, 1], and weights that sum up to 1. */
array[] real gauss_legendre_nodes() {
  return {-0.99312859918509492, -0.96397192727791379, -0.91223442825132591, -0.83911697182221882, -0.74633190646015079,
          -0.63605368072651503, -0.5108670019508271, -0.37370608871541956, -0.22778585114164508, -0.076526521133497334,
          0.076526521133497334, 0.22778585114164508, 0.37370608871541956, 0.5108670019508271, 0.63605368072651503,
          0.74633190646015079, 0.83911697182221882, 0.91223442825132591, 0.96397192727791379, 0.99312859918509492};
}

array[] real gauss_legendre_weights() {
  return {0.0088070035695760592, 0.020300714900193471, 0.031336024167054532, 0.041638370788352374, 0.050965059908620218,
          0.059097265980759209, 0.065844319224588313, 0.071048054659191026, 0.074586493236301873, 0.076376693565362925,
          0.076376693565362925, 0.074586493236301873, 0.071048054659191026, 0.065844319224588313, 0.059097265980759209,
          0.050965059908620218, 0.041638370788352374, 0.031336024167054532, 0.020300714900193471, 0.0088070035695760592};
}

/* log of the mean of a function over starting points and nondecision times, and over drifts if it is a probability, which has
 * no closed form for random ones. which: 0 the density, 1 the probability of a time of at most t, 2 of more. Next to 0, where
 * walks that begin at a boundary are through, times are closer, fourth powers of even steps, and more. */
real wiener_log_mean(int which, real t, real alpha, real beta, real delta, real sv, real sw, real st) {
  array[20] real x = gauss_legendre_nodes();
  array[20] real weight = gauss_legendre_weights();
  int starts = sw == 0 ? 1 : 20;
  int times = st == 0 ? 1 : 20; /* in each part */
  int drifts = which == 0 || sv == 0 ? 1 : 20;
  real longest = which == 2 ? st : fmin(st, t);
  int powers = t >= longest;
  int parts = times == 1 ? 1 : powers && t - longest < 0.1 * square(alpha) ? 6 : 2;
  real total = negative_infinity();
  for (part in 1:parts) {
    for (i in 1:times) {
      real step = (2 * part - 1 + x[i]) / (2 * parts);
      real left = t - longest * (times == 1 ? 0.5 : powers ? 1 - square(square(step)) : step);
      real log_width = times == 1 ? 0 : log(weight[i] / parts) + (powers ? log(4) + 3 * log(step) : 0);
      for (j in 1:starts) {
        real start = beta + (starts == 1 ? 0 : 0.5 * sw * x[j]);
        real log_weight = log_width + (starts == 1 ? 0 : log(weight[j]));
        for (behind in 0:(drifts == 1 ? 0 : 1)) {
          for (k in 1:drifts) {
            real z = drifts == 1 ? 0 : 4.5 * (behind == 0 ? x[k] - 1 : x[k] + 1);
            real log_share = drifts == 1 ? 0 : log(9 * weight[k]) - 0.5 * square(z) - log_sqrt_two_pi();
            real log_part = wiener_log_part(which, left, alpha, start, delta + sv * z, sv);
            total = log_sum_exp(total, log_weight + log_share + log_part);
          }
        }
      }
    }
  }
  return total + (times == 1 ? 0 : log(longest / st));
}

real wiener_log_part(int which, real t, real alpha, real beta, real delta, real sv) {
  return which == 0 ? wiener_log_density(t, alpha, beta, delta, sv)
         : which == 1 ? wiener_log_until(t, alpha, 1 - beta, -delta)
         : wiener_log_after(t, alpha, 1 - beta, -delta);
}

/* log of the probability of the lower bound, from w times alpha above it, with drift v. */
real wiener_log_choice(real alpha, real w, real v) {
  real u = 2 * v * alpha;
  return v == 0 ? log1m(w) + wiener_choice_slope(u, w)
         : v > 0 ? -u * w + log1m_exp(-u * (1 - w)) - log1m_exp(-u)
         : log1m_exp(u * (1 - w)) - log1m_exp(u);
}

/* Its first two terms at 0. */
real wiener_choice_slope(real u, real w) { return -0.5 * u * w - square(u) * w * (2 - w) / 24; }

/* The two series, each for the times where it is short (Blurton, Kesselmeier and Gondan, 2012). */
real wiener_log_until(real t, real alpha, real w, real v) {
  return t <= 0 ? negative_infinity()
         : t < 0.3 * square(alpha) ? wiener_log_early(t, alpha, w, v)
         : log_diff_exp(wiener_log_choice(alpha, w, v), wiener_log_late(t, alpha, w, v));
}

/* Of times that nearly all walks need less for, the difference loses digits; the late series loses those of
 * exp((w alpha)^2 / (2 t)). */
real wiener_log_after(real t, real alpha, real w, real v) {
  if (t <= 0) return wiener_log_choice(alpha, w, v);
  if (t >= 0.3 * square(alpha)) return wiener_log_late(t, alpha, w, v);
  real all = wiener_log_choice(alpha, w, v);
  real early = wiener_log_early(t, alpha, w, v);
  return log1m_exp(fmin(early - all, 0)) < -0.5 * square(w * alpha) / t ? wiener_log_late(t, alpha, w, v)
         : log_diff_exp(all, early);
}

/* log of the probability of the lower bound within t: reflections, the first one taken out. */
real wiener_log_early(real t, real alpha, real w, real v) {
  real root = sqrt(t);
  real first = fmax(wiener_early_exponent(t, w * alpha, v), wiener_early_exponent(t, w * alpha, -v));
  real top = value_of(first);
  real total = 0;
  int j = 0;
  while (j < 2 || square(j * alpha) < 90 * t) {
    real r = alpha * (j + (j % 2 == 0 ? w : 1 - w));
    total += (j % 2 == 0 ? 1 : -1)
             * (exp(wiener_early_exponent(t, r, v) - top) + exp(wiener_early_exponent(t, r, -v) - top));
    j += 1;
  }
  return log(total) + top - v * alpha * w - 0.5 * square(v) * t;
}

real wiener_early_exponent(real t, real r, real v) { return log_scaled_Phi((v * t - r) / sqrt(t)) - 0.5 * square(r) / t; }

/* log of the probability of the lower bound after t. */
real wiener_log_late(real t, real alpha, real w, real v) {
  real x = t / square(alpha);
  real total = 0;
  int k = 1;
  while (k == 1 || square(pi() * k) * x < 90) {
    total += k * sin(k * pi() * w) / (square(v * alpha) + square(k * pi()))
             * exp(-0.5 * (k * k - 1) * square(pi()) * x);
    k += 1;
  }
  return log(2 * pi() * total) - 0.5 * square(pi()) * x - v * alpha * w - 0.5 * square(v) * t;
}

/* log of the probability of the upper bound at a time of at most y; not divided by that of the upper bound. */
real wiener_lcdf_unnorm(real y, real alpha, real tau, real beta, real delta) {
  return wiener_lcdf_unnorm(y, alpha, tau, beta, delta, 0, 0, 0);
}

real wiener_lcdf_unnorm(real y, real alpha, real tau, real beta, real delta, data real precision) {
  return wiener_lcdf_unnorm(y, alpha, tau, beta, delta, 0, 0, 0);
}

real wiener_lcdf_unnorm(real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st) {
  wiener_requirements(y, alpha, tau, beta, delta, sv, sw, st);
  return wiener_log_mean(1, y - tau, alpha, beta, delta, sv, sw, st);
}

real wiener_lcdf_unnorm(
  real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st, data real precision
) {
  return wiener_lcdf_unnorm(y, alpha, tau, beta, delta, sv, sw, st);
}

real wiener_lcdf_unnorm(vector y, vector alpha, vector tau, vector beta, vector delta) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lcdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i]);
  return total;
}

real wiener_lcdf_unnorm(vector y, vector alpha, vector tau, vector beta, vector delta, data real precision) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lcdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i]);
  return total;
}

real wiener_lcdf_unnorm(
  vector y, vector alpha, vector tau, vector beta, vector delta, vector sv, vector sw, vector st
) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  require_same_size(num_elements(sv), num_elements(y));
  require_same_size(num_elements(sw), num_elements(y));
  require_same_size(num_elements(st), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lcdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i], sv[i], sw[i], st[i]);
  return total;
}

real wiener_lcdf_unnorm(
  vector y, vector alpha, vector tau, vector beta, vector delta, vector sv, vector sw, vector st, data real precision
) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  require_same_size(num_elements(sv), num_elements(y));
  require_same_size(num_elements(sw), num_elements(y));
  require_same_size(num_elements(st), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lcdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i], sv[i], sw[i], st[i]);
  return total;
}

/* log of the probability of the upper bound at a time of more than y; not divided by that of the upper bound. */
real wiener_lccdf_unnorm(real y, real alpha, real tau, real beta, real delta) {
  return wiener_lccdf_unnorm(y, alpha, tau, beta, delta, 0, 0, 0);
}

real wiener_lccdf_unnorm(real y, real alpha, real tau, real beta, real delta, data real precision) {
  return wiener_lccdf_unnorm(y, alpha, tau, beta, delta, 0, 0, 0);
}

real wiener_lccdf_unnorm(real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st) {
  wiener_requirements(y, alpha, tau, beta, delta, sv, sw, st);
  return wiener_log_mean(2, y - tau, alpha, beta, delta, sv, sw, st);
}

real wiener_lccdf_unnorm(
  real y, real alpha, real tau, real beta, real delta, real sv, real sw, real st, data real precision
) {
  return wiener_lccdf_unnorm(y, alpha, tau, beta, delta, sv, sw, st);
}

real wiener_lccdf_unnorm(vector y, vector alpha, vector tau, vector beta, vector delta) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lccdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i]);
  return total;
}

real wiener_lccdf_unnorm(vector y, vector alpha, vector tau, vector beta, vector delta, data real precision) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lccdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i]);
  return total;
}

real wiener_lccdf_unnorm(
  vector y, vector alpha, vector tau, vector beta, vector delta, vector sv, vector sw, vector st
) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  require_same_size(num_elements(sv), num_elements(y));
  require_same_size(num_elements(sw), num_elements(y));
  require_same_size(num_elements(st), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lccdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i], sv[i], sw[i], st[i]);
  return total;
}

real wiener_lccdf_unnorm(
  vector y, vector alpha, vector tau, vector beta, vector delta, vector sv, vector sw, vector st, data real precision
) {
  require_same_size(num_elements(alpha), num_elements(y));
  require_same_size(num_elements(tau), num_elements(y));
  require_same_size(num_elements(beta), num_elements(y));
  require_same_size(num_elements(delta), num_elements(y));
  require_same_size(num_elements(sv), num_elements(y));
  require_same_size(num_elements(sw), num_elements(y));
  require_same_size(num_elements(st), num_elements(y));
  real total = 0;
  for (i in 1:num_elements(y)) total += wiener_lccdf_unnorm(y[i], alpha[i], tau[i], beta[i], delta[i], sv[i], sw[i], st[i]);
  return total;
}
