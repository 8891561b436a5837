/* Special functions of scalars that libm does not have. All are pure: no context, no errors; outside the domain the
 * value is NaN (or the limit), and what Stan rejects there is checked by the caller. */
#ifndef ULAM_SPECIAL_H
#define ULAM_SPECIAL_H

#include "context.h"

ULAM_API double ulam_digamma(double x);
ULAM_API double ulam_trigamma(double x);
ULAM_API double ulam_lbeta(double a, double b);
ULAM_API double ulam_lchoose(double n, double k);
ULAM_API double ulam_Phi(double x);
ULAM_API double ulam_inv_Phi(double p);
ULAM_API double ulam_inv_erfc(double x);
ULAM_API double ulam_lambert_w0(double x);
ULAM_API double ulam_lambert_wm1(double x);
ULAM_API double ulam_gamma_p(double a, double x);
ULAM_API double ulam_gamma_q(double a, double x);
ULAM_API double ulam_inc_beta(double a, double b, double x);
ULAM_API double ulam_log_Phi(double x);
ULAM_API double ulam_ldexp(double x, double n);
ULAM_API double ulam_inv_inc_beta(double a, double b, double p);
/* bessel.c */
ULAM_API double ulam_bessel_j(double v, double x);
ULAM_API double ulam_bessel_y(double v, double x);
ULAM_API double ulam_bessel_i(double v, double x);
ULAM_API double ulam_bessel_k(double v, double x);
/* normal_integrals.c */
ULAM_API double ulam_owens_t(double h, double a);
ULAM_API double ulam_log_skew_normal(double z, double a);
/* von_mises.c */
ULAM_API double ulam_log_von_mises(double low, double high, double kappa);
ULAM_API double ulam_log_von_mises_dk(double low, double high, double kappa);
ULAM_API double ulam_log_von_mises_dkk(double low, double high, double kappa);
ULAM_API double ulam_von_mises_normalizer(double kappa);
ULAM_API double ulam_von_mises_normalizer_dk(double kappa);
ULAM_API double ulam_von_mises_normalizer_dkk(double kappa);
/* special_differences.c */
ULAM_API double ulam_digamma_step(double x, double d);
ULAM_API double ulam_lgamma_step(double x, double d);
ULAM_API double ulam_normal_hazard_excess(double x);
ULAM_API double ulam_normal_hazard(double x, double log_Phi);
ULAM_API double ulam_log_scaled_Phi(double x);
/* Logs of the incomplete gamma and beta functions (y = 1 - x), and their slopes by x. */
ULAM_API double ulam_log_gamma_p(double a, double x);
ULAM_API double ulam_log_gamma_q(double a, double x);
ULAM_API double ulam_log_gamma_p_dx(double a, double x);
ULAM_API double ulam_log_gamma_q_dx(double a, double x);
ULAM_API double ulam_log_inc_beta(double a, double b, double x, double y);
ULAM_API double ulam_log_inc_beta_dx(double a, double b, double x, double y);
/* shape_derivatives.c */
ULAM_API double ulam_tetragamma(double x);
ULAM_API double ulam_log_gamma_p_da(double a, double x);
ULAM_API double ulam_log_gamma_q_da(double a, double x);
ULAM_API double ulam_log_inc_beta_da(double a, double b, double x, double y);
ULAM_API double ulam_log_inc_beta_db(double a, double b, double x, double y);
ULAM_API double ulam_pentagamma(double x);
ULAM_API double ulam_log_gamma_p_daa(double a, double x);
ULAM_API double ulam_log_gamma_q_daa(double a, double x);
ULAM_API double ulam_log_inc_beta_daa(double a, double b, double x, double y);
ULAM_API double ulam_log_inc_beta_dab(double a, double b, double x, double y);
ULAM_API double ulam_log_inc_beta_dbb(double a, double b, double x, double y);

/* lgamma without its global variable. */
double special_lgamma(double x);
/* lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2, for x >= 10. */
double special_stirling_rest(double x);
/* digamma(x) - log(x), for x >= 10. */
double special_digamma_rest(double x);
/* log(1 + x) - x, accurate near 0. */
double special_log1pmx(double x);
/* ulam_inc_beta(a, b, x), given y = 1 - x as well: where x is close to 1, that is the more accurate of the two. */
double special_gamma_uniform_da(double a, double x);
int special_is_nearly_one(double a, double b, double x, double y);
int special_is_uniform(double a, double x);
double special_inc_beta(double a, double b, double x, double y);

#endif
