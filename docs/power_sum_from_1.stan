functions {
  real zero(real x) {
    return 0.0;
  }
  real h(real x, int n) {
    int i = 1;
    real r = zero(x);
    while (i < n) {
      r += x ^ i;
      i += 1;
    }
    return r;
  }
}
