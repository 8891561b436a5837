// RUN: stan-opt -p dead-stores,verify-dominance --split-input-file %s | filecheck %s

// A loop stores all elements; and each of them anew, before anybody has read it.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.fill
// CHECK:      scf.for
// CHECK-NEXT:   [[X:%.*]] = rt.load
// CHECK-NEXT:   rt.store [[X]]
// CHECK-NEXT: }
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %nan = arith.constant 0x7FF8000000000000 : f64
  %zero = arith.constant 0.0 : f64
  %mu = rt.alloc variable %rows : !rt.buf<f64>
  rt.fill %mu, %nan, %rows initial : f64
  scf.for %n = %i0 to %rows step %i1 : i64 {
    rt.store %zero, %mu[%n] : f64
    %x = rt.load %theta[%n] : f64
    rt.store %x, %mu[%n] : f64
  }
  %t = rt.load %mu[%i0] : f64
  func.return %t : f64
}

// -----

// Elements that nobody stores are what the memory was filled with: of another range, of another element, in a branch;
// an element that is read in between was stored for that.
// CHECK-LABEL: @evaluate
// CHECK: rt.fill
// CHECK: rt.fill
// CHECK: rt.fill
// CHECK: rt.store
// CHECK-NEXT: rt.load
// CHECK: rt.store
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %few = rt.bound 1 : i64
  %some = rt.bound 2 : i1
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %nan = arith.constant 0x7FF8000000000000 : f64
  %a = rt.alloc variable %rows : !rt.buf<f64>
  rt.fill %a, %nan, %rows initial : f64
  %b = rt.alloc variable %rows : !rt.buf<f64>
  rt.fill %b, %nan, %rows initial : f64
  %c = rt.alloc variable %rows : !rt.buf<f64>
  rt.fill %c, %nan, %rows initial : f64
  scf.for %n = %i0 to %few step %i1 : i64 {
    %x = rt.load %theta[%n] : f64
    rt.store %x, %a[%n] : f64
    %y = rt.load %a[%n] : f64
    %z = arith.addf %x, %y : f64
    rt.store %z, %a[%n] : f64
  }
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %x = rt.load %theta[%n] : f64
    %m = arith.subi %n, %i1 : i64
    rt.store %x, %b[%m] : f64
    scf.if %some {
      rt.store %x, %c[%n] : f64
    }
  }
  %t = rt.load %a[%i0] : f64
  %u = rt.load %b[%i0] : f64
  %v = rt.load %c[%i0] : f64
  %w = arith.addf %t, %u : f64
  %s = arith.addf %w, %v : f64
  func.return %s : f64
}
