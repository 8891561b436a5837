// The same, where the argument is an element of data.
// data: {"p": [0.5, 1.5]}
// rejects: inv_Phi: x is 1.5, but must be in the interval [0, 1]
data {
  vector[2] p;
}
parameters {
  real a;
}
model {
  target += a * inv_Phi(p);
}
