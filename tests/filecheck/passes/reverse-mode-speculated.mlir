// RUN: stan-opt -p "reverse-mode,verify-dominance" --split-input-file %s | filecheck %s

// What a loop alone uses has no slope if the loop does not run; what else is used has one. A table that a loop alone
// reads has none either.
// CHECK-LABEL: @evaluate
// CHECK:      [[ADJOINT:%.*]], %{{.*}} = scf.for
// CHECK:      [[IDLE:%.*]] = arith.cmpi sge, %zero, %count
// CHECK-NEXT: [[END:%.*]] = arith.select [[IDLE]], %{{.*}}, [[MANY:%.*]] : i64
// CHECK-NEXT: scf.for {{.*}} to [[END]]
// CHECK:      arith.divf %{{.*}}, %b
// CHECK-NEXT: [[SLOPE:%.*]] = arith.divf [[ADJOINT]], %a
// CHECK-NEXT: arith.select [[IDLE]], %{{.*}}, [[SLOPE]]
builtin.module attributes {rt.slots = #rt.slots<0>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %count: i64, %length: i64, %data: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %many = arith.constant 5 : i64
    %none = arith.constant 0.0 : f64
    %x = rt.alloc %many : !rt.buf<f64>
    ad.independent %x, %many
    rt.copy %theta to %x, %many initial : !rt.buf<f64>
    %a = rt.load %x[%zero] : f64
    %b = rt.load %x[%one] : f64
    %l = rt.math log(%a) : (f64) -> f64
    %k = rt.math log(%b) : (f64) -> f64
    %t = rt.alloc %length : !rt.buf<f64>
    scf.for %i = %zero to %length step %one : i64 {
      %c = rt.load %x[%i] : f64
      %s = rt.math sqrt(%c) : (f64) -> f64
      rt.store %s, %t[%i] initial : f64
    }
    ad.target_add %k
    scf.for %i = %zero to %count step %one : i64 {
      %y = rt.load %data[%i] : f64
      %p = arith.mulf %l, %y : f64
      %q = arith.mulf %k, %p : f64
      %r = rt.load %t[%i] : f64
      %z = arith.mulf %q, %r : f64
      ad.target_add %z
    }
    func.return %none : f64
  }
  ad.gradient @evaluate
}

// -----

// So what a branch alone uses that computes from reduced rows, where its loop has an iteration.
// CHECK-LABEL: @evaluate
// CHECK:      [[SLOPE:%.*]] = arith.divf %{{.*}}, %a
// CHECK-NEXT: [[IDLE:%.*]] = arith.cmpi sge, %zero, %count
// CHECK-NEXT: arith.select [[IDLE]], %{{.*}}, [[SLOPE]]
builtin.module attributes {rt.slots = #rt.slots<0>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %count: i64, %reduced: i1, %data: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %x = rt.alloc %one : !rt.buf<f64>
    ad.independent %x, %one
    rt.copy %theta to %x, %one initial : !rt.buf<f64>
    %a = rt.load %x[%zero] : f64
    %l = rt.math log(%a) : (f64) -> f64
    scf.if %reduced {
      %y = rt.load %data[%zero] : f64
      %p = arith.mulf %l, %y : f64
      ad.target_add %p
    } else {
      scf.for %i = %zero to %count step %one : i64 {
        %y = rt.load %data[%i] : f64
        %p = arith.mulf %l, %y : f64
        ad.target_add %p
      }
    } {rt.reduced = #rt.reduced}
    func.return %none : f64
  }
  ad.gradient @evaluate
}

// -----

// In an iteration what an inner loop alone uses, and memory of the iteration's own that it alone reads.
// CHECK-LABEL: @evaluate
// CHECK:      [[LOG:%.*]] = arith.divf {{.*}}, %a : f64
// CHECK-NEXT: [[IDLE:%.*]] = arith.cmpi sge, %zero, %length
// CHECK-NEXT: arith.select [[IDLE]], %{{.*}}, [[LOG]]
// CHECK:      [[ROOT:%.*]] = arith.divf {{.*}}, %s
// CHECK-NEXT: arith.select [[IDLE]], %{{.*}}, [[ROOT]]
builtin.module attributes {rt.slots = #rt.slots<0>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %count: i64, %lengths: !rt.buf<i64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %x = rt.alloc %count : !rt.buf<f64>
    ad.independent %x, %count
    rt.copy %theta to %x, %count initial : !rt.buf<f64>
    scf.for %i = %zero to %count step %one : i64 {
      %own = rt.alloc %one : !rt.buf<f64>
      %a = rt.load %x[%i] : f64
      %s = rt.math sqrt(%a) : (f64) -> f64
      rt.store %s, %own[%zero] initial : f64
      %l = rt.math log(%a) : (f64) -> f64
      %length = rt.load %lengths[%i] : i64
      scf.for %j = %zero to %length step %one : i64 {
        %r = rt.load %own[%zero] : f64
        %p = arith.mulf %l, %r : f64
        ad.target_add %p
      }
    }
    func.return %none : f64
  }
  ad.gradient @evaluate
}

// -----

// A nest whose inner loop may be idle, too, in a branch; what its outer loop computes is for the inner one alone.
// CHECK-LABEL: @evaluate
// CHECK:      [[LOG:%.*]] = arith.divf {{.*}}, %a : f64
// CHECK-NEXT: [[OUTER:%.*]] = arith.cmpi sge, %zero, %rows
// CHECK-NEXT: [[NOT:%.*]] = arith.xori %some
// CHECK-NEXT: [[INNER:%.*]] = arith.cmpi sge, %zero, %count
// CHECK-NEXT: [[EITHER:%.*]] = arith.ori [[OUTER]], [[NOT]]
// CHECK-NEXT: [[IDLE:%.*]] = arith.ori [[EITHER]], [[INNER]]
// CHECK-NEXT: arith.select [[IDLE]], %{{.*}}, [[LOG]]
builtin.module attributes {rt.slots = #rt.slots<0>} {
  func.func @evaluate(%theta: !rt.buf<f64>, %rows: i64, %count: i64, %some: i1) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %x = rt.alloc %count : !rt.buf<f64>
    ad.independent %x, %count
    rt.copy %theta to %x, %count initial : !rt.buf<f64>
    %a = rt.load %x[%zero] : f64
    %l = rt.math log(%a) : (f64) -> f64
    scf.if %some {
      scf.for %i = %zero to %rows step %one : i64 {
        %y = rt.load %x[%i] : f64
        %s = arith.mulf %y, %l : f64
        scf.for %j = %zero to %count step %one : i64 {
          %z = rt.load %x[%j] : f64
          %p = arith.mulf %z, %s : f64
          ad.target_add %p
        }
      }
    } else {
    }
    func.return %none : f64
  }
  ad.gradient @evaluate
}
