// Copy propagation used a copied output variable after it was assigned again. y is 21, not 3.
// data: {"q": 3}
data {
  int q;
}
generated quantities {
  int g = 7 * q;
  int y = 0;
  {
    int x;
    x = g;
    g = q;
    y = y + x;
  }
  // outputs: [3, 21]
}
