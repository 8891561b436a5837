// posterior: dugongs_data-dugongs_model
// names of data: {"N": "n", "x": "age", "Y": "length"}
data {
  int n;
  vector[n] age;
  vector[n] length;
}
parameters {
  real alpha;
  real beta;
  real<lower=0.5, upper=1> lambda;
  real<lower=0> tau;
}
model {
  alpha ~ normal(0, 1000);
  beta ~ normal(0, 1000);
  tau ~ gamma(0.0001, 0.0001);
  length ~ normal(alpha - beta * lambda ^ age, inv_sqrt(tau));
}
