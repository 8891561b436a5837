// RUN: stan-opt --split-input-file %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_propto},simplify' | filecheck %s

// A column and a slice are views of the memory that they are part of; the elements of a row are read where they lie.
parameters { matrix[4, 3] M; vector[4] v; }
model {
  target += sum(M[, 2]) + sum(v[2:3]);
  target += sum(M[2]);
}
// CHECK:     %[[ROWS:.*]] = arith.constant 4 : i64
// CHECK:     %[[V:.*]] = rt.view %[[THETA:.*]][%{{.*}}]
// CHECK:     %[[COLUMN:.*]] = rt.view %[[THETA]][%[[ROWS]]]
// CHECK:     rt.load %[[COLUMN]][%{{.*}}]
// CHECK:     %[[SLICE:.*]] = rt.view %[[V]][%{{.*}}]
// CHECK:     rt.load %[[SLICE]][%{{.*}}]
// CHECK:     scf.for %[[J:[0-9]+]] =
// CHECK-NEXT:  %[[SKIP:.*]] = arith.muli %[[J]], %[[ROWS]] : i64
// CHECK-NEXT:  %[[AT:.*]] = arith.addi %[[SKIP]], %{{.*}} : i64
// CHECK-NEXT:  rt.load %[[THETA]][%[[AT]]]

// -----
// A loop from 1 to the size needs no check of its index; one that is shifted does, before the access.
data { int N; }
parameters { vector[N] v; }
model {
  for (i in 1:N) target += sin(v[i]);
  for (i in 2:N) target += cos(v[i - 1]);
}
// CHECK:      scf.for
// CHECK-NOT:    rt.check
// CHECK:       rt.math sin
// CHECK:      scf.for
// CHECK:        %[[OK:.*]] = arith.cmpi ult, %[[AT:.*]], %[[SIZE:.*]] : i64
// CHECK-NEXT:   rt.check %[[OK]] site
// CHECK-NEXT:   rt.load %{{.*}}[%[[AT]]]

// -----
// Indices from an array are checked in a loop of their own, then each element is loaded where its index says.
data { array[5] int k; }
parameters { vector[4] v; }
model { target += sum(v[k]); }
// CHECK:      scf.for %[[I:[0-9]+]] =
// CHECK:        rt.check
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[J:[0-9]+]] =
// CHECK-NEXT:   %[[K:.*]] = rt.load %{{.*}}[%[[J]]] : i32
// CHECK:        rt.load %{{.*}}[%{{.*}}] : f64
