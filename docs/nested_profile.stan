// A name that is active already: an error when the inner statement is reached.
parameters {
  real b;
  real<lower=0> sigma;
}
model {
  profile("likelihood") {
    sigma ~ normal(0, 1);
    profile("likelihood") {
      b ~ normal(0, 1);
    }
  }
}
