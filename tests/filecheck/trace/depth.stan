// RUN: stan-opt %s -p 'trace-instrument{function=down depth=6}' | filecheck %s
// A limit of depth above 4 is tested at run time: what calls `down` calls a function that has the choice between the
// traced clone and `down` itself. A call that is not entered leaves a record of its own, without values.
functions {
  int down(int n) {
    return n == 0 ? 0 : down(n - 1);
  }
}
// CHECK-LABEL: sym_name = "down.traced.counting", stan_name = "down"
// CHECK:       %[[DEEPER:.*]] = "trace.descend"() <{most = 5 : i64}> : () -> !stan.int
// CHECK-NEXT:  "stan.select"(%[[DEEPER]]) ({
// CHECK-NEXT:    %[[ENTERED:.*]] = "stan.call"(%{{.*}}) <{callee = "down.traced", {{.*}}user, unnormalized}>
// CHECK-NEXT:    "trace.ascend"() : () -> ()
// CHECK-NEXT:    "stan.yield"(%[[ENTERED]])
// CHECK-NEXT:  }, {
// CHECK-NEXT:    "trace.block"() <{number = 6 : i64, slots = 0 : i64}>
// CHECK-NEXT:    %[[PLAIN:.*]] = "stan.call"(%{{.*}}) <{callee = "down", {{.*}}user, unnormalized}>
// CHECK-NEXT:    "stan.yield"(%[[PLAIN]])
// CHECK-LABEL: sym_name = "down.traced", stan_name = "down"
// CHECK:       "stan.call"(%{{.*}}) <{{.*}}callee = "down.traced.counting"
