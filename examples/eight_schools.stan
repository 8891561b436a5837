// Effects of coaching in eight schools (Rubin 1981), partially pooled; written non-centred, so that the mode is finite.
data {
  int<lower=0> J;              // schools
  vector[J] y;                 // estimated effects
  vector<lower=0>[J] sigma;    // their standard errors
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta_raw;
}
transformed parameters {
  vector[J] theta = mu + tau * theta_raw;
}
model {
  mu ~ normal(0, 10);
  tau ~ student_t(4, 0, 10);
  theta_raw ~ std_normal();
  y ~ normal(theta, sigma);
}
generated quantities {
  vector[J] y_new;
  for (j in 1:J) y_new[j] = normal_rng(theta[j], sigma[j]);
}
