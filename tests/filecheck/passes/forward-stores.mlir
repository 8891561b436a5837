// RUN: stan-opt -p forward-stores,verify-dominance %s | filecheck %s

// Whatever was stored at other constant indices, through a copy, and within a loop that writes nothing there.
// CHECK-LABEL: @forwarded
// CHECK-NOT: rt.load
func.func @forwarded(%x : f64, %y : f64, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %v = rt.alloc variable %i2 : !rt.buf<f64>
  %w = rt.alloc %i2 : !rt.buf<f64>
  rt.store %x, %v[%i0] : f64
  rt.store %y, %v[%i1] : f64
  %a = rt.load %v[%i0] : f64
  ad.target_add %a
  rt.copy %v to %w, %i2 initial : !rt.buf<f64>
  rt.store %x, %v[%i1] : f64
  scf.for %k = %i0 to %n step %i1 : i64 {
    %b = rt.load %w[%i1] : f64
    ad.target_add %b
  }
  func.return
}

// An index that is not known, a part of the same memory, a loop that writes, a branch that has written, a fill.
// CHECK-LABEL: @others
// CHECK-COUNT-6: rt.load
func.func @others(%x : f64, %y : f64, %n : i64, %c : i1) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %v = rt.alloc variable %i2 : !rt.buf<f64>
  rt.store %x, %v[%i0] : f64
  rt.store %y, %v[%n] : f64
  %a = rt.load %v[%i0] : f64
  ad.target_add %a
  rt.store %x, %v[%i0] : f64
  %part = rt.view %v[%n] : !rt.buf<f64>
  rt.store %y, %part[%i0] : f64
  %b = rt.load %v[%i0] : f64
  ad.target_add %b
  rt.store %x, %v[%i0] : f64
  scf.for %k = %i0 to %n step %i1 : i64 {
    %d = rt.load %v[%i0] : f64
    ad.target_add %d
    rt.store %y, %v[%i0] : f64
  }
  %e = rt.load %v[%i0] : f64
  ad.target_add %e
  rt.store %x, %v[%i0] : f64
  scf.if %c {
    rt.store %y, %v[%i0] : f64
  }
  %f = rt.load %v[%i0] : f64
  ad.target_add %f
  rt.store %x, %v[%i0] : f64
  rt.fill %v, %y, %i1 : f64
  %g = rt.load %v[%i0] : f64
  ad.target_add %g
  func.return
}

// Behind a branch: what its arms have left, of one that stores and of one that does not; a branch in an arm.
// CHECK-LABEL: @chosen
// CHECK:      [[Z:%[0-9a-z_]+]] = scf.if %c -> (f64) {
// CHECK:        [[INNER:%[0-9a-z_]+]] = scf.if %d -> (f64) {
// CHECK:          scf.yield %x
// CHECK:          scf.yield %y
// CHECK:        scf.yield [[INNER]]
// CHECK:      } else {
// CHECK-NEXT:   scf.yield %x
// CHECK:      ad.target_add [[Z]]
func.func @chosen(%x : f64, %y : f64, %c : i1, %d : i1) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %v = rt.alloc variable %i1 : !rt.buf<f64>
  rt.store %x, %v[%i0] : f64
  scf.if %c {
    rt.store %y, %v[%i0] : f64
    scf.if %d {
      rt.store %x, %v[%i0] : f64
    } else {
    }
  } else {
  }
  %z = rt.load %v[%i0] : f64
  ad.target_add %z
  func.return
}

// A result of a branch that gets another one is still what has been stored.
// CHECK-LABEL: @further
// CHECK:      [[BOTH:%[0-9a-z_]+]], [[MORE:%[0-9a-z_]+]] = scf.if %c -> (f64, f64) {
// CHECK:      ad.target_add [[MORE]]
// CHECK-NEXT: ad.target_add [[BOTH]]
func.func @further(%x : f64, %y : f64, %c : i1) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %v = rt.alloc variable %i2 : !rt.buf<f64>
  rt.store %x, %v[%i0] : f64
  %b = scf.if %c -> (f64) {
    rt.store %y, %v[%i0] : f64
    scf.yield %x : f64
  } else {
    scf.yield %y : f64
  }
  rt.store %b, %v[%i1] : f64
  %z = rt.load %v[%i0] : f64
  ad.target_add %z
  %w = rt.load %v[%i1] : f64
  ad.target_add %w
  func.return
}

// Not where an arm stores at an index that is not known, or does not say what is there.
// CHECK-LABEL: @not_chosen
// CHECK-COUNT-2: rt.load
func.func @not_chosen(%x : f64, %y : f64, %n : i64, %c : i1) {
  %i0 = arith.constant 0 : i64
  %i2 = arith.constant 2 : i64
  %v = rt.alloc variable %i2 : !rt.buf<f64>
  rt.store %x, %v[%i0] : f64
  scf.if %c {
    rt.store %y, %v[%n] : f64
  } else {
  }
  %z = rt.load %v[%i0] : f64
  ad.target_add %z
  %w = rt.alloc variable %i2 : !rt.buf<f64>
  scf.if %c {
    rt.store %y, %w[%i0] : f64
  } else {
  }
  %u = rt.load %w[%i0] : f64
  ad.target_add %u
  func.return
}
