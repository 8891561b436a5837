// RUN: stan-opt --split-input-file --unit value_propto %s | filecheck %s
// RUN: stan-opt --split-input-file --unit gradient_propto %s | filecheck %s --check-prefix GRADIENT

// The body evaluates a function: what is left over after the last full vector is worth a masked one.
data { int N; vector[N] x; }
parameters { real a; }
model { target += sum(exp(x * a)); }
// CHECK: func.func @evaluate
// CHECK: #rt.loop<functions>

// -----
// A cheap body: it depends on what is left over, and so on the processor.
data { vector[46] x; }
parameters { real a; }
model { target += sum(x * a) + sum(square(x - a)); }
// CHECK: func.func @evaluate
// CHECK-NOT: #rt.loop<functions>

// -----
// Five iterations in a loop that cannot be widened itself: one masked vector.
data { int N; vector[5] x; }
parameters { real a; }
model {
  real s = a;
  for (n in 1:N) {
    s = sum(exp(s * x));
  }
  target += s;
}
// CHECK: func.func @evaluate
// CHECK: #rt.loop<functions>
// CHECK: serial

// -----
// Three iterations, each straight code, are written out in a loop that cannot be widened itself: a chain of scalars.
parameters { vector[3] x; matrix[3, 3] A; }
model {
  vector[3] s = x;
  for (n in 1:500) {
    vector[3] t;
    for (j in 1:3) {
      t[j] = log_sum_exp(square(s) + A[, j]);
    }
    s = t;
  }
  target += log_sum_exp(s);
}
// CHECK: func.func @evaluate
// CHECK: serial
// CHECK: serial

// -----
// Element after element of a matrix by the inner loops, forward and back, where the outer ones would skip.
parameters { matrix[11, 11] A; vector[11] x; }
model { target += -sum(square(A * x)); }
// GRADIENT: func.func @evaluate
// GRADIENT-COUNT-2: #rt.loop<columns>

// -----
// Many elements: as many sums side by side as where their number is not known.
parameters { matrix[200, 11] A; vector[11] x; }
model { target += -sum(exp(A * x)); }
// GRADIENT: func.func @evaluate
// GRADIENT-COUNT-2: #rt.loop<interleave 4>
