// The clone records each block, each result, and how far it has got before what may throw. The function is left alone.
// RUN: stan-opt %s -p 'trace-instrument{function=h}' | filecheck %s
// CHECK-LABEL: sym_name = "h", stan_name = "h"
// CHECK-NOT:   "trace.
// CHECK-LABEL: sym_name = "trace.root"
// CHECK-LABEL: sym_name = "h.traced", stan_name = "h"
// CHECK-NEXT:  ^{{.*}}(%x: !stan.real, %n: !stan.int):
// CHECK-NEXT:    [[ENTRY:%.*]] = "trace.block"() <{number = 2 : i64, slots = 1 : i64}> : () -> !trace.record
// CHECK:         "trace.guard"([[ENTRY]]) <{progress = 2 : i64}>
// CHECK-NEXT:    [[ZERO:%.*]] = "stan.call"(%x) <{autodiff = array<i8: 1>, callee = "zero.traced", user}>
// CHECK-NEXT:    "trace.value"([[ENTRY]], [[ZERO]]) <{slot = 0 : i64}>
// CHECK:         "stan.while"() ({
// CHECK-NEXT:      [[HEADER:%.*]] = "trace.block"() <{number = 3 : i64, slots = 1 : i64}>
// CHECK:           [[LESS:%.*]] = "stan.lt"
// CHECK-NEXT:      "trace.value"([[HEADER]], [[LESS]]) <{slot = 0 : i64}>
// CHECK-NEXT:      "stan.condition"([[LESS]])
// CHECK:           [[BODY:%.*]] = "trace.block"() <{number = 4 : i64, slots = 3 : i64}>
// CHECK:           [[POWER:%.*]] = "stan.pow"
// CHECK-NEXT:      "trace.value"([[BODY]], [[POWER]]) <{slot = 0 : i64}>
// CHECK:         "trace.block"() <{number = 5 : i64, slots = 0 : i64}>
// CHECK-LABEL: sym_name = "zero.traced"
// CHECK-NEXT:  ^{{.*}}
// CHECK-NEXT:    {{.*}}"trace.block"() <{number = 6 : i64, slots = 0 : i64}>
// CHECK:       "trace.sites"() <{function = "h.traced", table = "{{.*}}"}>
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
