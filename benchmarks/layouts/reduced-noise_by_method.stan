// Measurements of samples by several methods, each with a scale of its own; samples have means.
// expect: reduced rows
// data: N = 20000; S = 60; M = 5; drawn = index(N, S); method = index(N, M); hours = normal(N); level = normal(N) + drawn / 10
// other: level ~ normal(content[drawn] + bias[method] + drift * hours, exp(log_noise)[method]); content ~ normal(0, 5); bias ~ std_normal(); drift ~ std_normal(); log_noise ~ std_normal();
data {
  int<lower=0> N;
  int<lower=1> S;
  int<lower=1> M;
  array[N] int<lower=1, upper=S> drawn;
  array[N] int<lower=1, upper=M> method;
  vector[N] hours;
  vector[N] level;
}
parameters {
  vector[S] content;
  vector[M] bias;
  real drift;
  vector[M] log_noise;
}
model {
  content ~ normal(0, 5);
  bias ~ std_normal();
  drift ~ std_normal();
  log_noise ~ std_normal();
  for (n in 1 : N) {
    real expected = content[drawn[n]] + bias[method[n]] + drift * hours[n];
    level[n] ~ normal(expected, exp(log_noise[method[n]]));
  }
}
