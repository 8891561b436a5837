// RUN: stan-opt -p chosen-elements,dce,verify-dominance %s --split-input-file | filecheck %s

// What some rows read in a branch of data is read in all of them: of others an element that is 0.
// CHECK-LABEL: @evaluate
// CHECK:      [[PADDED:%.*]] = rt.alloc {{.*}} : !rt.buf<f64>
// CHECK:      scf.for
// CHECK:        rt.store {{.*}}, [[PADDED]]
// CHECK:      scf.for %i
// CHECK-NOT:    scf.if
// CHECK:        [[E:%.*]] = rt.load [[PADDED]]
// CHECK-NEXT:   [[Z:%.*]] = rt.load
// CHECK-NEXT:   [[P:%.*]] = arith.mulf [[E]], [[Z]]
// CHECK-NEXT:   [[T:%.*]] = arith.addf %a, [[P]]
// CHECK-NEXT:   [[M:%.*]] = arith.select %c, [[T]], %a
// CHECK-NEXT:   rt.math exp([[M]])
// CHECK:      func.func @bind
// CHECK:      scf.for
// CHECK:        scf.if
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %group = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %seen = rt.bound 3 : !rt.buf<i32>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %none = arith.constant 0 : i32
    %a = rt.load %theta[%i0] : f64
    %u = rt.view %theta[%i1] : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %f = rt.load %seen[%i] : i32
      %c = arith.cmpi ne, %f, %none : i32
      %m = scf.if %c -> (f64) {
        %g = rt.load %group[%i] : i32
        %k = arith.extsi %g : i32 to i64
        %of = rt.load %u[%k] : f64
        %z = rt.load %x[%i] : f64
        %p = arith.mulf %of, %z : f64
        %t = arith.addf %a, %p : f64
        scf.yield %t : f64
      } else {
        scf.yield %a : f64
      }
      %e = rt.math exp(%m) : (f64) -> f64
      ad.target_add %e
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Not where an arm multiplies what others read, too, evaluates a function, or parameters decide, and not in loops without
// functions.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-4: scf.if
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %seen = rt.bound 3 : !rt.buf<i32>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %none = arith.constant 0 : i32
    %a = rt.load %theta[%i0] : f64
    %b = rt.load %theta[%i1] : f64
    %u = rt.view %theta[%i1] : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %f = rt.load %seen[%i] : i32
      %k = arith.extsi %f : i32 to i64
      %c = arith.cmpi ne, %f, %none : i32
      %m = scf.if %c -> (f64) {
        %of = rt.load %u[%k] : f64
        %p = arith.mulf %a, %b : f64
        %t = arith.addf %of, %p : f64
        scf.yield %t : f64
      } else {
        scf.yield %a : f64
      }
      %v = scf.if %c -> (f64) {
        %of = rt.load %u[%k] : f64
        %t = rt.math exp(%of) : (f64) -> f64
        scf.yield %t : f64
      } else {
        scf.yield %a : f64
      }
      %d = arith.cmpf olt, %m, %v : f64
      %w = scf.if %d -> (f64) {
        %of = rt.load %u[%k] : f64
        scf.yield %of : f64
      } else {
        scf.yield %a : f64
      }
      %e = rt.math exp(%w) : (f64) -> f64
      ad.target_add %e
    }
    scf.for %i = %i0 to %n step %i1 : i64 {
      %f = rt.load %seen[%i] : i32
      %k = arith.extsi %f : i32 to i64
      %c = arith.cmpi ne, %f, %none : i32
      %w = scf.if %c -> (f64) {
        %of = rt.load %u[%k] : f64
        scf.yield %of : f64
      } else {
        scf.yield %a : f64
      }
      ad.target_add %w
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}
