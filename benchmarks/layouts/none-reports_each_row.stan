// expect: none
// data: N = 3000; y = bits(N); dose = index(N, 4)
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> y;
  array[N] int<lower=1, upper=4> dose;
}
parameters {
  vector[4] a;
}
model {
  a ~ normal(0, 1);
  for (n in 1 : N) {
    if (a[dose[n]] > 50) {
      print("row ", n, " is far away");
    }
    y[n] ~ bernoulli_logit(a[dose[n]]);
  }
}
