// One-step unrolling read the lower bound again after the first iteration, which changed it. The sum is 2 + 3 + 4.
// data: {"k0": 2, "m": 4}
data {
  int k0;
  int m;
}
generated quantities {
  int s = 0;
  int k = k0;
  for (z in 1:0) k += z;
  for (i in k:m) {
    k = 0;
    s += i;
  }
  // outputs: [9, 0]
}
