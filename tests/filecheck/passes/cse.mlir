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
