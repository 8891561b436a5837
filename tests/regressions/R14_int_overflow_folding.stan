// Folding of ints left 32 bits.
generated quantities {
  int x;
  x = 2147483647 + 1;
  int y;
  y = 100000 * 100000;
  // outputs: [-2147483648, 1410065408]
}
