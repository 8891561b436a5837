// Rows that add by an index of data are put in its order by `bind`, and the loop reads columns in that order.
// RUN: stan-opt --split-input-file %s -p sort-rows | filecheck %s

// CHECK-LABEL: func.func @evaluate
// CHECK-DAG: %[[X:.*]] = rt.bound {{[0-9]+}} : !rt.buf<f64>
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: rt.load %{{.*}}[%[[ROW]]] : i32
// CHECK: rt.load %{{.*}}[%[[ROW]]] : f64
// CHECK: ad.accumulate %{{.*}}[%{{.*}}], %{{.*}} {ad.segments = #ad.segments<slot 4, key 0, first 0>}
// Only sums leave the loop, but what is no data is read for each row: it stays.
// CHECK: scf.for
// CHECK-NOT: ad.segments
// CHECK-LABEL: func.func @bind
// CHECK: rt.set_bound 9
// CHECK: rt.kernel segment_rows
// CHECK: rt.set_bound 4, %{{.*}} : i64
// CHECK: rt.set_bound 5, %{{.*}} : !rt.buf<i32>
// CHECK: rt.set_bound 6, %{{.*}} : !rt.buf<i64>
// CHECK: rt.kernel take_ints
// CHECK: rt.kernel take_reals
// CHECK: rt.layout "rows by index"
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
    scf.for %i = %zero to %n step %one : i64 {
      %k = rt.load %g[%i] : i32
      %at = arith.extsi %k : i32 to i64
      %a = rt.load %theta[%i] : f64
      %e = rt.math exp(%a) : (f64) -> f64
      ad.target_add %e
      ad.accumulate %adj[%at], %e
    }
    func.return
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    rt.set_bound 9, %zero : i64
    func.return
  }
}

// -----

// In branches of which data decide, the number of rows is known in front of them: 0 where the loop does not run. Where
// it divides by what may be 0 then, or where parameters decide, rows stay as they are.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[HALF:.*]] = arith.addi %n, %one
// CHECK: %[[NONE:.*]] = arith.select %inner, %[[HALF]], %zero
// CHECK: %[[END:.*]] = arith.select %outer, %zero, %[[NONE]]
// CHECK: scf.if %outer
// CHECK: } else {
// CHECK: scf.if %inner
// CHECK: scf.for %{{.*}} = %zero to %[[END]]
// CHECK: ad.segments
// CHECK: arith.divsi
// CHECK-NOT: ad.segments
// CHECK-LABEL: func.func @bind
// CHECK: rt.kernel segment_rows
// CHECK-NOT: rt.kernel segment_rows
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %adj: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i32>
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %outer = arith.cmpi slt, %n, %one : i64
    %inner = arith.cmpi slt, %one, %n : i64
    scf.if %outer {
      scf.yield
    } else {
      scf.if %inner {
        %half = arith.addi %n, %one : i64
        scf.for %i = %zero to %half step %one : i64 {
          %k = rt.load %g[%i] : i32
          %at = arith.extsi %k : i32 to i64
          %a = rt.load %theta[%at] : f64
          %e = rt.math exp(%a) : (f64) -> f64
          ad.target_add %e
          ad.accumulate %adj[%at], %e
        }
      }
    }
    scf.if %outer {
      %part = arith.divsi %one, %n : i64
      scf.for %i = %zero to %part step %one : i64 {
        %k = rt.load %g[%i] : i32
        %at = arith.extsi %k : i32 to i64
        %a = rt.load %theta[%at] : f64
        %e = rt.math exp(%a) : (f64) -> f64
        ad.target_add %e
        ad.accumulate %adj[%at], %e
      }
    }
    %parameter = rt.load %theta[%zero] : f64
    %nothing = arith.constant 0.0 : f64
    %positive = arith.cmpf olt, %nothing, %parameter : f64
    scf.if %positive {
      scf.for %i = %zero to %n step %one : i64 {
        %k = rt.load %g[%i] : i32
        %at = arith.extsi %k : i32 to i64
        %a = rt.load %theta[%at] : f64
        %e = rt.math exp(%a) : (f64) -> f64
        ad.target_add %e
        ad.accumulate %adj[%at], %e
      }
    }
    func.return
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    rt.set_bound 9, %zero : i64
    func.return
  }
}
