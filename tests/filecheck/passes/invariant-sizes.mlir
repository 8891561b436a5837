// RUN: stan-opt -p invariant-sizes,dce,verify-dominance %s | filecheck %s

// The size of a slice of as many elements in each iteration.
// CHECK-LABEL: @evaluate
// CHECK:       scf.for %t
// CHECK-NEXT:    %first = arith.subi %t, %p : i64
// CHECK-NEXT:    %size = arith.maxsi %p, %zero : i64
// CHECK-NEXT:    rt.store %size
// CHECK-NEXT:    %changing = arith.maxsi %first, %zero : i64
// CHECK:         scf.for %k
// CHECK-NEXT:      %left = arith.maxsi %t, %zero : i64
func.func @evaluate(%b: !rt.buf<i64>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = rt.bound 0 : i64
  %p = rt.bound 1 : i64
  scf.for %t = %p to %n step %one : i64 {
    %last = arith.subi %t, %one : i64
    %first = arith.subi %t, %p : i64
    %span = arith.subi %last, %first : i64
    %count = arith.addi %span, %one : i64
    %size = arith.maxsi %count, %zero : i64
    rt.store %size, %b[%t] : i64
    // One that changes.
    %changing = arith.maxsi %first, %zero : i64
    rt.store %changing, %b[%t] : i64
    // The same in all iterations of the inner loop.
    scf.for %k = %zero to %p step %one : i64 {
      %end = arith.addi %t, %k : i64
      %rest = arith.subi %end, %k : i64
      %left = arith.maxsi %rest, %zero : i64
      rt.store %left, %b[%k] : i64
    }
  }
  func.return
}
