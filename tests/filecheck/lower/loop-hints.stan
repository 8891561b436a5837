// RUN: stan-opt --split-input-file --unit value_propto %s | filecheck %s

// The body evaluates a function: what is left over after the last full vector is worth a masked one.
data { int N; vector[N] x; }
parameters { real a; }
model { target += sum(exp(x * a)); }
// CHECK: func.func @evaluate
// CHECK: masked_tail

// -----
// A cheap body: it depends on what is left over, and so on the processor.
data { vector[46] x; }
parameters { real a; }
model { target += sum(x * a) + sum(square(x - a)); }
// CHECK: func.func @evaluate
// CHECK-NOT: masked_tail

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
// CHECK: masked_tail
// CHECK: serial
