// Inlining by name: the draw for a parameter that is not used was never made.
functions {
  real ign(real x) {
    return 3;
  }
}
generated quantities {
  real b = ign(normal_rng(0, 1));
  real c = normal_rng(0, 1);
  // outputs: [3, null]
}
