// log1p and others gave NaN outside of their domain, where Stan rejects the point.
// rejects: log1p: x is -2, but must be greater than or equal to -1 (in 'primitive_outside_domain.stan', line 9, column 13)
// point: [-2]
parameters {
  real a;
}
model {
  target += 1;
  target += log1p(a);
}
