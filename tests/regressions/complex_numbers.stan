// Complex vectors ended in an IndexError, complex scalars were taken for reals.
// point: [0.25]
// outputs: [0.5, 0.0, 0.0, 0.5, 0.5, 0.0]
parameters {
  real x;
}
transformed parameters {
  // of a real, then of a complex number
  complex z = sqrt(x);
  complex w = sqrt(to_complex(-x));
  complex_vector[1] v = [z]';
}
model {
  x ~ normal(0, 1);
}
