// NaN is no error for most primitives: the density must be NaN, not rejected.
// value: nan
parameters {
  real a;
}
model {
  target += log1m(a * not_a_number());
}
