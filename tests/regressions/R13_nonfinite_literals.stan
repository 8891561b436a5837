// Folding made literals of numbers that none denotes.
generated quantities {
  real a = 0.0 / 0.0;
  real b = 1e308 * 10.0;
  real c = 1.0 / 0.0;
  real d = -(1.0 / 0.0);
  // outputs: [NaN, Infinity, Infinity, -Infinity]
}
