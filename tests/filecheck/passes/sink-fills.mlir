// RUN: stan-opt -p sink-fills,verify-dominance %s | filecheck %s

// What fills memory that a loop of the arm alone reads goes there, in its order; what the flag is computed by stays.
// CHECK-LABEL: @filled
// CHECK:      [[FLAG:%.*]] = rt.bound 2 : i1
// CHECK-NOT:  rt.alloc
// CHECK:      scf.if [[FLAG]]
// CHECK-NEXT: [[MEMORY:%.*]] = rt.alloc
// CHECK-NEXT: rt.fill [[MEMORY]]
// CHECK-NEXT: scf.for
// CHECK:      rt.store {{.*}}, [[MEMORY]]
// CHECK:      ad.target_add
func.func @filled(%a: f64, %i0: i64, %i1: i64, %z: f64) {
  %x = rt.bound 0 : !rt.buf<f64>
  %n = rt.bound 1 : i64
  %on = rt.bound 2 : i1
  %m = rt.alloc %n : !rt.buf<f64>
  rt.fill %m, %z, %n initial : f64
  scf.for %i = %i0 to %n step %i1 : i64 {
    %b = rt.load %x[%i] : f64
    %c = arith.mulf %a, %b : f64
    rt.store %c, %m[%i] : f64
  }
  scf.if %on {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.load %m[%i] : f64
      %c = rt.math exp(%b) : (f64) -> f64
      ad.target_add %c
    }
  } else {
  }
  func.return
}

// So does a kernel that only computes.
// CHECK-LABEL: @kernel
// CHECK:      scf.if
// CHECK-NEXT: rt.alloc
// CHECK-NEXT: rt.kernel multiply
func.func @kernel(%i0: i64, %i1: i64) {
  %x = rt.bound 0 : !rt.buf<f64>
  %a = rt.bound 3 : !rt.buf<f64>
  %n = rt.bound 1 : i64
  %on = rt.bound 2 : i1
  %m = rt.alloc %n : !rt.buf<f64>
  rt.kernel multiply(%x, %a, %n, %n, %i1, %m) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, i64, !rt.buf<f64>) -> ()
  scf.if %on {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.load %m[%i] : f64
      ad.target_add %b
    }
  } else {
  }
  func.return
}

// Something behind the branch reads it, too.
// CHECK-LABEL: @behind
// CHECK:      rt.alloc
// CHECK:      scf.if
func.func @behind(%a: f64, %i0: i64, %i1: i64) {
  %n = rt.bound 1 : i64
  %on = rt.bound 2 : i1
  %m = rt.alloc %n : !rt.buf<f64>
  rt.fill %m, %a, %n initial : f64
  scf.if %on {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.load %m[%i] : f64
      ad.target_add %b
    }
  } else {
  }
  %last = rt.load %m[%i0] : f64
  ad.target_add %last
  func.return
}

// Parameters decide; what it reads changes before the branch.
// CHECK-LABEL: @others
// CHECK-COUNT-2: rt.alloc
// CHECK:      scf.if
// CHECK-NOT:  rt.alloc
func.func @others(%a: f64, %p: i1, %i0: i64, %i1: i64) {
  %n = rt.bound 1 : i64
  %on = rt.bound 2 : i1
  %s = rt.alloc %n : !rt.buf<f64>
  rt.store %a, %s[%i0] : f64
  %m = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %b = rt.load %s[%i0] : f64
    rt.store %b, %m[%i] initial : f64
  }
  rt.store %a, %s[%i1] : f64
  scf.if %on {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.load %m[%i] : f64
      ad.target_add %b
    }
  } else {
  }
  scf.if %p {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.load %s[%i] : f64
      ad.target_add %b
    }
  } else {
  }
  func.return
}
