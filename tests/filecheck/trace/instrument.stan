// The clone records each block, each result, and how far it has got before what may throw. The function is left alone.
// RUN: stan-opt %s -p 'trace-instrument{function=h}' | filecheck %s
// CHECK-LABEL: stan.func @h(
// CHECK-NOT:   trace.
// CHECK-LABEL: stan.func @trace.root(
// CHECK-LABEL: stan.func @h.traced(x %x: !stan.real, n %n: !stan.int) -> (!stan.real) stan_name h {
// CHECK-NEXT:    [[ENTRY:%.*]] = trace.block 2 slots 1
// CHECK:         trace.guard [[ENTRY]] progress 2
// CHECK-NEXT:    [[ZERO:%.*]] = stan.call zero.traced(%x) user autodiff [1]
// CHECK-NEXT:    trace.value [[ENTRY]][0] = [[ZERO]]
// CHECK:         stan.while {
// CHECK-NEXT:      [[HEADER:%.*]] = trace.block 3 slots 1
// CHECK:           [[LESS:%.*]] = stan.lt
// CHECK-NEXT:      trace.value [[HEADER]][0] = [[LESS]]
// CHECK-NEXT:      stan.condition [[LESS]]
// CHECK:           [[BODY:%.*]] = trace.block 4 slots 3
// CHECK:           [[POWER:%.*]] = stan.pow
// CHECK-NEXT:      trace.value [[BODY]][0] = [[POWER]]
// CHECK:         trace.block 5 slots 0
// CHECK-LABEL: stan.func @zero.traced(
// CHECK-NEXT:    {{.*}}trace.block 6 slots 0
// CHECK:       trace.sites h.traced "{{.*}}"
functions {
  real zero(real x) { return 0.0; }
  real h(real x, int n) {
    int i = 0;
    real r = zero(x);
    while (i < n) {
      r += x ^ i;
      i += 1;
    }
    return r;
  }
}
