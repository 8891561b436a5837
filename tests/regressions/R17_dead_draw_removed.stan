// A draw that is not used was removed, so that later ones came from another place of the stream.
generated quantities {
  {
    real y = normal_rng(0, 1);
  }
  real z = normal_rng(0, 1);
}
