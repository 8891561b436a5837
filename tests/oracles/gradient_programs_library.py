"""More of the table of `gradient_programs`: parameters and their constraints, densities, kernels, blocks."""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

from gradient_programs_control import DATA, PROGRAMS, case, model, point, with_functions

__all__ = ["DATA", "PROGRAMS", "point"]

# ---------------------------------------------------------------- constraints

model(
    "constrained-scalars",
    "real<lower=0> a; real<upper=2> c; real<lower=-1, upper=3> d; real<offset=1.5, multiplier=3> e; real<multiplier=2> f; real<offset=s> g;",
    "target += -a * c + d * e - square(d) + f * g;",
)
model(
    "constrained-vectors",
    "vector<lower=0>[N] v; row_vector<upper=1>[K] w; matrix<lower=-1, upper=1>[N, K] M; array[2, 3] real<lower=2> q; array[2] vector<offset=1, multiplier=2>[K] p;",
    """
target += -sum(v) * w[1] + sum(M .* A) - q[1, 2] * q[2, 3] - sum(square(p[1])) + sum(p[2] .* p[1]) - sum(to_vector(M)) * sum(v);
""",
)
model(
    "bounds-from-parameters",
    "real a; real<lower=a> c; real<lower=a, upper=a + 5 + exp(c)> d; vector<lower=c, upper=d + 100>[K] v; real<offset=a, multiplier=1 + square(c)> e;",
    "target += -square(a) + c * d - sum(square(v)) * e;",
)
model(
    "bounds-containers",
    "vector[N] m; vector<lower=m>[N] v; vector<lower=x, upper=x + 1>[N] w; vector<offset=m, multiplier=exp(x)>[N] u; matrix<upper=A>[N, K] M; array[3] real<lower={1, 2, s}> q; row_vector<lower=r, upper=10>[N] t;",
    """
target += -sum(square(v)) + dot_product(w, u) - sum(square(M)) + q[1] * q[2] * q[3] - sum(square(t));
""",
)
model(
    "bounds-infinite",
    "real<lower=negative_infinity()> a; real<lower=negative_infinity(), upper=2> c; vector<lower=0, upper=positive_infinity()>[2] v; real<upper=positive_infinity()> d;",
    "target += -a * a + c - sum(v) - square(d);",
)
model(
    "constrained-simplex",
    "simplex[K] p; array[2] simplex[4] q;",
    "target += dot_product(square(p), x[1:3]) + sum(log(q[1])) - sum(square(q[2] .* x));",
)
model(
    "constrained-ordered",
    "ordered[K] p; positive_ordered[N] q; array[2, 2] ordered[2] t;",
    "target += -sum(square(p)) - dot_product(q, q) - sum(square(t[1, 2])) + t[2, 1, 1] - square(t[2, 1, 2]) - sum(exp(t[1, 1])) - sum(exp(t[2, 2]));",
)
model(
    "constrained-unit-vector",
    "unit_vector[K] p; array[2] unit_vector[2] q;",
    "target += dot_product(p, x[1:3]) + q[1, 1] * q[2, 2];",
)
model(
    "constrained-correlation",
    "corr_matrix[K] C; cholesky_factor_corr[4] L; array[2] corr_matrix[2] D;",
    "target += sum(square(C .* S)) + sum(L .* (x * x')) + D[1, 1, 2] * D[2, 2, 1] + log_determinant(C);",
)
model(
    "constrained-covariance",
    "cov_matrix[K] C; cholesky_factor_cov[K] L; cholesky_factor_cov[4, 2] T;",
    "target += -sum(square(C .* S)) - sum(square(L)) + sum(T) - sum(square(T));",
)
model(
    "constrained-sum-to-zero",
    "sum_to_zero_vector[N] p; sum_to_zero_matrix[3, 4] q; array[2] sum_to_zero_matrix[2, 2] t;",
    "target += dot_product(square(p), x) - sum(square(p)) - q[1, 2] ^ 2 + q[2, 3] * q[1, 1] - sum(square(t[2]));",
)
model(
    "constrained-stochastic-column",
    "column_stochastic_matrix[3, 2] C;",
    "target += sum(log(C[1])) + C[2, 1] * C[3, 2];",
)
model("constrained-stochastic-row", "row_stochastic_matrix[2, 3] R;", "target += sum(log(R[1])) + R[2, 1] * R[2, 3];")
model(
    "constrained-sizes-of-one",
    "simplex[1] p; ordered[1] q; cov_matrix[1] C; cholesky_factor_corr[1] L; positive_ordered[1] o; real a;",
    "target += p[1] * a - square(q[1]) - C[1, 1] * o[1] + L[1, 1];",
)

# ---------------------------------------------------------------- densities

model(
    "normal-mixtures-of-arguments",
    "real a; real<lower=0> t; vector[N] v; vector<lower=0>[N] w; array[N] real q;",
    """
a ~ normal(0, 1); v ~ normal(a, t); x ~ normal(v, 2); x ~ normal(s, t); v ~ normal(x, w); q ~ normal(v, w); s ~ normal(a, t); r ~ normal(a, w); a ~ normal(v, t); y ~ normal(a, t);
v ~ normal(s, 1.5); x ~ normal(q, w); target += normal_lpdf(v | x, t) + normal_lupdf(v | 0, w) + normal_lpdf(x | 0, 1) + normal_lupdf(x | s, 1) + normal_lpdf(2 | a, 1) + normal_lpdf(v' | r, t);
""",
)
model(
    "continuous-location-scale",
    "real a; real<lower=0> t; vector[N] v;",
    """
v ~ student_t(3 + t, a, t); v ~ cauchy(a, t); v ~ double_exponential(a, t); v ~ logistic(a, t); v ~ gumbel(a, t); v ~ skew_normal(a, t, 1.5); v ~ exp_mod_normal(a, t, 0.5 + t); x ~ student_t(4, v, 2); v ~ std_normal();
target += student_t_lpdf(v | 4, 0, 1) + cauchy_lpdf(x | v, t) + logistic_lupdf(x | a, 1) + skew_normal_lpdf(v | 0, 1, a) + von_mises_lpdf(v | a, t) + gumbel_lpdf(x | a, t);
""",
)
model(
    "continuous-positive",
    "vector<lower=0>[N] v; real<lower=0> a; real<lower=0> t;",
    """
v ~ lognormal(log(a), t); v ~ gamma(a, t); v ~ inv_gamma(a, 2); v ~ exponential(t); v ~ weibull(a, t); v ~ frechet(a, t); v ~ chi_square(a); v ~ inv_chi_square(t); v ~ scaled_inv_chi_square(a, t); v ~ rayleigh(t); v ~ loglogistic(a, t); v + 1 ~ pareto(0.5, a); v ~ pareto_type_2(0.1 * 0, t, a);
target += gamma_lpdf(v | 2, 3) + lognormal_lpdf(1.5 | a, t) + weibull_lpdf(v | 2, t) + inv_gamma_lupdf(2 | a, t) + exponential_lpdf(v | v);
""",
)
model(
    "continuous-bounded",
    "vector<lower=0, upper=1>[N] v; real<lower=0> a; real<lower=0> t;",
    "v ~ beta(a, t); v ~ uniform(-1 * 0.5, 2); v ~ beta_proportion(inv_logit(a), t); target += uniform_lpdf(v | -a, 1 + t) + beta_lpdf(v | 2, t) + beta_lpdf(0.3 | a, t) + beta_lupdf(v | v + 1, 2);",
)
model(
    "discrete-counts",
    "vector[N] v; real<lower=0> a; real<lower=0> t;",
    """
y ~ poisson(a); y ~ poisson_log(v); y ~ neg_binomial(a, t); y ~ neg_binomial_2(exp(v), t); y ~ neg_binomial_2_log(v, a); 3 ~ poisson(a);
target += poisson_lpmf(y | exp(v)) + poisson_log_lupmf(y | s) + neg_binomial_2_lpmf(y | a, 2) + neg_binomial_lupmf(y | 2, t) + poisson_lpmf({1, 2} | a);
""",
)
model(
    "discrete-trials",
    "vector[N] v; real<lower=0, upper=1> p; real<lower=0> a; real<lower=0> t;",
    """
b ~ bernoulli(p); b ~ bernoulli_logit(v); y ~ binomial(5, p); y ~ binomial({5, 6, 7, 8}, inv_logit(v)); y ~ binomial_logit(9, v); 1 ~ bernoulli(p); y ~ beta_binomial(6, a, t);
target += bernoulli_logit_lpmf(b | a) + binomial_lpmf(y | 5, p) + bernoulli_lpmf(b | inv_logit(v)) + binomial_logit_lupmf(y | 5, a);
""",
)
model(
    "discrete-categories",
    "simplex[K] p; vector[K] v; ordered[2] c; real e; vector[N] m;",
    """
jdx ~ categorical(p); jdx ~ categorical_logit(v); 2 ~ categorical(p); {1, 3} ~ categorical_logit(v); 2 ~ ordered_logistic(e, c); {1, 2, 3, 2} ~ ordered_logistic(m, c); {1, 2, 3, 2} ~ ordered_probit(m, c);
target += categorical_lpmf(2 | softmax(v)) + {2, 0, 3} .* {1, 1, 1} * 0;
""".replace(
        " + {2, 0, 3} .* {1, 1, 1} * 0", " + multinomial_lpmf({2, 0, 3} | p) + multinomial_logit_lupmf({1, 4, 1} | v)"
    ),
)
model(
    "multivariate-normal",
    "vector[K] v; vector[K] m; cholesky_factor_cov[K] L; cov_matrix[K] C; array[2] vector[K] q;",
    """
v ~ multi_normal_cholesky(m, L); v ~ multi_normal(m, C); v ~ multi_normal_prec(m, C); q ~ multi_normal_cholesky(m, L); x[1:3] ~ multi_normal(v, S); q ~ multi_normal(q, S); v ~ multi_normal_cholesky(rep_vector(0, K), L); target += multi_student_t_lpdf(v | 4, m, C);
target += multi_normal_lpdf(q | m, C) + multi_normal_cholesky_lupdf(v | m, cholesky_decompose(S)) + multi_normal_lpdf(v | x[1:3], S);
""",
)
model(
    "multivariate-others",
    "simplex[K] p; vector<lower=0>[K] t; cov_matrix[K] C; corr_matrix[K] O; cholesky_factor_corr[K] L; real<lower=0> a;",
    """
p ~ dirichlet(t); p ~ dirichlet([1.0, 2, s]'); C ~ wishart(K + 1 + a, S); C ~ inv_wishart(K + 2 + a, S); target += wishart_lpdf(S | 4.5, C); O ~ lkj_corr(a); L ~ lkj_corr_cholesky(1 + a); L ~ lkj_corr_cholesky(2);
target += dirichlet_lpdf(p | t) + inv_wishart_lupdf(S | 5 + a, C) + lkj_corr_cholesky_lpdf(L | 3);
""",
)
model(
    "glms",
    "real a; vector[K] v; real<lower=0> t; vector[N] av;",
    """
b ~ bernoulli_logit_glm(A, a, v); y ~ poisson_log_glm(A, av, v); x ~ normal_id_glm(A, a, v, t); y ~ neg_binomial_2_log_glm(A, a, v, t);
target += bernoulli_logit_glm_lpmf(b | A, av, v) + normal_id_glm_lpdf(x | A, av, v, t) + poisson_log_glm_lpmf(y | A, a, v);
""",
)
model(
    "mixtures",
    "vector[2] m; simplex[2] w; real<lower=0> t; real<lower=0, upper=1> l;",
    """
for (n in 1:N) { vector[2] lp = log(w); for (k in 1:2) lp[k] += normal_lpdf(x[n] | m[k], t); target += log_sum_exp(lp); }
for (n in 1:N) target += log_mix(l, normal_lpdf(x[n] | m[1], 1), normal_lpdf(x[n] | m[2], t)) + log_sum_exp(log(l) + normal_lupdf(x[n] | 0, t), log1m(l));
""",
)
model(
    "truncation",
    "real<lower=0> t; real a; vector<lower=0>[N] v;",
    "for (n in 1:N) v[n] ~ normal(a, t) T[0, ]; s ~ normal(a, t) T[, 2]; s ~ normal(a, t) T[-1, 2]; for (n in 1:N) y[n] ~ poisson(t) T[, 9];",
)
model(
    "cumulative-functions",
    "real a; real<lower=0> t; vector[N] v;",
    """
target += normal_lcdf(v | a, t) + normal_lccdf(x | a, t) + log(normal_cdf(a | 0, t)) + exponential_lccdf(exp(v) | t) + logistic_lcdf(x | v, t) + cauchy_lcdf(a | 0, t) + weibull_lccdf(t | 2, 3) + std_normal_lcdf(a) + double_exponential_lcdf(v | 0, t) + gumbel_lcdf(a | 0, t) + lognormal_lcdf(t | a, 1);
""",
)
model(
    "density-of-expressions",
    "vector[N] v; vector[K] w; real<lower=0> t;",
    "x ~ normal(A * w + v, exp(v)); v[idx] ~ normal(x[idx], t); x[2:3] ~ normal(v[:2] .* v[2:3], t); A[, 2] ~ normal(A * w, t); to_vector(A) ~ normal(w[2], t); A[2]' ~ normal(w, 1); for (n in 1:N) x[n] ~ normal(A[n] * w, t);",
)
model(
    "density-over-arrays-and-matrices",
    "matrix[N, K] M; array[2, 3] real q; array[2] vector[3] p; real a;",
    "to_vector(M) ~ normal(a, 1); for (i in 1:2) { q[i] ~ normal(a, 2); p[i] ~ normal(q[i], 1); } target += normal_lpdf(to_array_1d(q) | a, 1) + std_normal_lpdf(to_vector(M'));",
)
model(
    "density-zero-size",
    "vector[Z] e; real a; real<lower=0> t;",
    "e ~ normal(a, t); e ~ normal(0, 1); target += normal_lpdf(e | a, t) + poisson_lpmf(y[1:Z] | t) + normal_lpdf(a | e, t);",
)
model(
    "density-in-expression",
    "vector[N] v; real<lower=0> t;",
    "real lp = normal_lpdf(v | 0, t); target += lp * 2 + exp(0.1 * normal_lpdf(v[1] | v[2], t)) - normal_lupdf(x | v, t); vector[2] u = [normal_lpdf(v[1] | 0, 1), cauchy_lpdf(t | 0, 1)]'; target += log_sum_exp(u);",
)
model(
    "lupdf-against-lpdf",
    "real a; real<lower=0> t;",
    "target += normal_lupdf(x | a, 2); target += -normal_lpdf(x | a, 2); target += gamma_lupdf(t | s, 2) - gamma_lpdf(t | s, 2) + poisson_lupmf(y | t) - poisson_lpmf(y | t);",
)

# ---------------------------------------------------------------- kernels

model(
    "kernel-cholesky",
    "cov_matrix[K] C; matrix[K, K] M;",
    "matrix[K, K] L = cholesky_decompose(C); target += sum(L .* M) + sum(square(cholesky_decompose(crossprod(M) + S))) + sum(log(diagonal(L)));",
)
model(
    "kernel-triangular-division",
    "cholesky_factor_cov[K] L; vector[K] v; matrix[K, 2] B; row_vector[K] w; matrix[2, K] D;",
    "target += sum(square(mdivide_left_tri_low(L, v))) + sum(square(mdivide_left_tri_low(L, B))) + sum(square(mdivide_right_tri_low(w, L))) + sum(square(mdivide_right_tri_low(D, L))) + sum(mdivide_left_tri_low(cholesky_decompose(S), v));",
)
model(
    "kernel-division",
    "matrix[K, K] M; vector[K] v; matrix[K, 2] B; row_vector[K] w; matrix[2, K] D; cov_matrix[K] C;",
    "matrix[K, K] G = M + 4 * S; target += sum(square(G \\ v)) + sum(square(G \\ B)) + sum(square(w / G)) + sum(square(D / G)) + sum(square(mdivide_left_spd(C, v))) + sum(square(mdivide_right_spd(w, C))) + sum(mdivide_left(G, v)) + sum(S \\ v) + sum(mdivide_right(w, S));",
)
model(
    "kernel-inverse-determinant",
    "matrix[K, K] M; cov_matrix[K] C;",
    "matrix[K, K] G = M + 4 * S; target += sum(square(inverse(G))) + sum(square(inverse_spd(C))) + log_determinant(G) + log(determinant(G)) + log_determinant(C) + sum(square(chol2inv(cholesky_decompose(C))));",
)
model(
    "kernel-eigen",
    "cov_matrix[K] C;",
    "target += sum(eigenvalues_sym(C) .* x[1:3]) + sum(square(eigenvectors_sym(C)) .* S);",
)
model(
    "kernel-exp-svd-qr",
    "matrix[K, K] M; matrix[N, K] B;",
    "target += sum(square(matrix_exp(0.3 * M))) + sum(singular_values(B + 2 * A)) + sum(square(qr_thin_R(B + A)) .* S) + sum(square(svd_U(B + A))[1] .* x[1:3]');",
)
model(
    "kernel-sorting",
    "vector[N] v; array[N] real a; row_vector[N] w;",
    "target += dot_product(sort_asc(v), x) + sum(to_vector(sort_desc(a)) .* x) + v[sort_indices_asc(v)[2]] ^ 2 + sort_asc(w) * x + a[sort_indices_desc(a)][1] ^ 2;",
)
model(
    "kernel-in-loop",
    "array[2] cov_matrix[K] C; vector[K] v;",
    "real acc = 0; for (i in 1:2) { matrix[K, K] L = cholesky_decompose(C[i]); acc = acc * sum(L) + sum(log(diagonal(L))); target += sum(square(mdivide_left_tri_low(L, v))); } target += acc;",
)
model(
    "gaussian-process",
    "real<lower=0> a; real<lower=0> l; vector[N] f;",
    """
array[N] real t = {0.1, 0.7, 1.5, 2.2}; matrix[N, N] C = gp_exp_quad_cov(t, a, l); for (n in 1:N) C[n, n] += 0.1; matrix[N, N] L = cholesky_decompose(C); target += multi_normal_cholesky_lpdf(x | L * f, L); f ~ std_normal();
matrix[N, N] D = gp_exp_quad_cov(t, 1.5, l) + diag_matrix(rep_vector(a, N)); x ~ multi_normal(rep_vector(0, N), D);
""",
)

# ---------------------------------------------------------------- blocks

case(
    "transformed-parameters",
    """
parameters { real a; vector[N] v; }
transformed parameters { vector[N] u = v * a; real<lower=0> t = exp(a); matrix[2, 2] M; M[1] = [a, t]; M[2] = [v[1], 2]; array[2] real q = {a, t}; vector[K] z; for (k in 1:K) z[k] = k == 1 ? a : z[k - 1] * v[k];
  real later; later = sum(u); later += 1; }
model { u ~ normal(0, t); target += sum(square(M)) + q[1] * q[2] + sum(z) * later; u + z[1] ~ normal(x, 1); }
""",
)
case(
    "transformed-data",
    """
transformed data { vector[N] z = (x - mean(x)) / sd(x); matrix[K, K] L = cholesky_decompose(S); int n = 0; array[N] int k; for (i in 1:N) { k[i] = N + 1 - i; n += k[i]; } real c = n * s; vector[N] w; for (i in 1:N) w[i] = i == 1 ? s : w[i - 1] + z[i];
  array[2] matrix[2, 2] Q = {[[1, 2], [3, 4]], [[s, 1], [2, c]]}; row_vector[N] xr = x'; }
parameters { real a; vector[N] v; vector[K] u; }
model { v ~ normal(a * z, 1); target += sum(v[k] .* w) + c * a + sum(square(L * u)) + n * a + Q[2, 1, 1] * Q[1, 2, 1] * a + xr * v; }
""",
)
case(
    "generated-quantities",
    """
parameters { real a; vector[N] v; simplex[K] p; }
transformed parameters { real t = a * 2; vector[2] u = [t, v[1]]'; }
model { a ~ normal(0, 1); v ~ normal(a, 1); }
generated quantities { real g = t + sum(v); vector[N] h; for (n in 1:N) h[n] = normal_lpdf(x[n] | v[n], 1); array[2, 2] int k = {{1, 2}, {3, y[4]}}; matrix[2, K] M; M[1] = p'; M[2] = square(p)'; int big = a > 100; real f = k[2, 1] / 2; row_vector[N] rv = v'; array[2] vector[2] q = {u, 2 * u}; { real local = 3; g += local; } }
""",
)
model(
    "special-functions",
    "real a; real<lower=0> c; vector[K] v;",
    """
target += sum(bessel_first_kind(2, v)) + bessel_second_kind(1, c) + sum(modified_bessel_first_kind({0, 1, 2}, v)) + modified_bessel_second_kind(2, c);
target += ldexp(a, 3) + sum(ldexp(v, {1, 2, 3})) + sum(owens_t(v, a)) + inv_inc_beta(1.2, c, inv_logit(a));
target += sum(student_t_qf(inv_logit(v), 3, a, c)) + student_t_qf(0.5, c, a, c);
target += skew_normal_lcdf(v | a, c, v) + skew_normal_cdf(v | a, 1.2, c) + skew_normal_lccdf(v | a, c, 2);
target += von_mises_lcdf(0.3 | v, c) + von_mises_cdf(tanh(a) | v, 1.2) + von_mises_lccdf(tanh(a) | v, c);
target += yule_simon_lcdf({3, 5} | c) + yule_simon_lccdf(3 | c) + yule_simon_cdf(0 | c) + yule_simon_cdf(4 | c);
""",
)
model(
    "first-passage-times",
    "real<lower=0> a; real v; real<lower=0> c; vector[K] u;",
    """
vector[K] t = [1.3, 2.2, 0.9]';
target += wiener_lpdf(t | rep_vector(1 + a, K), t / 5, t / 4, u, rep_vector(c, K)) + wiener_lpdf(t[1] | 1 + a, 0.2, 0.4, v, c, 0.01);
target += wiener_lpdf(t[2] | 1 + a, 0.2, 0.4, v, 0.5, 0.1, 0.3) + wiener_lcdf_unnorm(t, 1 + square(u), t / 5, t / 4, u);
target += wiener_lccdf_unnorm(t[1], 1 + a, 0.2, 0.4, v, 0.01) + wiener_lcdf_unnorm(t[1], 1 + a, 0.2, 0.4, v, 0, 0.1, 0.1);
target += beta_neg_binomial_lcdf({2, 30} | 2, a, c) + beta_neg_binomial_lccdf(5 | a, 2, c) + beta_neg_binomial_cdf(1 | a, c, 2);
target += hypergeometric_2F1(a, v, 1 + c, tanh(v)) + hypergeometric_3F2(u, [a, c], 0.3) + hypergeometric_1F0(v, 0.5);
""",
)
model(
    "decompositions-as-tuples",
    "matrix[3, 2] M; matrix[2, 3] W; real a;",
    """
tuple(matrix[3, 3], matrix[3, 2]) full = qr(M);
tuple(matrix[3, 2], vector[2], matrix[2, 2]) parts = svd(M);
target += sum(full.1 * diag_matrix([1, 2, 3]')) + sum(full.2) + sum(qr_Q(W)) + sum(qr_R(W) .* W) + sum(qr_thin(M).2);
target += sum(parts.2) + sum(square(parts.1)) + sum(eigendecompose_sym(M * M').2) + sum(csr_extract(W).1);
target += sum(generalized_inverse(M)) + sum(generalized_inverse(W) .* M) + trace_dot(M, W) + to_array_2d(W)[2, 1];
target += sum(matrix_exp_multiply(M * W, M)) + sum(scale_matrix_exp_multiply(a, W * M, W));
""",
)
case(
    "generated-quantities-control",
    """
parameters { real a; vector[N] v; }
model { }
generated quantities { real p = a; int n = 0; while (p < 10) { p = p * p + 1.3; n += 1; } vector[N] u = rep_vector(0, N); for (i in 1:N) { if (v[i] < 0) continue; u[i] = v[i]; if (i == 3) break; } real e = log_sum_exp(v); vector[N] sorted = sort_asc(v); array[N] int order = sort_indices_asc(v); real total = 0; for (i in order) total += i * v[i]; }
""",
)
case(
    "data-only-loops",
    """
parameters { real a; vector[N] v; }
model { vector[N] z = x; for (i in 1:3) { z = z .* x + i; } matrix[N, N] C; for (i in 1:N) for (j in 1:N) C[i, j] = exp(-square(x[i] - x[j])) + (i == j); matrix[N, N] L = cholesky_decompose(C); real acc = 0; for (n in 1:N) acc += z[n] * r[n]; v ~ multi_normal_cholesky(a * z, L); target += acc * a; int m = 0; for (n in 1:N) if (y[n] > 0) m += 1; target += m * a; vector[m] sub; m = 0; for (n in 1:N) if (y[n] > 0) { m += 1; sub[m] = x[n]; } target += sum(v[1:m] .* sub); }
""",
)
case(
    "user-jacobian",
    """
parameters { real a; vector[N] v; }
transformed parameters { real<lower=0> t = exp(a); jacobian += a; vector[N] u = exp(v); jacobian += sum(v); }
model { t ~ gamma(2, 1); u ~ exponential(t); }
""",
)
with_functions(
    "function-jacobian",
    "real pos_jacobian(real a) { jacobian += a; return exp(a); }",
    "real a; real c;",
    "target += a * c;",
)
with_functions(
    "function-transform-in-parameters",
    "vector scale(vector v, real t) { vector[num_elements(v)] u = v; for (i in 2:num_elements(v)) u[i] += u[i - 1] * t; return u; }",
    "real<lower=0> t; vector[N] v; vector<lower=scale(v, t)>[N] w;",
    "target += -sum(square(w)) - sum(square(v)) - t;",
)
