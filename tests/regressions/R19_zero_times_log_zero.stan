// 0 * log(0) is NaN; lmultiply(0, 0), which took its place, is 0.
// data: {"n": 0, "x": 0}
data {
  int n;
  real<lower=0> x;
}
generated quantities {
  real r = n * log(x);
  // outputs: [NaN]
}
