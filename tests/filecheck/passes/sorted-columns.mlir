// Where equal rows of the same loop are looked for, too, these are found in the data as they are: rows get an order behind
// that, none of them if equal ones are computed once.
// RUN: stan-opt --verify-each %s -p sort-rows,unique-rows | filecheck %s

// CHECK-LABEL: func.func @bind
// CHECK: rt.kernel weigh_rows
// CHECK: rt.kernel take_ints
// CHECK: %[[LEFT:[0-9]+]] = arith.select %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} : i64
// CHECK-NEXT: rt.mark_arena
// CHECK: rt.kernel segment_rows(%{{[0-9]+}}, %[[LEFT]]
// CHECK: rt.layout "rows by index"
// CHECK-SAME: "equal rows are computed once"
// CHECK: rt.release
// CHECK: scf.if
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %adj: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    scf.for %i = %zero to %n step %one : i64 {
      %k = rt.load %g[%i] : i32
      %at = arith.extsi %k : i32 to i64
      %v = rt.load %x[%i] : f64
      %a = rt.load %theta[%at] : f64
      %s = arith.mulf %a, %v : f64
      %e = rt.math exp(%s) : (f64) -> f64
      ad.target_add %e
      ad.accumulate %adj[%at], %e
    }
    func.return
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
