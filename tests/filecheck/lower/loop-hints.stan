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
