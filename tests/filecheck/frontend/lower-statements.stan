// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Assignments, loops, branches, profiles.

data {
  int N;
  matrix[N, N] m;
}
transformed data {
  array[N] vector[N] x;
  int n = 0;
  // The index of a compound assignment is evaluated once.
  x[n + 1][2] += 1;
  // CHECK:      %[[I:.*]] = stan.add
  // CHECK-NEXT: %[[J:.*]] = stan.constant 2 : i32
  // CHECK-NEXT: %[[X:.*]] = stan.read %x
  // CHECK-NEXT: %[[OLD:.*]] = stan.index %[[X]][%[[I]], %[[J]]] : !stan.array<1, !stan.vector> -> !stan.real
  // CHECK-NEXT: %[[STEP:.*]] = stan.constant 1.000000e+00 : f64
  // CHECK-NEXT: %[[NEW:.*]] = stan.add %[[OLD]], %[[STEP]]
  // CHECK-NEXT: stan.assign %x[%[[I]], %[[J]]] = %[[NEW]]

  x[{2, 1}, 1:] = x[:2, 2:N];
  // CHECK: stan.index %{{.*}}[to %{{.*}}, %{{.*}} to %{{.*}}]
  // CHECK: stan.assign %{{.*}}[multiple %{{.*}}, %{{.*}} to]

  for (row in x) for (e in row) print(e);
  // CHECK:      stan.foreach %row in %{{.*}} : !stan.array<1, !stan.vector> {
  // CHECK-NEXT:   stan.foreach %e in %row : !stan.vector {

  while (n < N) {
    n += 1;
    profile("inner") {
      if (n % 2 == 0) continue;
    }
  }
  // CHECK:      stan.while {
  // CHECK:        stan.condition %{{.*}}
  // CHECK:        stan.profile inner {
  // CHECK:            stan.continue

  if (n || N > 2) n = 1;
  // CHECK:      %[[C:.*]] = stan.read %n : !stan.int
  // CHECK-NEXT: stan.or %[[C]] {
}

// TEXT:      x[n + 1, 2] = x[n + 1, 2] + 1;
// TEXT-NEXT: x[{2, 1}, 1:] = x[:2, 2:N];
// TEXT-NEXT: for (row in x) {
// TEXT-NEXT:   for (e in row) {
// TEXT-NEXT:     print(e);
// TEXT-NEXT:   }
// TEXT-NEXT: }
// TEXT-NEXT: while (n < N) {
// TEXT-NEXT:   n = n + 1;
// TEXT-NEXT:   profile("inner") {
// TEXT-NEXT:     if (n % 2 == 0) {
// TEXT-NEXT:       continue;
// TEXT-NEXT:     }
// TEXT-NEXT:   }
// TEXT-NEXT: }
// TEXT-NEXT: if (n || N > 2) {
// TEXT-NEXT:   n = 1;
// TEXT-NEXT: }
