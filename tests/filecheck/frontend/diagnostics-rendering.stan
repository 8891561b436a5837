// RUN: not stan-opt %s 2>&1 | filecheck %s

// A message shows the place, the line, and how to mend it; one run reports several.
data { real sigma; matrix[2, 2] m; }
model {
  1 ~ normal(0, sgima);
  2 ~ normal(m, sigma);
}

// CHECK:      diagnostics-rendering.stan:6:17: error: 'sgima' is not declared here [undeclared]
// CHECK-NEXT:     6 |   1 ~ normal(0, sgima);
// CHECK-NEXT:       |                 ^^^^^
// CHECK-NEXT:    help: did you mean 'sigma'?
// CHECK-NEXT: diagnostics-rendering.stan:7:14: error: no 'normal_lpdf' takes (int, matrix, real): argument 2 is a matrix, not a real [argument-type]
// CHECK-NEXT:     7 |   2 ~ normal(m, sigma);
// CHECK-NEXT:       |              ^
// CHECK-NEXT:    help: 'normal_lpdf' has the signatures normal_lpdf(real, real, real) => real
