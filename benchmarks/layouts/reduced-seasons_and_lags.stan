// A series with a season and three lags, its mean filled by one loop and read by another.
// expect: reduced rows
// data: T = 5000; load = normal(T); warm = normal(T)
// other: memory ~ normal(0, 0.5); for (t in 4 : T) load[t] ~ normal(level + wave[1] * sin(2 * pi() * t / 24.0) + wave[2] * cos(2 * pi() * t / 24.0) + heat * warm[t] / 10 + dot_product(memory, reverse(segment(load, t - 3, 3))), noise);
data {
  int<lower=4> T;
  vector[T] load;
  vector[T] warm;
}
parameters {
  real level;
  vector[3] memory;
  vector[2] wave;
  real heat;
  real<lower=0> noise;
}
model {
  vector[T] fit;
  memory ~ normal(0, 0.5);
  for (t in 1 : T) {
    fit[t] = level + wave[1] * sin(2 * pi() * t / 24.0) + wave[2] * cos(2 * pi() * t / 24.0) + heat * warm[t] / 10;
  }
  for (t in 4 : T) {
    real shift = 0;
    for (k in 1 : 3) {
      shift += memory[k] * load[t - k];
    }
    target += normal_lpdf(load[t] | fit[t] + shift, noise);
  }
}
