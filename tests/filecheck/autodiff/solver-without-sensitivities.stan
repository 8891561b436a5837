// RUN: stan-opt -O3 --unit gradient_propto %s | filecheck %s

// How many parameters a solver has sensitivities for is known when data are bound; without any, it has no gradient:
// its steps, one loop in the other, are not gone through backwards, either way.

functions {
  vector decay(real t, vector y, vector rate) {
    return -rate[1] * y;
  }
}
data {
  int k;
}
parameters {
  vector[k] rate;
}
model {
  // CHECK-LABEL: @evaluate
  // CHECK: scf.while
  // CHECK: scf.while
  // CHECK-NOT: scf.while
  array[1] vector[1] y = ode_rk45(decay, [1]', 0, {2}, rate);
  target += y[1][1];
}
