// In a log density `reject` is a check that fails, as that of a domain: `locate` tells its text. So loops with it are
// like others; elsewhere, and in `locate`, its text is written.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops{reassociate=true}' | filecheck %s
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=locate}' | filecheck %s --check-prefix=TOLD
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=constrain}' | filecheck %s --check-prefix=TOLD

functions {
  real rate(real x, real scale) {
    if (scale > 10) {
      reject("scale is ", scale);
    }
    return x * scale;
  }
}
data {
  int N;
  vector[N] x;
}
parameters {
  real scale;
}
transformed parameters {
  real total = 0;
  for (n in 1:N) {
    total += rate(lgamma(x[n]), scale);
  }
}
model {
  target += total;
}

// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: print_
// CHECK: scf.for
// CHECK-NOT: lgamma
// CHECK-NOT: rt.check
// CHECK: scf.yield
// CHECK: rt.check %{{.*}} status 3
// CHECK-LABEL: func.func @bind
// CHECK: rt.math lgamma

// TOLD: rt.kernel print_begin
// TOLD: rt.kernel print_string
// TOLD: rt.check %{{.*}} status 1
