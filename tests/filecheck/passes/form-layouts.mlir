// RUN: stan-opt -p form-layouts,verify-dominance --split-input-file %s | filecheck %s

// A branch has the reduced rows, of as many as there are columns, or the loop. What is linear in their numbers a kernel
// computes for all of them. What all rows share is computed once.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK:      rt.math log
// CHECK:      rt.kernel form_values
// CHECK:      scf.for
// CHECK:      rt.kernel mdivide_left_tri_low
// CHECK:      ad.target_add
// CHECK:      arith.select
// CHECK:      ad.target_add
// CHECK:      } else {
// CHECK:      scf.for {{%.*}} = {{%.*}} to %n step
// CHECK:      func.func @bind
// CHECK:      rt.kernel forms_begin
// CHECK:      rt.kernel forms_row
// CHECK:      rt.kernel forms_turn
// CHECK:      rt.layout "reduced rows" slot 3 outcome {{.*}} figures ["rows", "columns", "bytes"]
// CHECK:      rt.kernel forms_table
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>, %L : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %s = rt.load %theta[%i0] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.alloc %k : !rt.buf<f64>
      scf.for %j = %i0 to %k step %i1 : i64 {
        %m = rt.load %theta[%j] : f64
        %start = arith.muli %i, %k : i64
        %at = arith.addi %start, %j : i64
        %v = rt.load %y[%at] : f64
        %r = arith.subf %v, %m : f64
        rt.store %r, %b[%j] : f64
      }
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%L, %b, %k, %i1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
      %q = scf.for %j = %i0 to %k step %i1 iter_args(%sum = %zero) -> (f64) : i64 {
        %e = rt.load %z[%j] : f64
        %e2 = arith.mulf %e, %e : f64
        %next = arith.addf %sum, %e2 : f64
        scf.yield %next : f64
      }
      ad.target_add %q
      %log = rt.math log(%s) : (f64) -> f64
      ad.target_add %log
    }
    func.return %zero : f64
  }
}

// -----

// Neither a linear nor a quadratic form of the data of a row.
// CHECK-LABEL: @evaluate
// CHECK-NOT:   scf.if
// CHECK-NOT:   rt.layout
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %s = rt.load %theta[%i0] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %u = rt.load %x[%i] : f64
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %s : f64
      %e = rt.math exp(%u) : (f64) -> f64
      %q = arith.mulf %r, %r : f64
      %w = arith.mulf %q, %r : f64
      %p = arith.mulf %w, %e : f64
      ad.target_add %p
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Rows of a product that is made ahead: the loop over reduced rows computes what it reads of it, and the product is made
// where the loop is as it was.
// CHECK-LABEL: @evaluate
// CHECK-NOT:   rt.kernel multiply
// CHECK:       rt.kernel mdivide_left_tri_low
// CHECK:       } else {
// CHECK:       rt.kernel multiply
// CHECK:       rt.kernel mdivide_left_tri_low
// CHECK:       func.func @bind
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%input : !rt.buf<f64>, %L : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %x = rt.bound 3 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %theta = rt.alloc %k : !rt.buf<f64>
    ad.independent %theta, %k
    rt.copy %input to %theta, %k initial : !rt.buf<f64>
    %size = arith.muli %n, %k : i64
    %mu = rt.alloc %size : !rt.buf<f64>
    rt.kernel multiply(%x, %theta, %n, %i1, %k, %mu) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, i64, !rt.buf<f64>) -> ()
    scf.for %i = %i0 to %n step %i1 : i64 {
      %b = rt.alloc %k : !rt.buf<f64>
      scf.for %j = %i0 to %k step %i1 : i64 {
        %start = arith.muli %j, %n : i64
        %at = arith.addi %start, %i : i64
        %m = rt.load %mu[%at] : f64
        %v = rt.load %y[%at] : f64
        %r = arith.subf %v, %m : f64
        rt.store %r, %b[%j] : f64
      }
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%L, %b, %k, %i1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
      %q = scf.for %j = %i0 to %k step %i1 iter_args(%sum = %zero) -> (f64) : i64 {
        %e = rt.load %z[%j] : f64
        %e2 = arith.mulf %e, %e : f64
        %next = arith.addf %sum, %e2 : f64
        scf.yield %next : f64
      }
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// Rows add up a product in memory of theirs: reduced rows have y less all of it in one sum.
// CHECK-LABEL: @evaluate
// CHECK:       rt.kernel form_values
// CHECK-NOT:   ad.accumulate
// CHECK:       } else {
// CHECK:       ad.accumulate
// CHECK:       func.func @bind
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%B : !rt.buf<f64>, %L : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %x = rt.bound 3 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %i4 = arith.constant 4 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %m = rt.alloc zero %k : !rt.buf<f64>
      scf.for %p = %i0 to %i4 step %i1 : i64 {
        %of_column = arith.muli %p, %n : i64
        %place = arith.addi %of_column, %i : i64
        %u = rt.load %x[%place] : f64
        %first = arith.muli %p, %k : i64
        scf.for %j = %i0 to %k step %i1 : i64 {
          %at = arith.addi %first, %j : i64
          %c = rt.load %B[%at] : f64
          %d = arith.mulf %c, %u : f64
          ad.accumulate %m[%j], %d
        }
      }
      %b = rt.alloc %k : !rt.buf<f64>
      scf.for %j = %i0 to %k step %i1 : i64 {
        %start = arith.muli %i, %k : i64
        %at = arith.addi %start, %j : i64
        %v = rt.load %y[%at] : f64
        %e = rt.load %m[%j] : f64
        %r = arith.subf %v, %e : f64
        rt.store %r, %b[%j] : f64
      }
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%L, %b, %k, %i1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
      %q = scf.for %j = %i0 to %k step %i1 iter_args(%sum = %zero) -> (f64) : i64 {
        %e = rt.load %z[%j] : f64
        %e2 = arith.mulf %e, %e : f64
        %next = arith.addf %sum, %e2 : f64
        scf.yield %next : f64
      }
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// A parameter multiplies a sum, which is computed before: no product of it with another one is a coefficient.
// CHECK-LABEL: @evaluate
// CHECK:       } else {
// CHECK:       rt.kernel form_values
// CHECK-NOT:   arith.mulf %a, %s
// CHECK:       scf.for
// CHECK:       arith.mulf %s, {{%.*}} : f64
// CHECK:       func.func @bind
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %a = rt.load %theta[%i0] : f64
    %s = rt.load %theta[%i1] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %a : f64
      %e = arith.mulf %s, %r : f64
      %w = arith.subf %e, %s : f64
      %q = arith.mulf %w, %w : f64
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// A check of what all rows share, that the scales of their numbers are positive, is asked of each in front.
// CHECK-LABEL: @evaluate
// CHECK:       [[ABOVE:%[0-9a-z_]+]] = arith.cmpf ogt
// CHECK-NEXT:  arith.constant 0
// CHECK-NEXT:  arith.constant 1
// CHECK-NEXT:  arith.select [[ABOVE]]
// CHECK:       arith.cmpf oeq
// CHECK:       } else {
// CHECK:       rt.kernel form_values
// CHECK:       } else {
// CHECK:       arith.cmpf ogt
// CHECK:       rt.check
// CHECK:       func.func @bind
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %yes = arith.constant true
    %zero = arith.constant 0.0 : f64
    %failed = scf.for %i = %i0 to %n step %i1 iter_args(%f = %i0) -> (i64) : i64 {
      %start = arith.muli %i, %k : i64
      %inner = scf.for %j = %i0 to %k step %i1 iter_args(%g = %i0) -> (i64) : i64 {
        %at = arith.addi %start, %j : i64
        %v = rt.load %y[%at] : f64
        %s = rt.load %theta[%j] : f64
        %r = arith.subf %v, %s : f64
        %e = arith.mulf %r, %s : f64
        %q = arith.mulf %e, %e : f64
        %above = arith.cmpf ogt, %s, %zero : f64
        %not = arith.xori %above, %yes : i1
        %wide = arith.extui %not : i1 to i64
        %both = arith.ori %g, %wide : i64
        ad.target_add %q
        scf.yield %both : i64
      }
      %any = arith.ori %f, %inner : i64
      scf.yield %any : i64
    }
    %ok = arith.cmpi eq, %failed, %i0 : i64
    rt.check %ok site 0 status 3
    func.return %zero : f64
  }
}

// -----

// A nest over components, with a loop over the rows inside: a table has what a component computes for its rows, and
// what else the nest does is done beside the reduced rows.
// CHECK-LABEL: @evaluate
// CHECK:       scf.for
// CHECK:       rt.math inv
// CHECK:       rt.store
// CHECK:       scf.if
// CHECK:       } else {
// CHECK:       rt.kernel form_values
// CHECK:       scf.for
// CHECK:       scf.for {{%.*}} = %i0 to %k
// CHECK:       scf.for {{%.*}} = %i0 to %k
// CHECK-NEXT:  rt.load
// CHECK-NEXT:  rt.math log
// CHECK-NEXT:  ad.target_add
// CHECK:       } else {
// CHECK-NEXT:  scf.for {{%.*}} = %i0 to %k
// CHECK:       scf.for {{%.*}} = %i0 to %n
// CHECK:       func.func @bind
// CHECK:       rt.kernel forms_row
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %j = %i0 to %k step %i1 : i64 {
      %s = rt.load %theta[%j] : f64
      %inv = rt.math inv(%s) : (f64) -> f64
      %log = rt.math log(%s) : (f64) -> f64
      ad.target_add %log
      %start = arith.muli %j, %n : i64
      scf.for %i = %i0 to %n step %i1 : i64 {
        %at = arith.addi %start, %i : i64
        %v = rt.load %y[%at] : f64
        %r = arith.subf %v, %s : f64
        %e = arith.mulf %r, %inv : f64
        %q = arith.mulf %e, %e : f64
        ad.target_add %q
      }
    }
    func.return %zero : f64
  }
}

// -----

// A loop over all elements of a product: rows of it are reduced, and it is made where the loop is as it was.
// CHECK-LABEL: @evaluate
// CHECK-NOT:   rt.kernel multiply
// CHECK:       rt.kernel form_values
// CHECK:       } else {
// CHECK:       rt.kernel multiply
// CHECK:       scf.for {{%.*}} = %i0 to %size
// CHECK:       func.func @bind
// CHECK:       rt.kernel forms_row
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%input : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %size = rt.bound 2 : i64
    %y = rt.bound 3 : !rt.buf<f64>
    %x = rt.bound 4 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %theta = rt.alloc %k : !rt.buf<f64>
    ad.independent %theta, %k
    rt.copy %input to %theta, %k initial : !rt.buf<f64>
    %mu = rt.alloc %size : !rt.buf<f64>
    rt.kernel multiply(%x, %theta, %n, %i1, %k, %mu) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, i64, !rt.buf<f64>) -> ()
    scf.for %r = %i0 to %size step %i1 : i64 {
      %v = rt.load %y[%r] : f64
      %m = rt.load %mu[%r] : f64
      %d = arith.subf %v, %m : f64
      %w = arith.addf %d, %m : f64
      %q = arith.mulf %d, %d : f64
      %p = arith.mulf %w, %d : f64
      ad.target_add %q
      ad.target_add %p
    }
    func.return %zero : f64
  }
}
