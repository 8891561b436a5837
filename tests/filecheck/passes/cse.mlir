// RUN: stan-opt -p cse,verify-dominance %s | filecheck %s

// Either order of the operands; a nested region sees what the outer one has computed, not the other way round.
// CHECK-LABEL: @pure
func.func @pure(%x: f64, %y: f64, %c: i1) -> (f64, f64, f64) {
  // CHECK: %[[S:.*]] = arith.addf %x, %y
  // CHECK-NEXT: %[[D:.*]] = arith.subf %x, %y
  // CHECK-NEXT: %[[E:.*]] = arith.subf %y, %x
  %a = arith.addf %x, %y : f64
  %b = arith.addf %y, %x : f64
  %d = arith.subf %x, %y : f64
  %e = arith.subf %y, %x : f64
  %i = scf.if %c -> (f64) {
    // CHECK: scf.yield %[[S]]
    %f = arith.addf %x, %y : f64
    scf.yield %f : f64
  } else {
    // CHECK: %[[M:.*]] = arith.mulf
    %g = arith.mulf %x, %y : f64
    scf.yield %g : f64
  }
  // CHECK: arith.mulf
  %h = arith.mulf %x, %y : f64
  %j = arith.addf %b, %h : f64
  %k = arith.subf %d, %e : f64
  func.return %i, %j, %k : f64, f64, f64
}

// 0.0 and -0.0 are different constants; a check that has passed needs no repetition.
// CHECK-LABEL: @constants
func.func @constants(%c: i1) -> (f64, f64, f64) {
  // CHECK: rt.check
  // CHECK-NOT: rt.check
  rt.check %c site 0
  rt.check %c site 1
  // CHECK: %[[P:.*]] = arith.constant 0.0
  // CHECK-NEXT: %[[N:.*]] = arith.constant -0.0
  // CHECK-NEXT: func.return %[[P]], %[[N]], %[[P]]
  %a = arith.constant 0.0 : f64
  %b = arith.constant -0.0 : f64
  %d = arith.constant 0.0 : f64
  func.return %a, %b, %d : f64, f64, f64
}

// Loads, up to a write that may touch the same memory. Arguments of entry points do not overlap.
// CHECK-LABEL: @loads
func.func @loads(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %i: i64, %v: f64) -> (f64, f64, f64) attributes {rt.entry = #rt.entry} {
  // CHECK: %[[A:.*]] = rt.load %x[%i]
  %a = rt.load %x[%i] : f64
  rt.store %v, %y[%i] : f64
  %b = rt.load %x[%i] : f64
  %stored = rt.load %y[%i] : f64
  rt.kernel change(%x) : (!rt.buf<f64>) -> ()
  // CHECK: rt.kernel
  // CHECK-NEXT: %[[C:.*]] = rt.load %x[%i]
  %c = rt.load %x[%i] : f64
  // CHECK-NEXT: func.return %[[A]], %v, %[[C]]
  func.return %b, %stored, %c : f64, f64, f64
}

// Those of other functions may. A loop that writes makes the loads before it worthless, inside and after it.
// CHECK-LABEL: @loop
func.func @loop(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %i: i64, %v: f64) -> (f64, f64) {
  %one = arith.constant 1 : i64
  %a = rt.load %x[%i] : f64
  %s = scf.for %k = %one to %i step %one iter_args(%s = %a) -> (f64) : i64 {
    // CHECK: scf.for
    // CHECK-NEXT: rt.load %x[%i]
    %b = rt.load %x[%i] : f64
    rt.store %v, %y[%k] : f64
    scf.yield %b : f64
  }
  // CHECK: %[[C:.*]] = rt.load %x[%i]
  // CHECK-NEXT: func.return %{{.*}}, %[[C]]
  %c = rt.load %x[%i] : f64
  func.return %s, %c : f64, f64
}

// While data are being bound, the bound table changes.
// CHECK-LABEL: @prepare
func.func @prepare(%v: f64) -> (f64, f64) {
  // CHECK: %[[A:.*]] = rt.bound
  // CHECK: %[[B:.*]] = rt.bound
  // CHECK: func.return %[[A]], %[[B]]
  %a = rt.bound 3 : f64
  rt.set_bound 3, %v : f64
  %b = rt.bound 3 : f64
  func.return %a, %b : f64, f64
}

// -----

// A loop that checks what one before it has checked goes; not where the memory was written meanwhile, or where the
// first may not have run.
// CHECK-LABEL: func.func @checks
// CHECK: scf.for %{{.*}} = %{{.*}} to %n
// CHECK: rt.check %{{.*}} site 1
// CHECK-NOT: site 2
// CHECK: rt.store
// CHECK: site 3
// CHECK: scf.if
// CHECK: site 4
// CHECK: } else
// CHECK: site 5
// CHECK: site 6
func.func @checks(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %c: i1) attributes {rt.entry = #rt.entry} {
  %0 = arith.constant 0 : i64
  %1 = arith.constant 1 : i64
  scf.for %i = %0 to %n step %1 : i64 {
    %a = rt.load %x[%i] : f64
    %ok = arith.cmpf ord, %a, %a : f64
    rt.check %ok site 1 status 3 with %i : i64
  }
  scf.for %j = %0 to %n step %1 : i64 {
    %b = rt.load %x[%j] : f64
    %fine = arith.cmpf ord, %b, %b : f64
    rt.check %fine site 2 status 3 with %j : i64
  }
  %v = rt.load %y[%0] : f64
  rt.store %v, %x[%0] : f64
  scf.for %k = %0 to %n step %1 : i64 {
    %d = rt.load %x[%k] : f64
    %good = arith.cmpf ord, %d, %d : f64
    rt.check %good site 3 status 3 with %k : i64
  }
  scf.if %c {
    scf.for %k = %0 to %n step %1 : i64 {
      %d = rt.load %y[%k] : f64
      %good = arith.cmpf ord, %d, %d : f64
      rt.check %good site 4 status 3 with %k : i64
    }
  } else {
    scf.for %k = %0 to %n step %1 : i64 {
      %d = rt.load %y[%k] : f64
      %good = arith.cmpf ord, %d, %d : f64
      rt.check %good site 5 status 3 with %k : i64
    }
  }
  scf.for %k = %0 to %n step %1 : i64 {
    %d = rt.load %y[%k] : f64
    %good = arith.cmpf ord, %d, %d : f64
    rt.check %good site 6 status 3 with %k : i64
  }
  func.return
}
