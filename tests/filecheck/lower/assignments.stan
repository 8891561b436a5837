// RUN: stan-opt --split-input-file %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_propto},simplify' | filecheck %s

// A part of a variable is assigned from another part of it: the right-hand side is copied before.
parameters { vector[4] v; }
model {
  vector[4] u = v;
  u[2:4] = u[1:3];
  target += sum(u);
}
// CHECK:      %[[U:.*]] = rt.alloc variable %{{.*}}
// CHECK:      rt.copy %{{.*}} to %[[U]], %{{.*}} :
// CHECK-NEXT: %[[T:.*]] = rt.alloc %[[N:[0-9]+]]
// CHECK-NEXT: rt.copy %[[U]] to %[[T]], %[[N]] initial
// CHECK-NEXT: %[[PART:.*]] = rt.view %[[U]][%{{.*}}]
// CHECK-NEXT: rt.copy %[[T]] to %[[PART]], %[[N]] :

// -----
// A variable that is only assigned whole is no memory: a branch yields a buffer. Data that a branch hands on are copied,
// for what meets parameters needs adjoints.
data { vector[3] x; }
parameters { vector[3] v; real a; }
model {
  vector[3] u = x;
  if (a > 0) u = v;
  target += sum(u);
}
// CHECK:      %[[X:.*]] = rt.bound 0 : !rt.buf<f64>
// CHECK:      %[[U:.*]] = scf.if %{{.*}} -> (!rt.buf<f64>) {
// CHECK-NEXT:   scf.yield %{{.*}} : !rt.buf<f64>
// CHECK-NEXT: } else {
// CHECK-NEXT:   %[[OWN:.*]] = rt.alloc
// CHECK-NEXT:   rt.copy %[[X]] to %[[OWN]], %{{.*}} initial
// CHECK-NEXT:   scf.yield %[[OWN]] : !rt.buf<f64>
// CHECK:      rt.load %[[U]][%{{.*}}]
