/* What the statistics of draws need of special functions. */
#include "quantiles.h"
#include "special.h"

/* The quantiles of the standard normal distribution at n probabilities. */
ULAM_API void ulam_normal_quantiles(const double *p, double *out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = ulam_inv_Phi(p[i]);
}

ULAM_API double ulam_beta_quantile(double p, double a, double b) { return quantile_beta(quantile_rising(p), a, b); }
