// RUN: stan-opt -p sink-bound,verify-dominance %s | filecheck %s

// What the loop alone reads is read in its arm; what both arms use stays, and so does a condition.
// CHECK-LABEL: @arms
// CHECK:      [[FLAG:%.*]] = rt.bound 0 : i1
// CHECK-NEXT: [[BOTH:%.*]] = rt.bound 1 : !rt.buf<f64>
// CHECK-NOT:  rt.bound
// CHECK:      scf.if [[FLAG]]
// CHECK-NOT:  rt.bound
// CHECK:      } else {
// CHECK-DAG:  rt.bound 3 : i64
// CHECK-DAG:  rt.bound 2 : !rt.buf<f64>
// CHECK:      scf.for
func.func @arms(%i0 : i64, %i1 : i64, %z : f64) -> f64 {
  %used = rt.bound 0 : i1
  %both = rt.bound 1 : !rt.buf<f64>
  %x = rt.bound 2 : !rt.buf<f64>
  %n = rt.bound 3 : i64
  %sum = scf.if %used -> (f64) {
    %a = rt.load %both[%i0] : f64
    scf.yield %a : f64
  } else {
    %s = scf.for %i = %i0 to %n step %i1 iter_args(%t = %z) -> (f64) : i64 {
      %b = rt.load %x[%i] : f64
      %c = rt.load %both[%i] : f64
      %d = arith.mulf %b, %c : f64
      %e = arith.addf %t, %d : f64
      scf.yield %e : f64
    }
    scf.yield %s : f64
  }
  func.return %sum : f64
}

// In an arm inside of an arm, but not in a loop.
// CHECK-LABEL: @inside
// CHECK-NOT:  rt.bound
// CHECK:      scf.if
// CHECK:      scf.if
// CHECK-NEXT: rt.bound 0 : !rt.buf<f64>
// CHECK:      scf.for
// CHECK-NOT:  rt.bound
func.func @inside(%c : i1, %d : i1, %i0 : i64, %n : i64, %i1 : i64, %y : !rt.buf<f64>) {
  %x = rt.bound 0 : !rt.buf<f64>
  scf.if %c {
    scf.if %d {
      scf.for %i = %i0 to %n step %i1 : i64 {
        %a = rt.load %x[%i] : f64
        rt.store %a, %y[%i] : f64
      }
      scf.yield
    }
    scf.yield
  }
  func.return
}
