// The inner product of two equal calls of a random number function became that of one with itself.
// data: {"mu": [0, 0, 0]}
data {
  vector[3] mu;
}
generated quantities {
  real d = dot_product(to_vector(normal_rng(mu, 1)), to_vector(normal_rng(mu, 1)));
  int some_negative = 0;
  for (i in 1:50) {
    if (dot_product(to_vector(normal_rng(mu, 1)), to_vector(normal_rng(mu, 1))) < 0) some_negative = 1;
  }
  // outputs: [null, 1]
}
