// RUN: stan-opt -p loop-hints %s | filecheck %s

// A short body that only sums: several sums run side by side.
// CHECK-LABEL: @sum
// CHECK: rt.loop = #rt.loop<interleave
func.func @sum(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %s = scf.for %i = %zero to %n step %one iter_args(%t = %none) -> (f64) : i64 {
    %a = rt.load %x[%i] : f64
    %next = arith.addf %t, %a fastmath<reassoc> : f64
    scf.yield %next : f64
  }
  func.return %s : f64
}

// An iteration needs the one before it.
// CHECK-LABEL: @chain
// CHECK: rt.loop = #rt.loop<serial>
func.func @chain(%x: f64, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %s = scf.for %i = %zero to %n step %one iter_args(%t = %x) -> (f64) : i64 {
    %next = rt.math exp(%t) : (f64) -> f64
    scf.yield %next : f64
  }
  func.return %s : f64
}

// Not so where a branch takes longer than the addition: it would be there four times.
// CHECK-LABEL: @costly_branch
// CHECK-NOT: rt.loop
// CHECK: return
func.func @costly_branch(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %s = scf.for %i = %zero to %n step %one iter_args(%t = %none) -> (f64) : i64 {
    %a = rt.load %x[%i] : f64
    %positive = arith.cmpf ogt, %a, %none : f64
    %term = scf.if %positive -> (f64) {
      %e = rt.math exp(%a) : (f64) -> f64
      scf.yield %e : f64
    } else {
      scf.yield %a : f64
    }
    %next = arith.addf %t, %term fastmath<reassoc> : f64
    scf.yield %next : f64
  }
  func.return %s : f64
}

// A function of C is called for one element after the other.
// CHECK-LABEL: @function_of_c
// CHECK: rt.loop = #rt.loop<serial>
func.func @function_of_c(%x: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %g = rt.math lgamma(%a) : (f64) -> f64
    %e = rt.math exp(%g) : (f64) -> f64
    rt.store %e, %x[%i] : f64
  }
  func.return
}

// A square is a power, too.
// CHECK-LABEL: @power
// CHECK: rt.loop = #rt.loop<functions>
func.func @power(%x: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2.0 : f64
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %p = rt.math pow(%a, %two) : (f64, f64) -> f64
    rt.store %p, %x[%i] : f64
  }
  func.return
}
