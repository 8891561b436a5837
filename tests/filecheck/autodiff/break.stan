// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,reverse-mode,cse,dce' | filecheck %s

// A loop that is left early: the flag is carried, but neither passed to the body nor a result. Only the value that the
// condition and the derivative need is pushed.
parameters { real a; }
model {
  real p = a;
  for (i in 1:9) { if (p > 5) break; p = p * p; }
  target += p;
}
// CHECK:      scf.while (%[[P:.*]] = %{{.*}}, %[[I:.*]] = %{{.*}}, %[[RUNNING:.*]] = %{{.*}}) : (f64, i32, i32) -> (f64, i32)
// CHECK:        scf.condition(%{{.*}}) %[[P]], %[[I]] : f64, i32
// CHECK:      ^bb0(%[[Q:.*]]: f64, %{{.*}}: i32):
// CHECK:        ad.push %{{.*}}, %[[Q]]
// CHECK:      scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (!rt.buf<f64>, f64) -> (!rt.buf<f64>, f64)
// CHECK:        %{{.*}}, %[[POPPED:.*]] = ad.pop
// CHECK-NEXT:   %[[LEFT:.*]] = arith.cmpf ogt, %[[POPPED]], %{{.*}} : f64
// CHECK-NEXT:   scf.if %[[LEFT]] -> (f64)
