// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// A variable of tuple type is one for each field: literals, projection, unpacking, elements of fields, constraints.
// An array of tuples is a tuple of arrays.

data {
  tuple(real<lower=0>, corr_matrix[2]) d;
}
transformed data {
  tuple(int, tuple(real, vector[2])) t = (1, (2, d.2[1]'));
  int a;
  real b;
  vector[2] c;
  (a, (b, c)) = t;
  t.2.2[a] = b;
}
model {
  array[3] tuple(real, array[2] int) u;
  u[2].2[1] = 4;
  for (e in u) target += e.1;
}

// CHECK:      %d.1 = stan.declare d.1 bounds lower(%[[ZERO:.*]] : !stan.real) field_ranks "0"
// CHECK:      %d.2 = stan.declare d.2[%{{.*}}] corr_matrix field_ranks "0"
// CHECK-NEXT: %[[D1:.*]] = stan.read %d.1
// CHECK-NEXT: stan.check d.1 %[[D1]] : !stan.real bounds lower(%[[ZERO]] : !stan.real)
// CHECK-NEXT: %[[D2:.*]] = stan.read %d.2
// CHECK-NEXT: stan.check d.2 %[[D2]] : !stan.matrix corr_matrix

// CHECK:      %t.2.2 = stan.declare t.2.2[%{{.*}}] field_ranks "0 0" : !stan.var<!stan.vector>
// CHECK:      stan.assign %t.2.2[%{{.*}}] = %{{.*}} : !stan.var<!stan.vector>, !stan.real

// CHECK:      %u.1 = stan.declare u.1[%{{.*}}] field_ranks "1" : !stan.var<!stan.array<1, !stan.real>>
// CHECK:      %u.2 = stan.declare u.2[%{{.*}}, %{{.*}}] field_ranks "1" : !stan.var<!stan.array<2, !stan.int>>
// CHECK:      stan.assign %u.2[%{{.*}}, %{{.*}}] = %{{.*}} : !stan.var<!stan.array<2, !stan.int>>, !stan.int
// CHECK:      stan.for %e =
// CHECK-NEXT: stan.index %{{.*}}[%e] : !stan.array<1, !stan.real> -> !stan.real

// TEXT:      tuple(real<lower=0>, corr_matrix[2]) d;
// TEXT:      tuple(int, tuple(real, vector[2])) t;
// TEXT:      {
// TEXT:      t.1 = 1;
// TEXT-NEXT: t.2.1 = 2;
// TEXT:      a = t.1;
// TEXT:      t.2.2[a] = b;
// TEXT:      array[3] real u_1;
// TEXT-NEXT: array[3, 2] int u_2;
// TEXT-NEXT: u_2[2, 1] = 4;
