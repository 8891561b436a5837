// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Tuples: literals, projection, unpacking, replacing a field, checks of constrained fields.

data {
  tuple(real<lower=0>, corr_matrix[2]) d;
}
transformed data {
  tuple(int, tuple(real, vector[2])) t = (1, (2, d.2[1]'));
  int a;
  real b;
  vector[2] c;
  (a, (b, c)) = t;
  t.2.1 = b;
}

// CHECK:      %d = stan.declare d[%{{.*}}, %{{.*}}]
// CHECK-NEXT: %[[D:.*]] = stan.read %d
// CHECK-NEXT: %[[D1:.*]] = stan.field 1 of %[[D]]
// CHECK-NEXT: %[[ZERO:.*]] = stan.constant 0.000000e+00 : f64
// CHECK-NEXT: stan.check d.1 %[[D1]] : !stan.real bounds lower(%[[ZERO]] : !stan.real)
// CHECK-NEXT: %[[D2:.*]] = stan.field 2 of %[[D]]
// CHECK-NEXT: stan.check d.2 %[[D2]] : !stan.matrix corr_matrix

// TEXT:      tuple(real, matrix[2, 2]) d;
// TEXT:      tuple(int, tuple(real, vector[2])) t;
// TEXT:      {
// TEXT-NEXT: t = (1, (2, d.2[1]'));
// TEXT:      tuple(int, tuple(real, vector)) t_2 = t;
// TEXT-NEXT: a = t_2.1;
// TEXT-NEXT: b = t_2.2.1;
// TEXT-NEXT: c = t_2.2.2;
// TEXT:      t = (t.1, (b, t.2.2));
