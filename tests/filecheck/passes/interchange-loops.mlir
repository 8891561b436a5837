// RUN: stan-opt --split-input-file --verify-each -p interchange-loops,verify-dominance %s | filecheck %s

// A vector to which each step adds a column: each row goes through all steps by itself.
builtin.module {
  func.func @evaluate(%b: !rt.buf<f64>, %start: !rt.buf<f64>, %n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %x = rt.bound 0 : !rt.buf<f64>
    %mu = scf.for %k = %0 to %m step %1 iter_args(%old = %start) -> (!rt.buf<f64>) : i64 {
      %c = rt.load %b[%k] : f64
      %begin = arith.muli %k, %n : i64
      %column = rt.view %x[%begin] : !rt.buf<f64>
      %new = rt.alloc %n : !rt.buf<f64>
      scf.for %i = %0 to %n step %1 : i64 {
        %e = rt.load %column[%i] : f64
        %before = rt.load %old[%i] : f64
        %p = arith.mulf %e, %c : f64
        %s = arith.addf %before, %p : f64
        rt.store %s, %new[%i] initial : f64
      }
      scf.yield %new : !rt.buf<f64>
    }
    %first = rt.load %mu[%0] : f64
    ad.target_add %first
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         [[NEW:%.*]] = rt.alloc %n
// CHECK-NEXT:    scf.for %i = {{%.*}} to %n
// CHECK-NEXT:      [[X:%.*]] = rt.load %start[%i
// CHECK-NEXT:      [[LAST:%.*]] = scf.for %k = %0 to %m step %1 iter_args([[S:%.*]] = [[X]])
// CHECK-NEXT:        rt.load %b[%k
// CHECK:             [[NEXT:%.*]] = arith.addf [[S]], %p
// CHECK-NEXT:        scf.yield [[NEXT]]
// CHECK:           rt.store [[LAST]], [[NEW]][%i
// CHECK:         rt.load [[NEW]]

// -----

// Another element of the one before is read, or the step adds to the target.
builtin.module {
  func.func @evaluate(%start: !rt.buf<f64>, %n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %mu = scf.for %k = %0 to %m step %1 iter_args(%old = %start) -> (!rt.buf<f64>) : i64 {
      %new = rt.alloc %n : !rt.buf<f64>
      scf.for %i = %0 to %n step %1 : i64 {
        %before = rt.load %old[%0] : f64
        rt.store %before, %new[%i] initial : f64
      }
      scf.yield %new : !rt.buf<f64>
    }
    %nu = scf.for %l = %0 to %m step %1 iter_args(%last = %mu) -> (!rt.buf<f64>) : i64 {
      %next = rt.alloc %n : !rt.buf<f64>
      scf.for %i = %0 to %n step %1 : i64 {
        %before = rt.load %last[%i] : f64
        ad.target_add %before
        rt.store %before, %next[%i] initial : f64
      }
      scf.yield %next : !rt.buf<f64>
    }
    %first = rt.load %nu[%0] : f64
    ad.target_add %first
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         scf.for %k = {{.*}} iter_args(%old = %start) -> (!rt.buf<f64>)
// CHECK:         scf.for %l = {{.*}} iter_args(%last = %mu) -> (!rt.buf<f64>)
