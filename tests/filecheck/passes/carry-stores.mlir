// RUN: stan-opt -p carry-stores,verify-dominance %s | filecheck %s

// The root that the iteration before stored is squared: it is carried.
// CHECK-LABEL: @recurrence
// CHECK:      [[FIRST:%.*]] = rt.load %s[{{.*}}] {rt.ahead
// CHECK-NEXT: scf.for %t = {{.*}} iter_args([[BEFORE:%.*]] = [[FIRST]]) -> (f64)
// CHECK-NOT:  rt.load
// CHECK:      rt.math square([[BEFORE]])
// CHECK:      rt.store %r, %s[{{.*}}]
// CHECK-NEXT: scf.yield %r : f64
func.func @recurrence(%n : i64, %c : f64) {
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %s = rt.alloc variable %n : !rt.buf<f64>
  scf.for %t = %i2 to %n step %i1 : i64 {
    %i = arith.subi %t, %i1 : i64
    %j = arith.subi %i, %i1 : i64
    %x = rt.load %s[%j] : f64
    %q = rt.math square(%x) : (f64) -> f64
    %v = arith.addf %q, %c : f64
    %r = rt.math sqrt(%v) : (f64) -> f64
    rt.store %r, %s[%i] : f64
  }
  func.return
}

// (c * x) * x is c * square(x).
// CHECK-LABEL: @product
// CHECK:      iter_args([[BEFORE:%.*]] = {{.*}}) -> (f64)
// CHECK:      [[SQUARE:%.*]] = rt.math square([[BEFORE]])
// CHECK-NEXT: rt.math fma(%c, [[SQUARE]], %c)
func.func @product(%n : i64, %c : f64) {
  %i1 = arith.constant 1 : i64
  %s = rt.alloc variable %n : !rt.buf<f64>
  scf.for %t = %i1 to %n step %i1 : i64 {
    %j = arith.subi %t, %i1 : i64
    %x = rt.load %s[%j] : f64
    %p = arith.mulf %c, %x : f64
    %v = rt.math fma(%p, %x, %c) : (f64, f64, f64) -> f64
    %r = rt.math sqrt(%v) : (f64) -> f64
    rt.store %r, %s[%t] : f64
  }
  func.return
}

// Of two iterations before, of another loop's memory, where another store may hit, behind a check, of no root.
// CHECK-LABEL: @others
// CHECK-NOT: iter_args
func.func @others(%n : i64, %c : f64, %k : i64, %ok : i1) {
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %s = rt.alloc variable %n : !rt.buf<f64>
  scf.for %t = %i2 to %n step %i1 : i64 {
    %j = arith.subi %t, %i2 : i64
    %x = rt.load %s[%j] : f64
    %q = rt.math square(%x) : (f64) -> f64
    %r = rt.math sqrt(%q) : (f64) -> f64
    rt.store %r, %s[%t] : f64
  }
  scf.for %t = %i1 to %n step %i1 : i64 {
    %j = arith.subi %t, %i1 : i64
    %x = rt.load %s[%j] : f64
    %q = rt.math square(%x) : (f64) -> f64
    %r = rt.math sqrt(%q) : (f64) -> f64
    rt.store %r, %s[%t] : f64
    rt.store %c, %s[%k] : f64
  }
  scf.for %t = %i1 to %n step %i1 : i64 {
    rt.check %ok site 0 status 3
    %j = arith.subi %t, %i1 : i64
    %x = rt.load %s[%j] : f64
    %q = rt.math square(%x) : (f64) -> f64
    %r = rt.math sqrt(%q) : (f64) -> f64
    rt.store %r, %s[%t] : f64
  }
  scf.for %t = %i1 to %n step %i1 : i64 {
    %j = arith.subi %t, %i1 : i64
    %x = rt.load %s[%j] : f64
    %q = rt.math square(%x) : (f64) -> f64
    rt.store %q, %s[%t] : f64
  }
  func.return
}
