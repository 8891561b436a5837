// RUN: stan-opt -p elements-of-views,verify-dominance --split-input-file %s | filecheck %s

// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.view
// CHECK:      [[FIRST:%[0-9]+]] = arith.addi %at, %i0
// CHECK-NEXT: rt.load %theta{{\[}}[[FIRST]]{{\]}}
// CHECK:      [[SECOND:%[0-9]+]] = arith.addi %at, %i1
// CHECK-NEXT: rt.load %theta{{\[}}[[SECOND]]{{\]}}
builtin.module {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %of = rt.bound 1 : !rt.buf<i64>
    %x = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    scf.for %r = %i0 to %n step %i1 : i64 {
      %at = rt.load %of[%r] : i64
      %v = rt.view %theta[%at] : !rt.buf<f64>
      %a = rt.load %v[%i0] : f64
      %b = rt.load %v[%i1] : f64
      %c = rt.load %x[%r] : f64
      %d = arith.mulf %b, %c : f64
      %e = arith.addf %a, %d : f64
      %f = rt.math exp(%e) : (f64) -> f64
      ad.target_add %f
    }
    func.return %none : f64
  }
}

// -----

// Elements at places that an inner loop counts, memory of the row, and views that something else reads, or that are
// there before the loop.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-4: rt.view
builtin.module {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %of = rt.bound 1 : !rt.buf<i64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %i2 = arith.constant 2 : i64
    %none = arith.constant 0.0 : f64
    %ahead = rt.view %theta[%n] : !rt.buf<f64>
    scf.for %r = %i0 to %n step %i1 : i64 {
      %at = rt.load %of[%r] : i64
      %v = rt.view %theta[%at] : !rt.buf<f64>
      scf.for %k = %i0 to %i2 step %i1 : i64 {
        %a = rt.load %v[%k] : f64
        ad.target_add %a
      }
      %own = rt.alloc %i2 : !rt.buf<f64>
      %w = rt.view %own[%i1] : !rt.buf<f64>
      %u = rt.view %theta[%at] : !rt.buf<f64>
      rt.copy %u to %own, %i2 initial : !rt.buf<f64>
      %b = rt.load %w[%i0] : f64
      ad.target_add %b
      %c = rt.load %ahead[%i0] : f64
      ad.target_add %c
    }
    func.return %none : f64
  }
}
