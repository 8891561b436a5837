// RUN: stan-opt --unit gradient_propto -t mlir %s | filecheck %s

// Where target() is read, the target is a value like any other: loops carry it, and its adjoint goes through them.
parameters {
  real x;
}
model {
  for (i in 1 : 5) {
    target += x * i;
    target += sin(target());
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK: scf.for {{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}}) -> (f64)
// CHECK: %[[SUM:.*]] = arith.addf %[[TOTAL]],
// CHECK: rt.math sin(%[[SUM]])
// CHECK: scf.for
// CHECK: rt.math cos(%{{.*}})
// CHECK: func.return
