// RUN: stan-opt --split-input-file -p tabulate-by-index,dce,verify-dominance %s | filecheck %s

// What an index decides is computed in a loop over its kinds, once; rows read it, and a copy of the loop stands behind.
// CHECK-LABEL: @evaluate
// CHECK-DAG:  %[[END:.*]] = rt.bound 8 : i64
// CHECK-DAG:  %[[COPY:.*]] = rt.bound 9 : i64
// CHECK:      rt.copy
// CHECK:      %[[TABLE:.*]] = rt.alloc %{{.*}} : !rt.buf<f64>
// CHECK:      scf.for %[[KIND:.*]] =
// CHECK:      rt.load %{{.*}}[%[[KIND]]] : i32
// CHECK:      rt.math exp
// CHECK:      rt.store %{{.*}}, %[[TABLE]]
// CHECK:      {rt.loop = #rt.loop<kinds>}
// CHECK:      scf.for %{{.*}} = %{{.*}} to %[[END]]
// CHECK-NOT:  rt.math exp
// CHECK:      rt.load %[[TABLE]]
// CHECK:      rt.math log1p_exp
// CHECK:      scf.for %{{.*}} = %{{.*}} to %[[COPY]]
// CHECK:      rt.math exp
// CHECK:      rt.math log1p_exp
// CHECK-LABEL: @bind
// CHECK:      rt.kernel count_places
// CHECK:      rt.kernel place_heads
// CHECK:      rt.layout "values by index"
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%p: !rt.buf<f64>, %flags: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %z = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %j = rt.bound 3 : i64
    %a = rt.alloc %j : !rt.buf<f64>
    ad.independent %a, %j
    rt.copy %p to %a, %j initial : !rt.buf<f64>
    scf.for %r = %i0 to %n step %i1 : i64 {
      %k = rt.load %g[%r] : i32
      %at = arith.extsi %k : i32 to i64
      %v = rt.load %a[%at] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      %c = rt.load %x[%r] : f64
      %m = arith.mulf %e, %c : f64
      %l = rt.math log1p_exp(%m) : (f64) -> f64
      ad.target_add %l
    }
    func.return %z : f64
  }
}

// -----

// What is added as it is, is added once for each kind, times its rows; the flag that it sets is set there. Rows multiply
// by the inverse of a divisor.
// CHECK-LABEL: @evaluate
// CHECK:      %[[FLAG:.*]] = scf.for
// CHECK:      rt.math log
// CHECK:      arith.sitofp
// CHECK:      ad.target_add
// CHECK:      arith.ori
// CHECK:      {rt.loop = #rt.loop<kinds>}
// CHECK:      scf.for
// CHECK-NOT:  rt.math log
// CHECK-NOT:  arith.divf
// CHECK:      rt.math square
// CHECK:      scf.for
// CHECK:      rt.math log
// CHECK:      arith.divf
// CHECK:      arith.ori %{{.*}}, %[[FLAG]]
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%p: !rt.buf<f64>, %flags: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %z = arith.constant 0.0 : f64
    %true = arith.constant true
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %j = rt.bound 3 : i64
    %s = rt.alloc %j : !rt.buf<f64>
    ad.independent %s, %j
    rt.copy %p to %s, %j initial : !rt.buf<f64>
    %flag = scf.for %r = %i0 to %n step %i1 iter_args(%f = %i0) -> (i64) : i64 {
      %k = rt.load %g[%r] : i32
      %at = arith.extsi %k : i32 to i64
      %v = rt.load %s[%at] : f64
      %positive = arith.cmpf ogt, %v, %z : f64
      %not = arith.xori %positive, %true : i1
      %wide = arith.extui %not : i1 to i64
      %next = arith.ori %f, %wide : i64
      %l = rt.math log(%v) : (f64) -> f64
      %c = rt.load %x[%r] : f64
      %m = arith.divf %c, %v : f64
      %q = rt.math square(%c) : (f64) -> f64
      %t = arith.mulf %m, %q : f64
      ad.target_add %l
      ad.target_add %t
      scf.yield %next : i64
    }
    %ok = arith.cmpi eq, %flag, %i0 : i64
    rt.check %ok site -1 status 3 {rt.harmless = #rt.harmless}
    func.return %z : f64
  }
}

// -----

// Not so: rows that are affine in their data (`unique-rows`), an index that is a number, memory that the loop changes.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.loop
// CHECK:      func.return
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%p: !rt.buf<f64>, %flags: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %z = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %j = rt.bound 3 : i64
    %a = rt.alloc %j : !rt.buf<f64>
    ad.independent %a, %j
    rt.copy %p to %a, %j initial : !rt.buf<f64>
    %w = rt.alloc %j : !rt.buf<f64>
    rt.copy %p to %w, %j initial : !rt.buf<f64>
    scf.for %r = %i0 to %n step %i1 : i64 {
      %k = rt.load %g[%r] : i32
      %at = arith.extsi %k : i32 to i64
      %v = rt.load %a[%at] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      %c = rt.load %x[%r] : f64
      %m = arith.mulf %e, %c : f64
      ad.target_add %m
    }
    %phi = rt.load %a[%i0] : f64
    scf.for %r = %i0 to %n step %i1 : i64 {
      %k = rt.load %g[%r] : i32
      %y = arith.sitofp %k : i32 to f64
      %s = arith.addf %y, %phi : f64
      %e = rt.math lgamma(%s) : (f64) -> f64
      %c = rt.load %x[%r] : f64
      %q = rt.math square(%c) : (f64) -> f64
      %m = arith.mulf %e, %q : f64
      %t = rt.math exp(%m) : (f64) -> f64
      ad.target_add %t
    }
    scf.for %r = %i0 to %n step %i1 : i64 {
      %k = rt.load %g[%r] : i32
      %at = arith.extsi %k : i32 to i64
      %v = rt.load %w[%at] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      %c = rt.load %x[%r] : f64
      %m = arith.mulf %e, %c : f64
      %l = rt.math log1p_exp(%m) : (f64) -> f64
      rt.store %l, %w[%at] : f64
    }
    func.return %z : f64
  }
}
