// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_propto},simplify' | filecheck %s

// A chain of element-wise operations is one loop body, with no memory in between. What is used twice is computed once.
data { int N; vector[N] x; }
parameters { vector[N] v; real a; }
model {
  target += sum(exp(v .* x) + a * v);
  vector[N] u = exp(v);
  target += dot_product(u, u);
}
// CHECK:      rt.copy %{{.*}} to %[[THETA:.*]], %{{.*}} initial
// CHECK:      scf.for %[[I:[0-9]+]] = {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (f64)
// CHECK-NEXT:   %[[V:.*]] = rt.load %[[THETA]][%[[I]]]
// CHECK-NEXT:   %[[X:.*]] = rt.load %{{.*}}[%[[I]]]
// CHECK-NEXT:   %[[VX:.*]] = arith.mulf %[[V]], %[[X]] : f64
// CHECK-NEXT:   %[[E:.*]] = rt.math exp(%[[VX]])
// CHECK-NEXT:   %[[AV:.*]] = arith.mulf %{{.*}}, %[[V]] : f64
// CHECK-NEXT:   %[[T:.*]] = arith.addf %[[E]], %[[AV]] : f64
// CHECK-NEXT:   %[[R:.*]] = arith.addf %[[S]], %[[T]] fastmath<reassoc> : f64
// CHECK-NEXT:   scf.yield %[[R]] : f64
// CHECK:      %[[U:.*]] = rt.alloc %{{.*}} site
// CHECK-NEXT: scf.for
// CHECK:        rt.math exp(%{{.*}})
// CHECK-NEXT:   rt.store %{{.*}}, %[[U]][%{{.*}}] initial
// CHECK-NEXT: }
// CHECK-NEXT: scf.for
// CHECK-NEXT:   %[[L:.*]] = rt.load %[[U]][%{{.*}}]
// CHECK-NEXT:   arith.mulf %[[L]], %[[L]] : f64
