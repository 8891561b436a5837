// Partial evaluation rejected a division by zero in an arm that is not evaluated.
// data: {"n": 0}
data {
  int n;
}
generated quantities {
  int z = n == 0 ? 0 : 1 %/% 0;
  // outputs: [0]
}
