// RUN: stan-opt -p split-memory,verify-dominance %s | filecheck %s

// A column of its own for each outcome, with what all are filled with; by a view, and at a sum.
// CHECK-LABEL: @columns
// CHECK:      [[FIRST:%[0-9a-z]+]] = rt.alloc variable %n
// CHECK-NEXT: [[SECOND:%[0-9a-z]+]] = rt.alloc variable %n
// CHECK-NEXT: rt.fill [[FIRST]], %a, %n
// CHECK-NEXT: rt.fill [[SECOND]], %a, %n
// CHECK:      rt.store %a, [[FIRST]][%i]
// CHECK:      rt.store %a, [[SECOND]][%i]
// CHECK:      rt.load [[SECOND]][%j]
func.func @columns(%n: i64, %a: f64) {
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %zero = arith.constant 0 : i64
  %count = arith.muli %n, %two : i64
  %m = rt.alloc variable %count : !rt.buf<f64>
  rt.fill %m, %a, %count : f64
  scf.for %i = %zero to %n step %one : i64 {
    rt.store %a, %m[%i] : f64
    %k = arith.addi %n, %i : i64
    rt.store %a, %m[%k] : f64
  }
  %v = rt.view %m[%n] : !rt.buf<f64>
  scf.for %j = %zero to %n step %one : i64 {
    %b = rt.load %v[%j] : f64
    ad.target_add %b
  }
  func.return
}

// A loop that goes beyond its part, and a function that has all of it: no.
// CHECK-LABEL: @beyond
// CHECK:      rt.alloc %count
// CHECK-LABEL: @whole
// CHECK:      rt.alloc %count
func.func @beyond(%n: i64, %a: f64) {
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %zero = arith.constant 0 : i64
  %count = arith.muli %n, %two : i64
  %m = rt.alloc %count : !rt.buf<f64>
  scf.for %i = %zero to %count step %one : i64 {
    rt.store %a, %m[%i] : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    %b = rt.load %m[%i] : f64
    ad.target_add %b
  }
  func.return
}
func.func @whole(%n: i64, %a: f64, %x: !rt.buf<f64>) {
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %zero = arith.constant 0 : i64
  %count = arith.muli %n, %two : i64
  %m = rt.alloc %count : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    rt.store %a, %m[%i] : f64
  }
  rt.kernel multiply(%m, %m, %one, %one, %one, %x) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, i64, !rt.buf<f64>) -> ()
  func.return
}
