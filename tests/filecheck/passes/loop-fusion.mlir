// RUN: stan-opt -p 'loop-fusion{reassociate=true},verify-dominance' %s | filecheck %s
// RUN: stan-opt -p 'loop-fusion{before-reverse-mode=true}' %s | filecheck --check-prefix=BEFORE %s

// An element is read in the iteration that stored it, or a later one; what needs the first loop's sum goes behind.
// CHECK-LABEL: @elements
// CHECK: scf.for
// CHECK: rt.store %{{.*}}, %x[%i]
// CHECK: arith.subi %i
// CHECK-NOT: scf.for
// CHECK: rt.store %{{.*}}, %x[%zero]
// Reverse mode takes iterations to be independent: not before it.
// BEFORE-LABEL: @elements
// BEFORE-COUNT-2: scf.for
func.func @elements(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %s = scf.for %i = %one to %n step %one iter_args(%t = %v) -> (f64) : i64 {
    rt.store %v, %x[%i] : f64
    %u = arith.addf %t, %v : f64
    scf.yield %u : f64
  }
  %w = arith.addf %s, %v : f64
  scf.for %i = %one to %n step %one : i64 {
    %j = arith.subi %i, %one : i64
    %a = rt.load %x[%j] : f64
    rt.store %a, %y[%i] : f64
  }
  rt.store %w, %x[%zero] : f64
  func.return
}

// An element that a later iteration of the first loop stores: no.
// CHECK-LABEL: @too_early
// CHECK-COUNT-2: scf.for
func.func @too_early(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  scf.for %i = %one to %n step %one : i64 {
    rt.store %v, %x[%i] : f64
  }
  scf.for %i = %one to %n step %one : i64 {
    %j = arith.addi %i, %one : i64
    %a = rt.load %x[%j] : f64
    rt.store %a, %y[%i] : f64
  }
  func.return
}

// The second loop uses a sum of the first: no. So it does with one that it takes over, unless it may be re-associated.
// CHECK-LABEL: @sums
// CHECK: scf.for {{.*}} -> (f64)
// CHECK: arith.addf {{.*}} fastmath<reassoc>
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: arith.addf {{.*}} fastmath<reassoc>
// CHECK-NEXT: scf.yield
// CHECK: scf.for
// CHECK: arith.mulf
func.func @sums(%n: i64, %v: f64) -> (f64, f64) attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  %s = scf.for %i = %one to %n step %one iter_args(%t = %v) -> (f64) : i64 {
    %u = arith.addf %t, %v fastmath<reassoc> : f64
    scf.yield %u : f64
  }
  %p = scf.for %i = %one to %n step %one iter_args(%t = %s) -> (f64) : i64 {
    %r = arith.sitofp %i : i64 to f64
    %u = arith.addf %t, %r fastmath<reassoc> : f64
    scf.yield %u : f64
  }
  %q = scf.for %i = %one to %n step %one iter_args(%t = %v) -> (f64) : i64 {
    %u = arith.mulf %t, %p : f64
    scf.yield %u : f64
  }
  func.return %p, %q : f64, f64
}

// A check between the loops may guard the second one; it may not go behind it.
// CHECK-LABEL: @guarded
// CHECK-COUNT-2: scf.for
func.func @guarded(%x: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  %s = scf.for %i = %one to %n step %one iter_args(%t = %v) -> (f64) : i64 {
    %u = arith.addf %t, %v : f64
    scf.yield %u : f64
  }
  %ok = arith.cmpf ogt, %s, %v : f64
  rt.check %ok site 0
  scf.for %i = %one to %n step %one : i64 {
    rt.store %v, %x[%i] : f64
  }
  func.return
}

// Another range, or two additions to the target whose order must stay: no.
// BEFORE-LABEL: @target
// BEFORE-COUNT-3: scf.for
func.func @target(%n: i64, %m: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  scf.for %i = %one to %n step %one : i64 {
    ad.target_add %v
  }
  scf.for %i = %one to %n step %one : i64 {
    ad.target_add %v
  }
  scf.for %i = %one to %m step %one : i64 {
    ad.target_add %v
  }
  func.return
}

// Before reverse mode: what the loop that adds to the target alone reads is computed in it.
// BEFORE-LABEL: @absorbed
// BEFORE: scf.for
// BEFORE-NOT: scf.for
// BEFORE: return
// If something else reads it, the loop stays one that only adds to the target.
// BEFORE-LABEL: @read_elsewhere
// BEFORE-COUNT-2: scf.for
func.func @absorbed(%x: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  %t = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %one to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    rt.store %a, %t[%i] : f64
  }
  scf.for %i = %one to %n step %one : i64 {
    %a = rt.load %t[%i] : f64
    ad.target_add %a
  }
  func.return
}
func.func @read_elsewhere(%x: !rt.buf<f64>, %n: i64, %v: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  %t = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %one to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    rt.store %a, %t[%i] : f64
  }
  scf.for %i = %one to %n step %one : i64 {
    %a = rt.load %t[%i] : f64
    ad.target_add %a
  }
  %e = rt.load %t[%one] : f64
  func.return %e : f64
}

// A loop that could be vectorised stays apart from one that carries a value, if it has functions to compute.
// CHECK-LABEL: @carries
// CHECK-COUNT-2: scf.for
func.func @carries(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %v: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1 : i64
  %s = scf.for %i = %one to %n step %one iter_args(%t = %v) -> (f64) : i64 {
    %u = arith.addf %t, %v : f64
    rt.store %u, %x[%i] : f64
    scf.yield %u : f64
  }
  scf.for %i = %one to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %e = rt.math exp(%a) : (f64) -> f64
    rt.store %e, %y[%i] : f64
  }
  func.return %s : f64
}

// Memory that an iteration takes for itself is no matter of the loop behind.
// BEFORE-LABEL: @own_memory
// BEFORE-COUNT-2: scf.for
// BEFORE-NOT:     scf.for
func.func @own_memory(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %sums = rt.alloc %rows : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %own = rt.alloc %rows : !rt.buf<f64>
    scf.for %k = %i0 to %rows step %i1 : i64 {
      %x = rt.load %theta[%k] : f64
      rt.store %x, %own[%k] : f64
    }
    %s = rt.load %own[%n] : f64
    rt.store %s, %sums[%n] : f64
  }
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %s = rt.load %sums[%n] : f64
    %c = arith.cmpf ogt, %s, %zero : f64
    scf.if %c {
      ad.target_add %s
    }
  }
  func.return %zero : f64
}

// A function that is called row by row, beside one that is computed for several rows at once, of other rows: no, where
// bits may change. If one reads what the other computes, the memory of it counts for more.
// CHECK-LABEL: @one_by_one
// CHECK-COUNT-2: scf.for
// BEFORE-LABEL: @one_by_one
// BEFORE-COUNT-1: scf.for
// BEFORE-NOT: scf.for
func.func @one_by_one(%a: f64, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x = rt.alloc %n : !rt.buf<f64>
  %y = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.math lgamma(%a) : (f64) -> f64
    rt.store %e, %x[%i] : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.math exp(%a) : (f64) -> f64
    rt.store %e, %y[%i] : f64
  }
  func.return
}

// BEFORE-LABEL: @handed_on
// CHECK-LABEL: @handed_on
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @handed_on(%a: f64, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x = rt.alloc %n : !rt.buf<f64>
  %y = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.math lgamma(%a) : (f64) -> f64
    rt.store %e, %x[%i] : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    %u = rt.load %x[%i] : f64
    %e = rt.math exp(%u) : (f64) -> f64
    rt.store %e, %y[%i] : f64
  }
  func.return
}

// A kernel between the loops that only reads what both read is no hindrance.
// CHECK-LABEL: @read_by_a_kernel
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @read_by_a_kernel(%n: i64, %zero: i64, %one: i64) {
  %x = rt.alloc %n : !rt.buf<f64>
  %y = rt.alloc %n : !rt.buf<f64>
  %p = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    %b = rt.load %x[%i] : f64
    rt.store %b, %y[%i] : f64
  }
  rt.kernel multiply(%x, %x, %one, %one, %one, %p) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, i64, !rt.buf<f64>) -> ()
  scf.for %i = %zero to %n step %one : i64 {
    %b = rt.load %x[%i] : f64
    rt.store %b, %y[%i] : f64
  }
  func.return
}
