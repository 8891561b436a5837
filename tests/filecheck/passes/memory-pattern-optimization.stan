// RUN: stan-opt --split-input-file -p memory-pattern-optimization --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p memory-pattern-optimization --explain %s | filecheck %s --check-prefix=EXPLAIN
// RUN: stan-opt --split-input-file -p memory-pattern-optimization,structure-exits,promote-variables %s | filecheck %s --check-prefix=VALUE
// RUN: stan-opt --split-input-file -p memory-pattern-optimization %s | filecheck %s --check-prefix=MARK

// Static variables are promoted, dynamic ones are not.
data {
  int N;
  vector[N] x;
}
parameters {
  vector[N] p;
}
model {
  vector[N] whole = x + p;
  vector[N] part = x;
  part[2] = whole[1];
  target += sum(part) + sum(whole);
}
// MARK:        stan.declare x{{.*}} memory static
// MARK:        stan.parameter p{{.*}} memory static
// MARK:        stan.declare whole{{.*}} memory static
// MARK:        stan.declare part{{.*}} memory dynamic
// VALUE:       stan.declare x
// VALUE-NOT:   stan.declare whole
// VALUE:       stan.declare part
// Of data and parameters nothing is decided.
// EXPLAIN-NOT:   variable x
// EXPLAIN-NOT:   variable p
// EXPLAIN:       variable whole
// EXPLAIN-NEXT:    done      memory-pattern-optimization: static: only assigned whole
// EXPLAIN:       variable part
// EXPLAIN-NEXT:    not done  memory-pattern-optimization: dynamic: assigned in part: part[2] = ...

// -----
// Elements named once each become a literal, if nothing reads the container before.
parameters {
  real a;
}
transformed parameters {
  vector[3] v;
  v[1] = a;
  v[3] = 2;
  print("between");
  v[2] = -a;
  matrix[2, 2] W;
  W[1, 2] = a;
  W[1, 1] = 1;
  W[2, 1] = 3;
  W[2][2] = 4;
  array[2] row_vector[1] r;
  r[1, 1] = a;
  r[2][1] = a;
}
// CHECK-LABEL: transformed parameters {
// CHECK-NEXT:    vector[3] v;
// CHECK-NEXT:    print("between");
// CHECK-NEXT:    v = [a, -a, 2]';
// CHECK-NEXT:    matrix[2, 2] W = {{\[\[}}1, a], [3, 4]];
// CHECK-NEXT:    array[2] row_vector[1] r = {[a], [a]};

// -----
// Not: read in between; a profile in between; twice the same; one missing; assigned in a branch; later in part again.
parameters {
  real a;
}
model {
  vector[2] reads;
  reads[1] = a;
  reads[2] = reads[1];
  vector[2] profiled;
  profiled[1] = a;
  profile("p") {
    target += a;
  }
  profiled[2] = a;
  vector[2] twice;
  twice[1] = a;
  twice[2] = a;
  twice[1] = 3;
  vector[2] missing;
  missing[2] = a;
  vector[1] branch;
  if (a > 0) {
    branch[1] = a;
  }
  vector[2] later;
  later[1] = a;
  later[2] = a;
  for (i in 1 : 2) {
    later[i] = i;
  }
}
// CHECK-LABEL: model {
// CHECK:         reads[2] = reads[1];
// CHECK:         profiled[1] = a;
// CHECK-NEXT:    profile("p") {
// CHECK:         profiled[2] = a;
// CHECK:         twice[1] = a;
// CHECK:         missing[2] = a;
// CHECK:         branch[1] = a;
// CHECK:         later[1] = a;
// EXPLAIN:       variable reads
// EXPLAIN-NEXT:    not done  memory-pattern-optimization: dynamic: assigned in part: reads[1] = a and 1 more

// -----
// Slices that are the whole. Where an error's text matters, only if the sizes of the right-hand side are known, too.
data {
  int N;
  vector[N] x;
}
transformed data {
  vector[N] sure;
  sure[1 : N] = rep_vector(1, N);
  vector[N] unsure;
  unsure[1 : N] = x[1 : N];
  int k = N + 1;
  vector[k] again;
  again[1 : k] = -rep_vector(1, k);
  k = 3;
}
parameters {
  matrix[N, 3] p;
}
model {
  matrix[N, 3] A;
  A[ : , : ] = p;
  A[1 : N, 1 : 3] = p;
  A[ : N] = p;
  A[1 : , ] = p;
  matrix[N, 3] B = p;
  B[2 : N, 1 : 3] = p[2 : N];
}
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    vector[N] sure = rep_vector(1, N);
// CHECK-NEXT:    vector[N] unsure;
// CHECK-NEXT:    unsure[1:N] = x[1:N];
// CHECK-NEXT:    int k = N + 1;
// CHECK-NEXT:    vector[k] again;
// CHECK-NEXT:    again[1:k] = -rep_vector(1, k);
// CHECK-LABEL: model {
// CHECK-NEXT:    matrix[N, 3] A = p;
// CHECK-NEXT:    A = p;
// CHECK-NEXT:    A = p;
// CHECK-NEXT:    A = p;
// CHECK-NEXT:    matrix[N, 3] B = p;
// CHECK-NEXT:    B[2:N, 1:3] = p[2:N];
// EXPLAIN:       variable unsure
// EXPLAIN-NEXT:    not done  memory-pattern-optimization: dynamic: assigned in part: unsure[1:N] = ...
