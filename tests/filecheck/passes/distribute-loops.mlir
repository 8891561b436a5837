// RUN: stan-opt --split-input-file --verify-each -p distribute-loops,cse,dce %s | filecheck %s

// The logarithm leaves the chain of `v`; the load of data is in both loops; the flag goes with the rest.
// CHECK-LABEL: @evaluate
// CHECK:      [[TABLE:%.*]] = rt.alloc {{%.*}} : !rt.buf<f64>
// CHECK-NEXT: {{%.*}} = scf.for %t = %0 to %n step %1 iter_args(%v = %half) -> (f64) : i64 {
// CHECK-NEXT:   %a = rt.load %x[%t]
// CHECK-NEXT:   %w = rt.math fma(%half, %v, %a)
// CHECK-NEXT:   [[AT:%.*]] = arith.subi %t, %0
// CHECK-NEXT:   rt.store %w, [[TABLE]]{{\[}}[[AT]]]
// CHECK-NEXT:   scf.yield %w
// CHECK-NEXT: }
// CHECK-NEXT: [[FLAG:%.*]] = scf.for [[T:%.*]] = %0 to %n step %1 iter_args([[F:%.*]] = %0) -> (i64) : i64 {
// CHECK-NEXT:   [[AT:%.*]] = arith.subi [[T]], %0
// CHECK-NEXT:   [[W:%.*]] = rt.load [[TABLE]]{{\[}}[[AT]]]
// CHECK-NEXT:   [[A:%.*]] = rt.load %x{{\[}}[[T]]]
// CHECK-NEXT:   rt.math log([[W]])
// CHECK:        ad.target_add
// CHECK:        arith.ori [[F]]
// CHECK-NEXT:   scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: func.return %half, [[FLAG]]
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> (f64, i64) attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %half = arith.constant 0.5 : f64
    %last, %flag = scf.for %t = %0 to %n step %1 iter_args(%v = %half, %f = %0) -> (f64, i64) : i64 {
      %a = rt.load %x[%t] : f64
      %w = rt.math fma(%half, %v, %a) : (f64, f64, f64) -> f64
      %l = rt.math log(%w) : (f64) -> f64
      %s = arith.mulf %l, %a : f64
      ad.target_add %s
      %c = arith.cmpf ogt, %w, %half : f64
      %b = arith.extui %c : i1 to i64
      %g = arith.ori %f, %b : i64
      scf.yield %w, %g : f64, i64
    }
    func.return %half, %flag : f64, i64
  }
}

// -----

// What the chain itself needs stays, and so does what costs little, and what is in another loop.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.alloc
// CHECK:      func.return
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %half = arith.constant 0.5 : f64
    %a = scf.for %t = %0 to %n step %1 iter_args(%v = %half) -> (f64) : i64 {
      %w = rt.math log(%v) : (f64) -> f64
      ad.target_add %w
      scf.yield %w : f64
    }
    %b = scf.for %t = %0 to %n step %1 iter_args(%v = %a) -> (f64) : i64 {
      %w = arith.mulf %v, %half : f64
      %u = arith.addf %v, %half : f64
      ad.target_add %u
      scf.yield %w : f64
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %c = scf.for %t = %0 to %n step %1 iter_args(%v = %b) -> (f64) : i64 {
        %w = arith.mulf %v, %half : f64
        %u = rt.math log(%v) : (f64) -> f64
        ad.target_add %u
        scf.yield %w : f64
      }
    }
    func.return %half : f64
  }
}
