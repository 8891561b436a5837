// Inlining by name: the square of one draw became the product of two.
functions {
  real sq(real x) {
    return x * x;
  }
}
generated quantities {
  real a = sq(normal_rng(0, 1));
  int never_negative = 1;
  for (i in 1:20) {
    real b = sq(normal_rng(0, 1));
    if (b < 0) never_negative = 0;
  }
  // outputs: [null, 1]
}
