// posterior: Rate_3_data-Rate_3_model
data {
  int n1;
  int n2;
  int k1;
  int k2;
}
parameters {
  real<lower=0, upper=1> theta;
}
transformed parameters {
  real fail = 1 - theta;
}
model {
  n1 - k1 ~ binomial(n1, fail);
  n2 - k2 ~ binomial(n2, fail);
  theta ~ beta(1, 1);
}
