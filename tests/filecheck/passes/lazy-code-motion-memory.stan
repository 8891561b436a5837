// RUN: stan-opt -p lazy-code-motion -t stan %s | filecheck %s
// RUN: stan-opt -p 'lazy-code-motion{preserve-numerics=true}' -t stan %s | filecheck %s --check-prefix=EXACT

// What fills memory is shared, but not where bits count: its slope would be summed up before its parts get theirs.
data {
  vector[3] z;
}
parameters {
  real a;
  vector[2] b;
}
model {
  target += dot_product(z, append_row(a, b));
  target += -sum(append_row(a, b));
}
// CHECK:       lcm_sym1_ = append_row(a, b);
// CHECK-NEXT:  target += dot_product(z, lcm_sym1_);
// CHECK-NEXT:  target += -sum(lcm_sym1_);
// EXACT:       target += dot_product(z, append_row(a, b));
// EXACT-NEXT:  target += -sum(append_row(a, b));
