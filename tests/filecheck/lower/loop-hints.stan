// RUN: stan-opt --split-input-file --unit value_propto %s | filecheck %s

// 46 iterations of a cheap loop: 5 vectors, and 6 single ones that would take longer than all of them.
data { vector[46] x; }
parameters { real a; }
model { target += sum(x * a) + sum(square(x - a)); }
// CHECK: func.func @evaluate
// CHECK: masked_tail

// -----
// 434: masks for all of them would cost more than 2 single ones.
data { vector[434] x; }
parameters { real a; }
model { target += sum(x * a) + sum(square(x - a)); }
// CHECK: func.func @evaluate
// CHECK-NOT: masked_tail

// -----
// 48: nothing is left over.
data { vector[48] x; }
parameters { real a; }
model { target += sum(x * a) + sum(square(x - a)); }
// CHECK: func.func @evaluate
// CHECK-NOT: masked_tail

// -----
// Not known.
data { int N; vector[N] x; }
parameters { real a; }
model { target += sum(x * a) + sum(square(x - a)); }
// CHECK: func.func @evaluate
// CHECK-NOT: masked_tail
