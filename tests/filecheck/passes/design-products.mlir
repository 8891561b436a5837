// A product of data and coefficients is a call; bind lists what is not 0. Coefficients are read where they are.
// RUN: stan-opt %s -p design-products | filecheck %s

// CHECK-LABEL: func.func @evaluate
// CHECK: %[[B:.*]] = rt.view %theta[%zero] : !rt.buf<f64>
// CHECK: rt.kernel design_product(%[[B]],
// Sums that begin with something else stay.
// CHECK: ad.accumulate %z
// CHECK-NOT: rt.kernel
// CHECK-LABEL: func.func @bind
// CHECK: rt.kernel sparse_range
// CHECK: rt.kernel sparse_columns
// CHECK: rt.kernel sparse_rows
// CHECK: rt.layout "sparse columns"
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %y = rt.alloc zero %n : !rt.buf<f64>
    %z = rt.alloc %n : !rt.buf<f64>
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %first = arith.muli %j, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %at = arith.addi %first, %i : i64
        %v = rt.load %x[%at] : f64
        %p = arith.mulf %v, %b : f64
        ad.accumulate %y[%i], %p
      }
    }
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %first = arith.muli %j, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %at = arith.addi %first, %i : i64
        %v = rt.load %x[%at] : f64
        %p = arith.mulf %v, %b : f64
        ad.accumulate %z[%i], %p
      }
    }
    func.return
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    rt.set_bound 4, %zero : i64
    func.return
  }
}
