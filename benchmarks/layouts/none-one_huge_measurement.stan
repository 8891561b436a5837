// One measurement is so large that its square is infinite: the sum of the squares of the rows is not, times its coefficient.
// expect: none
// data: N = 4000; x = normal(N); z = np.where(np.arange(N) == 17, 1e155, normal(N)); y = normal(N)
data {
  int N;
  vector[N] x;
  vector[N] z;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real c;
  real<lower=0> s;
}
model {
  s ~ exponential(1);
  y ~ normal(a + b * x + c * 1e-150 * z, s);
}
