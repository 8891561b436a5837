// Complex vectors ended in an IndexError, complex scalars were taken for reals.
// error: complex_numbers.stan:8:3: error: complex numbers are not supported yet [not-supported]
parameters {
  real x;
}
transformed parameters {
  // sqrt(-1) of a complex number
  complex z = sqrt(x);
}
model {
  x ~ normal(0, 1);
}
