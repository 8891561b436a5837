// RUN: stan-opt --split-input-file --verify-each -p overwritten-memory,verify-dominance %s | filecheck %s

// Memory that each row fills, copies and reads: it is the row's, and there is no copy.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %p = rt.alloc variable %m : !rt.buf<f64>
    rt.fill %p, %zero, %m initial : f64
    scf.for %i = %0 to %n step %1 : i64 {
      scf.for %k = %0 to %m step %1 : i64 {
        rt.store %zero, %p[%k] : f64
      }
      %q = rt.alloc %m : !rt.buf<f64>
      rt.copy %p to %q, %m initial : !rt.buf<f64>
      scf.for %k = %0 to %m step %1 : i64 {
        %e = rt.load %q[%k] : f64
        ad.target_add %e
      }
    }
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.alloc
// CHECK:         scf.for %i
// CHECK-NEXT:      [[P:%.*]] = rt.alloc variable %m
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        rt.store %zero, [[P]][%k]
// CHECK-NOT:       rt.copy
// CHECK:           %e = rt.load [[P]][%k

// -----

// The loop that overwrites a copy reads what was copied.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %q = rt.bound 0 : !rt.buf<f64>
    %p = rt.alloc variable %m : !rt.buf<f64>
    rt.copy %q to %p, %m initial : !rt.buf<f64>
    scf.for %k = %0 to %m step %1 : i64 {
      %e = rt.load %p[%k] : f64
      %s = rt.math square(%e) : (f64) -> f64
      rt.store %s, %p[%k] : f64
    }
    %last = rt.load %p[%0] : f64
    ad.target_add %last
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.copy
// CHECK:         %e = rt.load %q[%k]
// CHECK:         rt.store %s, %p[%k]
// CHECK:         %last = rt.load %p

// -----

// An element is read before all are written: the iteration before has written it.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %p = rt.alloc variable %m : !rt.buf<f64>
    rt.fill %p, %zero, %m initial : f64
    scf.for %i = %0 to %n step %1 : i64 {
      %e = rt.load %p[%0] : f64
      ad.target_add %e
      scf.for %k = %0 to %m step %1 : i64 {
        rt.store %e, %p[%k] : f64
      }
    }
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         rt.alloc variable %m
// CHECK-NEXT:    rt.fill
// CHECK-NEXT:    scf.for %i
