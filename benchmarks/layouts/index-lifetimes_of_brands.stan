// Times of failure or until a test ends, with a scale for each brand.
// expect: values by index
// data: N = 16000; B = 50; brand = index(N, B); broken = bits(N); hours = rng.gamma(2, 1, N); load = normal(N)
// other: shape ~ lognormal(0, 0.5); life ~ std_normal(); b ~ std_normal(); vector[N] s = exp(life[brand]); for (n in 1:N) { real t = hours[n] * exp(-b * load[n]); if (broken[n]) target += weibull_lpdf(t | shape, s[n]); else target += weibull_lccdf(t | shape, s[n]); }
data {
  int N; int B;
  array[N] int<lower=1, upper=B> brand; array[N] int<lower=0, upper=1> broken;
  vector<lower=0>[N] hours; vector[N] load;
}
parameters {
  real<lower=0> shape;
  vector[B] life;
  real b;
}
model {
  shape ~ lognormal(0, 0.5);
  life ~ std_normal();
  b ~ std_normal();
  for (n in 1:N) {
    if (broken[n] == 1)
      target += weibull_lpdf(hours[n] * exp(-b * load[n]) | shape, exp(life[brand[n]]));
    else
      target += weibull_lccdf(hours[n] * exp(-b * load[n]) | shape, exp(life[brand[n]]));
  }
}
