// One-step unrolling drew the bounds of the loop several times.
generated quantities {
  int s = 0;
  for (i in poisson_rng(3):poisson_rng(30)) {
    s += i;
  }
  int after = poisson_rng(5);
}
