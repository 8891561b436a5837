// RUN: stan-opt --split-input-file --verify-each -p invariant-loops %s | filecheck %s

// A sum that each iteration repeats is computed once, if there is an iteration.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %total = scf.for %t = %0 to %n step %1 iter_args(%so_far = %zero) -> (f64) : i64 {
      %sum = scf.for %i = %0 to %m step %1 iter_args(%part = %zero) -> (f64) : i64 {
        %e = rt.load %x[%i] : f64
        %p = arith.addf %part, %e : f64
        scf.yield %p : f64
      }
      %next = arith.addf %so_far, %sum : f64
      scf.yield %next : f64
    }
    func.return %total : f64
  }
}
// CHECK:         [[RUNS:%.*]] = arith.cmpi slt, %0, %n : i64
// CHECK-NEXT:    [[END:%.*]] = arith.select [[RUNS]], %m, %0 : i64
// CHECK-NEXT:    %sum = scf.for %i = %0 to [[END]] step %1
// CHECK:         scf.for %t = %0 to %n
// CHECK-NEXT:      %next = arith.addf

// -----

// The loop around it writes what it reads.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %x = rt.alloc zero %m : !rt.buf<f64>
    %total = scf.for %t = %0 to %n step %1 iter_args(%so_far = %zero) -> (f64) : i64 {
      %sum = scf.for %i = %0 to %m step %1 iter_args(%part = %zero) -> (f64) : i64 {
        %e = rt.load %x[%i] : f64
        %p = arith.addf %part, %e : f64
        scf.yield %p : f64
      }
      rt.store %sum, %x[%t] : f64
      %next = arith.addf %so_far, %sum : f64
      scf.yield %next : f64
    }
    func.return %total : f64
  }
}
// CHECK:         scf.for %t = %0 to %n
// CHECK-NEXT:      %sum = scf.for %i

// -----

// The first iteration may not reach it.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64, %y: !rt.buf<i64>) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %total = scf.for %t = %0 to %n step %1 iter_args(%so_far = %zero) -> (f64) : i64 {
      %size = rt.load %y[%t] : i64
      %fits = arith.cmpi sle, %m, %size : i64
      rt.check %fits site 0 status 1
      %sum = scf.for %i = %0 to %m step %1 iter_args(%part = %zero) -> (f64) : i64 {
        %e = rt.load %x[%i] : f64
        %p = arith.addf %part, %e : f64
        scf.yield %p : f64
      }
      %next = arith.addf %so_far, %sum : f64
      scf.yield %next : f64
    }
    func.return %total : f64
  }
}
// CHECK:         scf.for %t = %0 to %n
// CHECK:           rt.check
// CHECK-NEXT:      %sum = scf.for %i

// -----

// Of a branch on data: the sum of data, and the end of a loop, but not a sum of what is not known when data are bound.
builtin.module {
  func.func @evaluate(%y: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %on = rt.bound 0 : i1
    %m = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %total = scf.if %on -> (f64) {
      scf.yield %zero : f64
    } else {
      %sum = scf.for %i = %0 to %m step %1 iter_args(%part = %zero) -> (f64) : i64 {
        %e = rt.load %x[%i] : f64
        %p = arith.addf %part, %e : f64
        scf.yield %p : f64
      }
      %other = scf.for %j = %0 to %m step %1 iter_args(%q = %zero) -> (f64) : i64 {
        %f = rt.load %y[%j] : f64
        %r = arith.addf %q, %f : f64
        scf.yield %r : f64
      }
      %both = arith.addf %sum, %other : f64
      %end = arith.addi %m, %1 : i64
      %all = scf.for %k = %0 to %end step %1 iter_args(%so_far = %both) -> (f64) : i64 {
        %next = arith.mulf %so_far, %sum : f64
        scf.yield %next : f64
      }
      scf.yield %all : f64
    }
    func.return %total : f64
  }
}
// CHECK:         [[OFF:%.*]] = arith.constant false
// CHECK-NEXT:    [[ELSE:%.*]] = arith.cmpi eq, %on, [[OFF]] : i1
// CHECK-NEXT:    [[END:%.*]] = arith.select [[ELSE]], %m, %0 : i64
// CHECK-NEXT:    %sum = scf.for %i = %0 to [[END]] step %1
// CHECK:         %end = arith.addi %m, %1 : i64
// CHECK-NEXT:    %total = scf.if %on
// CHECK:         } else {
// CHECK-NEXT:      %other = scf.for %j = %0 to %m
// CHECK:           scf.for %k = %0 to %end

// -----

// A constant that stands in the loop goes with what uses it.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %total = scf.for %t = %0 to %n step %1 iter_args(%so_far = %zero) -> (f64) : i64 {
      %two = arith.constant 2.0 : f64
      %sum = scf.for %i = %0 to %m step %1 iter_args(%part = %zero) -> (f64) : i64 {
        %e = rt.load %x[%i] : f64
        %twice = arith.mulf %e, %two : f64
        %p = arith.addf %part, %twice : f64
        scf.yield %p : f64
      }
      %next = arith.addf %so_far, %sum : f64
      scf.yield %next : f64
    }
    func.return %total : f64
  }
}
// CHECK:         %two = arith.constant
// CHECK:         %sum = scf.for
// CHECK:         scf.for %t = %0 to %n
// CHECK-NEXT:      %next = arith.addf
