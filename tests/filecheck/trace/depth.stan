// RUN: stan-opt %s -p 'trace-instrument{function=down depth=6}' | filecheck %s
// A limit of depth above 4 is tested at run time: what calls `down` calls a function that has the choice between the
// traced clone and `down` itself. A call that is not entered leaves a record of its own, without values.
functions {
  int down(int n) {
    return n == 0 ? 0 : down(n - 1);
  }
}
// CHECK-LABEL: stan.func @down.traced.counting(
// CHECK:       %[[DEEPER:.*]] = trace.descend 5 : !stan.int
// CHECK-NEXT:  stan.select %[[DEEPER]] -> (!stan.int) {
// CHECK-NEXT:    %[[ENTERED:.*]] = stan.call down.traced(%{{.*}}) user unnormalized autodiff
// CHECK-NEXT:    trace.ascend
// CHECK-NEXT:    stan.yield %[[ENTERED]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    trace.block 6 slots 0
// CHECK-NEXT:    %[[PLAIN:.*]] = stan.call down(%{{.*}}) user unnormalized autodiff
// CHECK-NEXT:    stan.yield %[[PLAIN]]
// CHECK-LABEL: stan.func @down.traced(
// CHECK:       stan.call down.traced.counting(%{{.*}})
