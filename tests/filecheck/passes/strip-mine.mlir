// Rows of a nest run side by side: the outer loop goes in strips, inside of the inner loops.
// RUN: stan-opt %s -p strip-mine,verify-dominance --split-input-file | filecheck %s

// What a row carries through the columns is an array of the strip; the outer sum goes through all parts. Where there are
// few rows, or columns that reach into each other, the loop is as it was.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[ARRAY:.*]] = rt.alloc stack %{{.*}} : !rt.buf<f64>
// CHECK: scf.if
// CHECK: %[[ROWS:.*]] = arith.minsi
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %[[ROWS]]
// CHECK-NEXT: %{{.*}} = arith.addi
// CHECK-NEXT: rt.store %{{.*}}, %[[ARRAY]][%[[ROW]]]
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %m step
// CHECK: scf.for %[[ROW2:.*]] = %{{.*}} to %[[ROWS]]
// CHECK: rt.math exp
// CHECK: rt.load %[[ARRAY]][%[[ROW2]]]
// CHECK: rt.store %{{.*}}, %[[ARRAY]][%[[ROW2]]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ROWS]] step %{{.*}} iter_args
// CHECK: rt.math log
// CHECK: } else {
// CHECK: scf.for
// CHECK: scf.for
func.func @evaluate(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %total = scf.for %i = %zero to %n step %one iter_args(%sum = %none) -> (f64) : i64 {
    %s = scf.for %j = %zero to %m step %one iter_args(%part = %none) -> (f64) : i64 {
      %column = arith.muli %j, %n : i64
      %k = arith.addi %column, %i : i64
      %v = rt.load %x[%k] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      %next = arith.addf %part, %e : f64
      scf.yield %next : f64
    }
    %l = rt.math log(%s) : (f64) -> f64
    rt.store %l, %y[%i] : f64
    %more = arith.addf %sum, %l fastmath<reassoc> : f64
    scf.yield %more : f64
  }
  func.return %total : f64
}

// -----

// Data whose rows are apart in memory get a table in which they are neighbours, made when data are bound.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[TABLE:.*]] = rt.bound 5 : !rt.buf<i32>
// CHECK: scf.if
// CHECK: rt.load %[[TABLE]]
// CHECK: rt.math exp
// CHECK: } else {
// CHECK-LABEL: func.func @bind
// CHECK: %[[FILLED:.*]] = rt.alloc_bound
// CHECK-NEXT: rt.set_bound 5, %[[FILLED]]
// CHECK: rt.store %{{.*}}, %[[FILLED]]
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%x: !rt.buf<f64>, %adj: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %m = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<i32>
    scf.for %i = %zero to %n step %one : i64 {
      scf.for %j = %zero to %m step %one : i64 {
        %row = arith.muli %i, %m : i64
        %at = arith.addi %row, %j : i64
        %count = rt.load %y[%at] : i32
        %c = arith.sitofp %count : i32 to f64
        %v = rt.load %x[%i] : f64
        %w = arith.mulf %c, %v : f64
        %e = rt.math exp(%w) : (f64) -> f64
        ad.accumulate %adj[%i], %e
      }
    }
    func.return
  }
}

// -----

// An iteration needs what the last one computed.
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: stack
// CHECK: func.return
func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %start = arith.constant 1.0 : f64
  %last = scf.for %i = %zero to %n step %one iter_args(%state = %start) -> (f64) : i64 {
    %s = scf.for %j = %zero to %m step %one iter_args(%part = %state) -> (f64) : i64 {
      %v = rt.load %x[%j] : f64
      %w = arith.mulf %v, %part : f64
      %e = rt.math exp(%w) : (f64) -> f64
      scf.yield %e : f64
    }
    scf.yield %s : f64
  }
  func.return %last : f64
}

// -----

// A row reads what the one before it has written.
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: stack
// CHECK: func.return
func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %one to %n step %one : i64 {
    %before = arith.subi %i, %one : i64
    scf.for %j = %zero to %m step %one : i64 {
      %column = arith.muli %j, %n : i64
      %from = arith.addi %column, %before : i64
      %to = arith.addi %column, %i : i64
      %v = rt.load %x[%from] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      rt.store %e, %x[%to] : f64
    }
  }
  func.return
}

// -----

// Sizes of inner loops differ from row to row.
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: stack
// CHECK: func.return
func.func @evaluate(%x: !rt.buf<f64>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    scf.for %j = %zero to %i step %one : i64 {
      %v = rt.load %x[%j] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      ad.accumulate %adj[%i], %e
    }
  }
  func.return
}

// -----

// Nothing costly: inner loops may be long, and are widened as they are.
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: stack
// CHECK: func.return
func.func @evaluate(%x: !rt.buf<f64>, %adj: !rt.buf<f64>, %n: i64, %m: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    scf.for %j = %zero to %m step %one : i64 {
      %v = rt.load %x[%j] : f64
      ad.accumulate %adj[%i], %v
    }
  }
  func.return
}

// -----

// A nest that runs where a layout is not taken: its data are transposed in front, if it runs.
// CHECK-LABEL: func.func @evaluate
// CHECK: %[[TABLE:.*]] = rt.bound 8 : !rt.buf<i32>
// CHECK: scf.if %taken
// CHECK: } else {
// CHECK: rt.load %[[TABLE]]
// CHECK: rt.math exp
// CHECK-LABEL: func.func @bind
// CHECK: %[[NOT:.*]] = arith.xori %{{.*}}, %{{.*}} : i1
// CHECK-NEXT: %[[APPLIES:.*]] = arith.andi %{{.*}}, %[[NOT]] : i1
// CHECK: scf.if %[[APPLIES]]
builtin.module attributes {rt.slots = #rt.slots<6>} {
  func.func @evaluate(%x: !rt.buf<f64>, %adj: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %taken = rt.bound 5 {rt.coalesced = #rt.coalesced<5>} : i1
    %n = rt.bound 0 : i64
    %m = rt.bound 1 : i64
    %data = rt.bound 2 : !rt.buf<i32>
    scf.if %taken {
    } else {
      scf.for %i = %zero to %n step %one : i64 {
        %begin = arith.muli %i, %m : i64
        %row = rt.view %data[%begin] : !rt.buf<i32>
        %a = rt.load %x[%i] : f64
        scf.for %j = %zero to %m step %one : i64 {
          %y = rt.load %row[%j] : i32
          %r = arith.sitofp %y : i32 to f64
          %p = arith.mulf %r, %a : f64
          %e = rt.math exp(%p) : (f64) -> f64
          ad.accumulate %adj[%i], %e
        }
      }
    }
    func.return
  }
}
