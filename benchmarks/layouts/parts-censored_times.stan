// expect: parts of rows
// data: N = 12000; time = np.abs(normal(N)) + 0.1; event = bits(N)
// other: for (n in 1 : N) target += event[n] ? logistic_lpdf(time[n] | middle, scale) : normal_lccdf(time[n] | middle, scale); middle ~ normal(0, 1); scale ~ exponential(1);
data {
  int<lower=0> N;
  vector<lower=0>[N] time;
  array[N] int<lower=0, upper=1> event;
}
parameters {
  real middle;
  real<lower=0> scale;
}
model {
  middle ~ normal(0, 1);
  scale ~ exponential(1);
  for (n in 1 : N) {
    if (event[n] == 1) {
      time[n] ~ logistic(middle, scale);
    } else {
      target += normal_lccdf(time[n] | middle, scale);
    }
  }
}
