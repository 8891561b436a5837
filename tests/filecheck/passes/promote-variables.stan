// RUN: stan-opt --split-input-file -p structure-exits,promote-variables,verify-dominance %s | filecheck %s

// A loop carries what it assigns and what is read afterwards, in the order of declaration. `t` is not carried.
model {
  real a = 1;
  real unused = 5;
  real t;
  for (i in 1 : 3) {
    t = a * i;
    unused = t;
    a = t + 1;
  }
  target += a;
}
// CHECK:       stan.block model
// CHECK:       %[[A:.*]] = stan.constant 1.000000e+00 : f64
// CHECK:       %[[R:.*]] = stan.for %i = %{{.*}} to %{{.*}} iter_args(%[[C:.*]] = %[[A]] : !stan.real) {
// CHECK-NEXT:    %[[P:.*]] = stan.promote %i
// CHECK-NEXT:    %[[T:.*]] = stan.mul %[[C]], %[[P]]
// CHECK:         %[[N:.*]] = stan.add %[[T]],
// CHECK-NEXT:    stan.yield %[[N]]
// CHECK:       stan.target_add %[[R]]

// -----
// A branch yields; the side that does not assign passes the old value on.
model {
  real a = 1;
  if (a > 0) {
    a = 2;
  }
  target += a;
}
// CHECK:       stan.block model
// CHECK:       %[[A:.*]] = stan.constant 1.000000e+00 : f64
// CHECK:       %[[R:.*]] = stan.if
// CHECK:         stan.yield %{{.*}} : !stan.real
// CHECK-NEXT:  } else {
// CHECK-NEXT:    stan.yield %[[A]]
// CHECK:       stan.target_add %[[R]]

// -----
// Assigned in part: it stays a variable. Read whole before an index: a value.
model {
  vector[3] v = rep_vector(0, 3);
  vector[3] w = rep_vector(1, 3);
  v[2] = 5;
  target += v[1] + w[2];
}
// CHECK:       stan.block model
// CHECK:       %[[V:.*]] = stan.declare v
// CHECK:       %[[W:.*]] = stan.assert_shape w %{{.*}}[%{{.*}}] : !stan.vector
// CHECK-NOT:   stan.uninitialized
// CHECK:       stan.assign %[[V]][%{{.*}}] = %{{.*}}
// CHECK:       stan.index %[[W]]

// -----
// Not yet assigned; a sized variable that is not assigned at once keeps its (checked) sizes.
model {
  real a;
  vector[3] v;
  print(a);
  v = rep_vector(a, 3);
  print(v);
}
// CHECK:       stan.block model
// CHECK:       %[[A:.*]] = stan.uninitialized : !stan.real
// CHECK:       stan.uninitialized of "{{.*}}"[%{{.*}}] : !stan.vector
// CHECK:       stan.print
// CHECK:       %[[V:.*]] = stan.assert_shape
// CHECK:       stan.print

// -----
// While: the condition and the body see the carried values.
model {
  int k = 0;
  while (k < 3) {
    k += 1;
  }
  print(k);
}
// CHECK:       stan.block model
// CHECK:       %[[K:.*]] = stan.constant 0 : i32
// CHECK:       %[[R:.*]] = stan.while iter_args(%[[B:.*]] = %[[K]] : !stan.int) {
// CHECK:         stan.condition %{{.*}}, %[[B]]
// CHECK:       } do (%[[C:.*]]: !stan.int) {
// CHECK:         %[[N:.*]] = stan.add %[[C]],
// CHECK-NEXT:    stan.yield %[[N]]
// CHECK:       stan.print

// -----
// What other blocks read keeps its declaration and gets a definition at the end of its block.
transformed data {
  real a = 1;
  {
    real inner = 2;
    a = inner;
  }
  vector[2] v;
  v[1] = a;
}
model {
  target += a;
}
// CHECK:       stan.block transformed_data
// CHECK:       stan.declare a
// CHECK-NOT:   stan.declare inner
// CHECK:       %[[V:.*]] = stan.constant 2.000000e+00 : f64
// CHECK:       stan.declare v
// CHECK:       stan.define a = %[[V]]
// CHECK-NOT:   stan.define
// CHECK:       stan.block model
// CHECK:       %[[G:.*]] = stan.global a
// CHECK:       stan.read %[[G]]

// -----
// Profile: yields what it assigns.
model {
  real a;
  profile("p") {
    a = 1;
  }
  target += a;
}
// CHECK:       stan.block model
// CHECK:       %[[R:.*]] = stan.profile
// CHECK:         stan.yield %{{.*}} : !stan.real
// CHECK:       stan.target_add %[[R]]
