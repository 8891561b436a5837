// Inlining by name: the argument target() was read after the function had increased it.
// point: [1.5]
// value: -5.75
// prints: "-4.5\n"
functions {
  real f_lp(real x) {
    target += 1;
    return x + x;
  }
}
parameters {
  real p;
}
model {
  target += -p ^ 2;
  real y = f_lp(target());
  print(y);
  target += y;
}
