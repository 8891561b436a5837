// RUN: stan-opt --split-input-file --verify-each -p split-terms,dce %s | filecheck %s

// What a count alone decides has a loop of its own, which counts its rows by a slot of its own.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<i32>
    %phi = rt.load %theta[%zero] : f64
    scf.for %i = %zero to %n step %one : i64 {
      %count = rt.load %y[%i] : i32
      %real = arith.sitofp %count : i32 to f64
      %shape = arith.addf %real, %phi : f64
      %costly = rt.math lgamma(%shape) : (f64) -> f64
      %value = rt.load %x[%i] : f64
      %other = rt.math exp(%value) : (f64) -> f64
      %term = arith.subf %costly, %other : f64
      ad.target_add %term
    }
    func.return %none : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         [[N:%[0-9]+]] = rt.bound 3 : i64
// CHECK:         scf.for %i = %zero to %n
// CHECK-NEXT:      %value = rt.load %x[%i] : f64
// CHECK-NEXT:      %other = rt.math exp(%value)
// CHECK-NEXT:      [[MINUS:%[0-9]+]] = arith.negf %other
// CHECK-NEXT:      ad.target_add [[MINUS]]
// CHECK-NEXT:    }
// CHECK:         scf.for {{.*}} to [[N]]
// CHECK-NEXT:      rt.load %y
// CHECK:           [[COSTLY:%.*]] = rt.math lgamma
// CHECK-NEXT:      ad.target_add [[COSTLY]]
// CHECK-LABEL: func.func @bind
// CHECK:         [[COUNT:%.*]] = rt.bound 0 : i64
// CHECK-NEXT:    rt.set_bound 3, [[COUNT]] : i64

// -----

// The costly part is needed by the rest of the row, too; nothing else is read of a row; an element at an index of the
// data, or what is computed of it, would be read in both loops for no more than an exponential: nothing.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<i32>
    %phi = rt.load %theta[%zero] : f64
    scf.for %i = %zero to %n step %one : i64 {
      %count = rt.load %y[%i] : i32
      %real = arith.sitofp %count : i32 to f64
      %shape = arith.addf %real, %phi : f64
      %costly = rt.math lgamma(%shape) : (f64) -> f64
      ad.target_add %costly
      %value = rt.load %x[%i] : f64
      %other = arith.mulf %value, %costly : f64
      ad.target_add %other
    }
    scf.for %i = %zero to %n step %one : i64 {
      %count = rt.load %y[%i] : i32
      %real = arith.sitofp %count : i32 to f64
      %shape = arith.addf %real, %phi : f64
      %costly = rt.math lgamma(%shape) : (f64) -> f64
      ad.target_add %costly
      ad.target_add %shape
    }
    scf.for %i = %zero to %n step %one : i64 {
      %who = rt.load %y[%i] : i32
      %index = arith.extsi %who : i32 to i64
      %own = rt.load %theta[%index] : f64
      %eta = arith.addf %own, %phi : f64
      %costly = rt.math exp(%eta) : (f64) -> f64
      ad.target_add %costly
      %value = rt.load %x[%i] : f64
      %other = arith.mulf %value, %eta : f64
      ad.target_add %other
    }
    func.return %none : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-COUNT-3: scf.for
// CHECK-NOT:     scf.for
