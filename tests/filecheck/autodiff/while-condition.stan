// The reverse sweep runs through the bodies of loops. So what a condition adds to the target is moved there: the loop is
// rotated, with the condition's work once before it and again at the end of its body.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,reverse-mode,cse' | filecheck %s

functions {
  real half_lp(real x) {
    target += -x;
    return x * 0.5;
  }
}
parameters {
  real a;
}
model {
  real x = a;
  while (half_lp(x) > 1) x = sin(x);
}

// CHECK-LABEL: func.func @evaluate
// CHECK: ad.target_add
// CHECK: arith.cmpf
// CHECK: scf.while
// CHECK-NEXT: scf.condition
// CHECK: rt.math sin
// CHECK: ad.target_add
// CHECK: arith.cmpf
// CHECK: ad.push
// CHECK: scf.while
// CHECK: rt.is_null
// CHECK: rt.math cos
