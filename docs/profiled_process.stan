// The Gaussian process of examples/gaussian_process.stan, with profiles.
data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[N, N] L_K;
  profile("covariance") {
    matrix[N, N] K;
    profile("kernel") {
      K = gp_exp_quad_cov(x, alpha, rho);
    }
    for (n in 1:N) {
      profile("add diagonal") {
        K[n, n] = K[n, n] + square(sigma) + 1e-9;
      }
    }
    profile("cholesky") {
      L_K = cholesky_decompose(K);
    }
  }
}
model {
  profile("priors") {
    rho ~ inv_gamma(5, 5);
    alpha ~ normal(0, 2);
    sigma ~ normal(0, 1);
  }
  profile("likelihood") {
    y ~ multi_normal_cholesky(rep_vector(0, N), L_K);
  }
}
generated quantities {
  vector[N] y_new;
  profile("replication") {
    y_new = multi_normal_cholesky_rng(rep_vector(0, N), L_K);
  }
}
