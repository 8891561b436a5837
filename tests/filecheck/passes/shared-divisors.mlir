// RUN: stan-opt -p shared-divisors,verify-dominance %s | filecheck %s

// Two quotients by one divisor: it is divided for once, ahead of the outer loop.
// CHECK-LABEL: @twice
// CHECK:      [[R:%.*]] = arith.divf {{%.*}}, %s
// CHECK-NEXT: [[A:%.*]] = rt.math fabs([[R]])
// CHECK:      [[L:%.*]] = arith.select
// CHECK-NEXT: [[F:%.*]] = arith.select {{%.*}}, [[L]], [[R]]
// CHECK-NEXT: scf.for %i
// CHECK-NEXT:   scf.for %j
// CHECK-NOT:    arith.divf
// CHECK:        arith.mulf %x, [[F]]
// CHECK:        arith.mulf %g, [[F]]
func.func @twice(%a : !rt.buf<f64>, %s : f64, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %d = rt.bound 0 : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    scf.for %j = %i0 to %n step %i1 : i64 {
      %x = rt.load %d[%j] : f64
      %q = arith.divf %x, %s : f64
      ad.target_add %q
      %g = rt.load %a[%i] : f64
      %p = arith.divf %g, %s : f64
      ad.target_add %p
    }
  }
  func.return
}

// A constant has its inverse at once; a divisor of the outer loop stays, since the inner one may be short.
// CHECK-LABEL: @rows
// CHECK:      [[C:%.*]] = arith.constant 1.000000e-02
// CHECK:        %s = rt.load
// CHECK-NEXT:   scf.for %j
// CHECK:          [[Q:%.*]] = arith.divf %x, %s
// CHECK-NEXT:     arith.mulf [[Q]], [[C]]
func.func @rows(%a : !rt.buf<f64>, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %c = arith.constant 100.0 : f64
  scf.for %i = %i0 to %n step %i1 : i64 {
    %s = rt.load %a[%i] : f64
    scf.for %j = %i0 to %n step %i1 : i64 {
      %x = rt.load %a[%j] : f64
      %q = arith.divf %x, %s : f64
      %p = arith.divf %q, %c : f64
      ad.target_add %p
    }
  }
  func.return
}

// A loop in one that is not counted, as a solver's over a few states.
// CHECK-LABEL: @in_a_while
// CHECK: arith.divf %x, %s
func.func @in_a_while(%a : !rt.buf<f64>, %s : f64, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %last = scf.while (%t = %i0) : (i64) -> i64 {
    %go = arith.cmpi slt, %t, %n : i64
    scf.condition(%go) %t : i64
  } do {
  ^bb0(%t : i64):
    scf.for %i = %i0 to %n step %i1 : i64 {
      %x = rt.load %a[%i] : f64
      %q = arith.divf %x, %s : f64
      ad.target_add %q
    }
    %next = arith.addi %t, %i1 : i64
    scf.yield %next : i64
  }
  func.return
}

// What changes in the loop, a quotient that is compared or rounded, an inverse, no loop.
// CHECK-LABEL: @others
// CHECK: arith.divf %x, %x
// CHECK: arith.divf %x, %s
// CHECK: arith.divf %x, %s
// CHECK: arith.divf %one, %s
// CHECK: arith.divf %one, %s
func.func @others(%a : !rt.buf<f64>, %s : f64, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %one = arith.constant 1.0 : f64
  scf.for %i = %i0 to %n step %i1 : i64 {
    %x = rt.load %a[%i] : f64
    %q0 = arith.divf %x, %x : f64
    ad.target_add %q0
    %q1 = arith.divf %x, %s : f64
    %is = arith.cmpf olt, %q1, %one : f64
    %c1 = arith.select %is, %x, %one : f64
    ad.target_add %c1
    %q2 = arith.divf %x, %s : f64
    %f2 = rt.math floor(%q2) : (f64) -> f64
    ad.target_add %f2
    %q3 = arith.divf %one, %s : f64
    ad.target_add %q3
  }
  %q4 = arith.divf %one, %s : f64
  ad.target_add %q4
  func.return
}
