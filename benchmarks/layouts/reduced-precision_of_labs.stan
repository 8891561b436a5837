// A mean and a standard deviation for each lab, beside a covariate.
// expect: reduced rows
// data: N = 12000; L = 40; lab = index(N, L); y = normal(N); x = normal(N)
// other: mu ~ std_normal(); sigma ~ lognormal(0, 1); b ~ std_normal(); vector[N] s = sigma[lab]; vector[N] m; for (n in 1:N) m[n] = mu[lab[n]] + x[n] * b; for (n in 1:N) target += normal_lpdf(y[n] | m[n], s[n]);
data {
  int N; int L;
  array[N] int<lower=1, upper=L> lab;
  vector[N] y; vector[N] x;
}
parameters {
  vector[L] mu;
  vector<lower=0>[L] sigma;
  real b;
}
model {
  mu ~ std_normal();
  sigma ~ lognormal(0, 1);
  b ~ std_normal();
  y ~ normal(mu[lab] + b * x, sigma[lab]);
}
