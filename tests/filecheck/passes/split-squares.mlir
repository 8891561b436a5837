// RUN: stan-opt --split-input-file --verify-each -p split-squares %s | filecheck %s

// Squares of one arm leave a loop, with what is checked of rows; the other arm has what it needs to itself.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %most = arith.constant 0x7ff0000000000000 : f64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %b = rt.load %theta[%zero] : f64
    %flag = scf.for %i = %zero to %n step %one iter_args(%f = %zero) -> (i64) : i64 {
      %v = rt.load %y[%i] : f64
      %w = rt.load %x[%i] : f64
      %m = arith.mulf %w, %b : f64
      %fine = arith.cmpf olt, %m, %most : f64
      %not = arith.xori %fine, %true : i1
      %wide = arith.extui %not : i1 to i64
      %g = arith.ori %f, %wide : i64
      %seen = arith.cmpf ogt, %v, %none : f64
      scf.if %seen {
        %r = arith.subf %v, %m : f64
        %q = rt.math square(%r) : (f64) -> f64
        ad.target_add %q
        ad.target_add %b
      } else {
        %p = rt.math log_Phi(%m) : (f64) -> f64
        ad.target_add %p
      }
      scf.yield %g : i64
    }
    %all = arith.cmpi eq, %flag, %zero : i64
    rt.check %all site -1 status 3
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         [[FLAG:%[0-9a-z_]+]] = scf.for
// CHECK:           arith.cmpf olt
// CHECK:           scf.if
// CHECK:             rt.math square
// CHECK-NEXT:        ad.target_add
// CHECK-NEXT:        ad.target_add %b
// CHECK-NOT:       log_Phi
// CHECK:         scf.for
// CHECK-NOT:       arith.cmpf olt
// CHECK:           scf.if
// CHECK-NEXT:      } else {
// CHECK-NEXT:        rt.load %x
// CHECK-NEXT:        arith.mulf
// CHECK-NEXT:        rt.math log_Phi
// CHECK-NEXT:        ad.target_add
// CHECK-NOT:       square
// CHECK:         arith.cmpi eq, [[FLAG]], %zero

// -----

// What may fail where all coefficients are finite is checked by the loop that is left.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %b = rt.load %theta[%zero] : f64
    %flag = scf.for %i = %zero to %n step %one iter_args(%f = %zero) -> (i64) : i64 {
      %v = rt.load %y[%i] : f64
      %w = rt.load %x[%i] : f64
      %m = arith.mulf %w, %b : f64
      %r = arith.subf %v, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
      %e = rt.math exp(%m) : (f64) -> f64
      ad.target_add %e
      %fine = arith.cmpf ogt, %e, %none : f64
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
// CHECK:         %flag = scf.for
// CHECK-NOT:       arith.cmpf
// CHECK:           rt.math square
// CHECK-NOT:       rt.math exp
// CHECK:         [[FLAG:%[0-9a-z_]+]] = scf.for
// CHECK-NOT:       square
// CHECK:           rt.math exp
// CHECK:           arith.cmpf ogt
// CHECK:         arith.cmpi eq, [[FLAG]], %zero

// -----

// There is nothing else; a coefficient of each row; what else there is has a coefficient of each row, and squares have
// none: in the last one they leave.
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %b = rt.load %theta[%zero] : f64
    scf.for %i = %zero to %n step %one : i64 {
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %b : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
      ad.target_add %b
    }
    scf.for %j = %zero to %n step %one : i64 {
      %v = rt.load %y[%j] : f64
      %u = rt.load %theta[%j] : f64
      %r = arith.subf %v, %u : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
      %e = rt.math exp(%v) : (f64) -> f64
      %s = arith.mulf %e, %b : f64
      %p = rt.math exp(%s) : (f64) -> f64
      ad.target_add %p
    }
    scf.for %k = %zero to %n step %one : i64 {
      %v = rt.load %y[%k] : f64
      %r = arith.subf %v, %b : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
      %u = rt.load %theta[%k] : f64
      %p = rt.math exp(%u) : (f64) -> f64
      ad.target_add %p
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.for %i
// CHECK:           rt.math square
// CHECK:         scf.for %j
// CHECK:           rt.math square
// CHECK:           rt.math exp
// CHECK:         scf.for
// CHECK:           rt.math square
// CHECK-NOT:       rt.math exp
// CHECK:         scf.for %k
// CHECK-NOT:       square
// CHECK:           rt.math exp

// -----

// A product with a design has filled means: squares have means of their own, since no row of theirs is needed elsewhere.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %y = rt.bound 3 : !rt.buf<f64>
    %mu = rt.alloc zero %n : !rt.buf<f64>
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %column = arith.muli %j, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %place = arith.addi %column, %i : i64
        %value = rt.load %x[%place] : f64
        %product = arith.mulf %value, %b : f64
        ad.accumulate %mu[%i], %product
      }
    }
    scf.for %i = %zero to %n step %one : i64 {
      %v = rt.load %y[%i] : f64
      %m = rt.load %mu[%i] : f64
      %seen = arith.cmpf ogt, %v, %none : f64
      scf.if %seen {
        %r = arith.subf %v, %m : f64
        %q = rt.math square(%r) : (f64) -> f64
        ad.target_add %q
      } else {
        %p = rt.math log_Phi(%m) : (f64) -> f64
        ad.target_add %p
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         [[OTHERS:%mu]] = rt.alloc zero
// CHECK:         ad.accumulate [[OTHERS]]
// CHECK:         [[OWN:%mu_[0-9]+]] = rt.alloc zero
// CHECK:         ad.accumulate [[OWN]]
// CHECK:         scf.for
// CHECK:           rt.load [[OWN]]
// CHECK:           rt.math square
// CHECK:         scf.for
// CHECK:           } else {
// CHECK-NEXT:        rt.load [[OTHERS]]
// CHECK-NEXT:        rt.math log_Phi

// -----

// All rows check what is filled: both loops read the same.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %true = arith.constant true
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %y = rt.bound 3 : !rt.buf<f64>
    %mu = rt.alloc zero %n : !rt.buf<f64>
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %column = arith.muli %j, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %place = arith.addi %column, %i : i64
        %value = rt.load %x[%place] : f64
        %product = arith.mulf %value, %b : f64
        ad.accumulate %mu[%i], %product
      }
    }
    %flag = scf.for %i = %zero to %n step %one iter_args(%f = %zero) -> (i64) : i64 {
      %v = rt.load %y[%i] : f64
      %m = rt.load %mu[%i] : f64
      %seen = arith.cmpf ogt, %v, %none : f64
      scf.if %seen {
        %r = arith.subf %v, %m : f64
        %q = rt.math square(%r) : (f64) -> f64
        ad.target_add %q
      } else {
        %p = rt.math log_Phi(%m) : (f64) -> f64
        ad.target_add %p
      }
      %e = rt.math exp(%m) : (f64) -> f64
      %fine = arith.cmpf ogt, %e, %none : f64
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
// CHECK:         rt.alloc
// CHECK-NOT:     rt.alloc
// CHECK:         rt.math square
// CHECK:         rt.math log_Phi
