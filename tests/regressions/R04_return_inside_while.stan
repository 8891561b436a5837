// Inlining: a return inside of a while loop only left the loop. With p = 2 the function returns 6, not -1.
// point: [0.4054651081081644]
// value: 6.405465108108164
functions {
  real f(real x) {
    real acc = 0;
    while (acc < 100) {
      acc += x;
      if (acc > 5) return acc;
    }
    return -1;
  }
}
parameters {
  real<lower=0.5> p;
}
model {
  target += f(p);
}
