// RUN: stan-opt -p elements-at-reads,dce,verify-dominance --split-input-file %s | filecheck %s

// A matrix that one loop computes is read row by row: each element is computed there.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.store
// CHECK:      scf.for %i
// CHECK:        scf.for %j
// CHECK:          %e = arith.addi
// CHECK-NEXT:     [[X:%.*]] = rt.load %x[%e]
// CHECK-NEXT:     [[P:%.*]] = arith.mulf [[X]], %a
// CHECK-NEXT:     ad.target_add [[P]]
func.func @evaluate(%a: f64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %m = rt.bound 1 : i64
  %x = rt.bound 2 : !rt.buf<f64>
  %count = arith.muli %n, %m : i64
  %p = rt.alloc %count : !rt.buf<f64>
  scf.for %k = %zero to %count step %one : i64 {
    %l = rt.load %x[%k] : f64
    %v = arith.mulf %l, %a : f64
    rt.store %v, %p[%k] initial : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    scf.for %j = %zero to %m step %one : i64 {
      %c = arith.muli %j, %n : i64
      %e = arith.addi %c, %i : i64
      %t = rt.load %p[%e] : f64
      ad.target_add %t
    }
  }
  func.return %nothing : f64
}

// -----

// An element that several iterations read, what the nest itself stores, a nest that waits for its rows: all stay.
// CHECK-LABEL: @evaluate
// CHECK:      rt.store [[V:%.*]], %p
// CHECK:      rt.store [[V]], %q
// CHECK:      rt.store [[V]], %r
// CHECK:      rt.load %p
// CHECK:      rt.load %q
// CHECK:      rt.load %r
func.func @evaluate(%a: f64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %m = rt.bound 1 : i64
  %x = rt.bound 2 : !rt.buf<f64>
  %count = arith.muli %n, %m : i64
  %p = rt.alloc %count : !rt.buf<f64>
  %q = rt.alloc %count : !rt.buf<f64>
  %r = rt.alloc %count : !rt.buf<f64>
  %out = rt.alloc %count : !rt.buf<f64>
  scf.for %k = %zero to %count step %one : i64 {
    %l = rt.load %x[%k] : f64
    %v = arith.mulf %l, %a : f64
    rt.store %v, %p[%k] initial : f64
    rt.store %v, %q[%k] initial : f64
    rt.store %v, %r[%k] initial : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    scf.for %j = %zero to %m step %one : i64 {
      %t = rt.load %p[%i] : f64
      ad.target_add %t
    }
  }
  scf.for %i = %zero to %n step %one : i64 {
    scf.for %j = %zero to %m step %one : i64 {
      %c = arith.muli %j, %n : i64
      %e = arith.addi %c, %i : i64
      %t = rt.load %q[%e] : f64
      rt.store %t, %out[%i] : f64
      ad.target_add %t
    }
  }
  scf.for %i = %zero to %n step %one : i64 {
    %w = scf.for %j = %zero to %m step %one iter_args(%s = %nothing) -> (f64) : i64 {
      %c = arith.muli %j, %n : i64
      %e = arith.addi %c, %i : i64
      %t = rt.load %r[%e] : f64
      %u = arith.mulf %s, %t : f64
      ad.target_add %u
      scf.yield %u : f64
    }
  }
  func.return %nothing : f64
}
