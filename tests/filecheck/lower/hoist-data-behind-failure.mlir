// What stands behind a check that fails in each iteration of a loop relies on it: it does not go to `bind`.
// RUN: stan-opt %s -f mlir -p hoist-data | filecheck %s

builtin.module attributes {rt.slots = #rt.slots<1>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %jacobian: i32) -> f64 attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %three = arith.constant 3 : i64
    %five = arith.constant 5 : i64
    %never = arith.constant false
    %data = rt.bound 0 : !rt.buf<f64>
    %before = rt.load %data[%one] : f64
    %root = rt.math sqrt(%before) : (f64) -> f64
    scf.for %i = %zero to %three step %one : i64 {
      scf.for %j = %zero to %three step %one : i64 {
        rt.check %never site 0 status 2 with %five, %three : i64, i64
      }
    }
    %behind = rt.load %data[%five] : f64
    %log = rt.math log(%behind) : (f64) -> f64
    %sum = arith.addf %root, %log : f64
    func.return %sum : f64
  }
}

// CHECK-LABEL: func.func @evaluate
// CHECK: rt.check
// CHECK: rt.load
// CHECK: rt.math log
// CHECK-LABEL: func.func @bind
// CHECK: rt.math sqrt
// CHECK-NOT: rt.math log
