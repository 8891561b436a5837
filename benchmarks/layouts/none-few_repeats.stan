// expect: none
// data: N = 5000; time = np.abs(normal(N)) + 0.1; event = bits(N)
data {
  int<lower=0> N;
  vector<lower=0>[N] time;
  array[N] int<lower=0, upper=1> event;
}
parameters {
  real<lower=0> shape;
  real<lower=0> scale;
}
model {
  shape ~ exponential(1);
  scale ~ exponential(1);
  for (n in 1 : N) {
    if (event[n] == 1) {
      time[n] ~ weibull(shape, scale);
    } else {
      target += weibull_lccdf(time[n] | shape, scale);
    }
  }
}
