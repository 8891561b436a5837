// RUN: stan-opt --split-input-file --verify-each -p unique-designs,dce %s | filecheck %s

// A product with a design, and a loop that reads it: both run over the rows of a group, in memory of the group.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %y = rt.bound 3 : !rt.buf<f64>
    %eta = rt.alloc zero %n : !rt.buf<f64>
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %column = arith.muli %j, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %place = arith.addi %column, %i : i64
        %value = rt.load %x[%place] : f64
        %product = arith.mulf %value, %b : f64
        ad.accumulate %eta[%i], %product
      }
    }
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %y[%i] : f64
      %e = rt.load %eta[%i] : f64
      %p = arith.mulf %a, %e : f64
      %term = rt.math exp(%p) : (f64) -> f64
      ad.target_add %term
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         [[M:%[0-9]+]] = rt.bound 14 : i64
// CHECK:         scf.for [[G:%[0-9]+]] =
// CHECK:           [[FIRST:%.*]] = rt.load [[STARTS:%.*]][[[G]]] : i64
// CHECK-NEXT:      [[LAST:%.*]] = rt.load [[STARTS]][{{.*}}] : i64
// CHECK-NEXT:      [[W:%.*]] = rt.load {{.*}}[[[G]]] : f64
// CHECK-NEXT:      [[SIZE:%.*]] = arith.subi [[LAST]], [[FIRST]]
// CHECK-NEXT:      %eta = rt.alloc zero [[SIZE]] : !rt.buf<f64>
// CHECK-NEXT:      scf.for %j = %zero to %k
// CHECK:             scf.for %{{i.*}} = [[FIRST]] to [[LAST]]
// CHECK:               arith.muli [[M]], %j
// CHECK:               [[AT:%.*]] = arith.subi %{{i.*}}, [[FIRST]]
// CHECK-NEXT:          ad.accumulate %eta[[[AT]]], %product
// CHECK:           scf.for %{{i.*}} = [[FIRST]] to [[LAST]]
// CHECK:             [[WP:%.*]] = arith.mulf [[W]], %term
// CHECK-NEXT:        ad.target_add [[WP]]
// CHECK:         } {rt.loop = #rt.loop<groups>}
// CHECK-LABEL: func.func @bind
// CHECK:         rt.kernel sparse_range
// CHECK-COUNT-2: rt.kernel group_reals
// CHECK:         rt.kernel weigh_rows
// CHECK-COUNT-2: rt.kernel take_reals
// CHECK:         rt.layout "unique rows"

// -----

// A row that reads what is computed of the row before it: nothing.
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %b = rt.load %theta[%zero] : f64
    %eta = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %value = rt.load %x[%i] : f64
      %product = arith.mulf %value, %b : f64
      rt.store %product, %eta[%i] initial : f64
    }
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %x[%i] : f64
      %before = arith.subi %i, %one : i64
      %e = rt.load %eta[%before] : f64
      %p = arith.mulf %a, %e : f64
      %term = rt.math exp(%p) : (f64) -> f64
      ad.target_add %term
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     rt.loop<groups>
// CHECK-NOT:     func.func @bind

// -----

// The number of a row is more than a place: nothing.
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %b = rt.load %theta[%zero] : f64
    %eta = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %value = rt.load %x[%i] : f64
      %product = arith.mulf %value, %b : f64
      rt.store %product, %eta[%i] initial : f64
    }
    scf.for %i = %zero to %n step %one : i64 {
      %number = arith.sitofp %i : i64 to f64
      %e = rt.load %eta[%i] : f64
      %p = arith.mulf %number, %e : f64
      %term = rt.math exp(%p) : (f64) -> f64
      ad.target_add %term
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     rt.loop<groups>
// CHECK-NOT:     func.func @bind

// -----

// Rows that add nothing are in no group: those of groups take the arm.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %y = rt.bound 3 : !rt.buf<f64>
    %eta = rt.alloc zero %n : !rt.buf<f64>
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %column = arith.muli %j, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %place = arith.addi %column, %i : i64
        %value = rt.load %x[%place] : f64
        %product = arith.mulf %value, %b : f64
        ad.accumulate %eta[%i], %product
      }
    }
    %flag = scf.for %i = %zero to %n step %one iter_args(%f = %zero) -> (i64) : i64 {
      %a = rt.load %y[%i] : f64
      %e = rt.load %eta[%i] : f64
      %seen = arith.cmpf ogt, %a, %none : f64
      %fine = scf.if %seen -> (i1) {
        %term = rt.math exp(%e) : (f64) -> f64
        ad.target_add %term
        %ordered = arith.cmpf ord, %e, %e : f64
        scf.yield %ordered : i1
      } else {
        scf.yield %true : i1
      }
      %not = arith.xori %fine, %true : i1
      %wide = arith.extui %not : i1 to i64
      %g = arith.ori %f, %wide : i64
      scf.yield %g : i64
    }
    %all = arith.cmpi eq, %flag, %zero : i64
    rt.check %all site -1 status 3
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.for
// CHECK:           ad.accumulate %eta
// CHECK:           scf.for
// CHECK-NOT:         scf.if
// CHECK:             rt.math exp
// CHECK:         } {rt.loop = #rt.loop<groups>}
// CHECK-LABEL: func.func @bind
// CHECK:         [[NONE:%[0-9]+]] = arith.constant -1 : i32
// CHECK-NEXT:    rt.fill [[TAKES:%[0-9]+]], [[NONE]]
// CHECK-NEXT:    scf.for [[ROW:%[0-9]+]] = %zero to %n
// CHECK:           scf.if %seen {
// CHECK-NEXT:        [[WORKS:%[0-9]+]] = arith.constant 0 : i32
// CHECK-NEXT:        rt.store [[WORKS]], [[TAKES]][[[ROW]]]
// CHECK:         rt.kernel weigh_rows({{%[0-9]+}}, {{%[0-9]+}}, [[TAKES]]
