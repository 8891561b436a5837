// RUN: stan-opt -p licm,verify-dominance %s | filecheck %s

// Out of both loops; what depends on the inner variable stays.
// CHECK-LABEL: @nest
func.func @nest(%n: i64, %x: f64) -> f64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: %[[E:.*]] = rt.math
  // CHECK-NEXT: scf.for %[[I:.*]] = {{.*}} iter_args
  // CHECK-NEXT: %[[R:.*]] = arith.sitofp %[[I]]
  // CHECK-NEXT: %[[M:.*]] = arith.mulf %[[E]], %[[R]]
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: arith.addf %{{.*}}, %[[M]]
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> (f64) : i64 {
    %q = scf.for %j = %zero to %n step %one iter_args(%t = %s) -> (f64) : i64 {
      %e = rt.math exp(%x) : (f64) -> f64
      %real = arith.sitofp %i : i64 to f64
      %m = arith.mulf %e, %real : f64
      %u = arith.addf %t, %m : f64
      scf.yield %u : f64
    }
    scf.yield %q : f64
  }
  func.return %r : f64
}

// A division by an unknown number might trap where the program would not have divided; checks stay, too.
// CHECK-LABEL: @traps
func.func @traps(%n: i64, %m: i64, %c: i1) -> i64 {
  %zero = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  %one = arith.constant 1 : i64
  // CHECK: arith.remsi %n, %{{.*}} : i64
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: rt.check
  // CHECK-NEXT: arith.divsi %n, %m
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %zero) -> (i64) : i64 {
    rt.check %c site 0
    %q = arith.divsi %n, %m : i64
    %p = arith.remsi %n, %three : i64
    %u = arith.addi %q, %p : i64
    scf.yield %u : i64
  }
  func.return %r : i64
}

// Loads leave no loop that may have no iteration.
// CHECK-LABEL: @loads
func.func @loads(%x: !rt.buf<f64>, %n: i64, %v: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: scf.for
  // CHECK-NEXT: rt.load %x[%{{.*}}]
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %v) -> (f64) : i64 {
    %a = rt.load %x[%zero] : f64
    %t = arith.addf %s, %a : f64
    scf.yield %t : f64
  }
  func.return %r : f64
}

// They leave others, if nothing in the loop writes the buffer.
// CHECK-LABEL: @written
func.func @written(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %v: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %ten = arith.constant 10 : i64
  // CHECK: rt.load %x[%{{.*}}]
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: rt.load %y[%{{.*}}]
  %r = scf.for %i = %zero to %ten step %one iter_args(%s = %v) -> (f64) : i64 {
    %a = rt.load %x[%zero] : f64
    %b = rt.load %y[%zero] : f64
    rt.store %v, %y[%i] : f64
    %u = arith.addf %a, %b : f64
    scf.yield %u : f64
  }
  func.return %r : f64
}

// A loop that surely runs: what precedes the first check may be read in advance, what follows it may not.
// CHECK-LABEL: @sure
func.func @sure(%x: !rt.buf<f64>, %k: i64, %c: i1, %v: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %ten = arith.constant 10 : i64
  // CHECK: rt.load %x[%{{.*}}]
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: rt.check
  // CHECK-NEXT: rt.load %x[%k]
  %r = scf.for %i = %zero to %ten step %one iter_args(%s = %v) -> (f64) : i64 {
    %a = rt.load %x[%zero] : f64
    rt.check %c site 0
    %b = rt.load %x[%k] : f64
    %u = arith.addf %a, %b : f64
    scf.yield %u : f64
  }
  func.return %r : f64
}
