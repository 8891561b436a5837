// Scattered additions leave a loop that evaluates functions: the loop stores what is to be added, block by block, and a
// second loop adds it.
// RUN: stan-opt %s -p split-scatters | filecheck %s

// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: %[[PART:.*]] = rt.alloc stack %{{.*}} : !rt.buf<f64>
  // CHECK: scf.for
  // CHECK: %[[END:.*]] = arith.minsi
  // CHECK: scf.for %[[I:.*]] = %[[FIRST:.*]] to %[[END]]
  // CHECK: %[[V:.*]] = rt.math exp(%{{.*}})
  // CHECK: %[[AT:.*]] = arith.subi %[[I]], %[[FIRST]]
  // CHECK: rt.store %[[V]], %[[PART]][%[[AT]]] initial
  // CHECK-NOT: ad.accumulate
  // CHECK: scf.for
  // CHECK: rt.load %[[PART]][%{{.*}}]
  // CHECK: ad.accumulate
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %x[%i] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    %k = rt.load %idx[%i] : i32
    %k64 = arith.extsi %k : i32 to i64
    ad.accumulate %adj[%k64], %e
  }
  func.return
}

// The adjoint is read in the same loop: it stays as it is.
// CHECK-LABEL: func.func @reads_what_it_adds_to
// CHECK-NOT: stack
// CHECK: ad.accumulate
func.func @reads_what_it_adds_to(%idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %adj[%i] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    %k = rt.load %idx[%i] : i32
    %k64 = arith.extsi %k : i32 to i64
    ad.accumulate %adj[%k64], %e
  }
  func.return
}

// Nothing costly is evaluated, and an addition at the loop's own position is not scattered.
// CHECK-LABEL: func.func @nothing_to_gain
// CHECK-NOT: stack
// CHECK: func.return
func.func @nothing_to_gain(%x: !rt.buf<f64>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %x[%i] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    ad.accumulate %adj[%i], %e
  }
  func.return
}

// Rows in the order of an index: one addition for each run of rows, if `bind` has put them so, else for each row. Only
// then are there runs.
// CHECK-LABEL: func.func @runs
// CHECK: rt.store %{{.*}}, %[[PART:.*]][%{{.*}}] initial
// CHECK: %[[OUTCOME:.*]] = rt.bound 4 : i64
// CHECK: %[[RUNS:.*]] = rt.bound 5 : !rt.buf<i32>
// CHECK: %[[STARTS:.*]] = rt.bound 6 : !rt.buf<i64>
// CHECK-NOT: rt.load
// CHECK: arith.cmpi eq, %[[OUTCOME]]
// CHECK-NOT: rt.load
// CHECK: scf.if
// CHECK: rt.load %[[STARTS]]
// CHECK: rt.load %[[STARTS]]
// CHECK: scf.for
// CHECK: rt.load %[[RUNS]]
// CHECK: scf.for
// CHECK: arith.addf
// CHECK: ad.accumulate
// CHECK: } else {
// CHECK: scf.for
// CHECK: ad.accumulate
// CHECK-NOT: ad.segments
func.func @runs(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %x[%i] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    %k = rt.load %idx[%i] : i32
    %k64 = arith.extsi %k : i32 to i64
    ad.accumulate %adj[%k64], %e {ad.segments = #ad.segments<slot 4, key 0, first 0>}
  }
  func.return
}

// So are those of a loop in pieces, as products have them, where runs end with each piece; else rows are added one by one.
// CHECK-LABEL: func.func @pieces
// CHECK: rt.bound 5 : !rt.buf<i32>
// CHECK: scf.if
func.func @pieces(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %step = arith.constant 128 : i64
  scf.for %first = %zero to %n step %step : i64 {
    %rest = arith.addi %first, %step : i64
    %end = arith.minsi %rest, %n : i64
    scf.for %i = %first to %end step %one : i64 {
      %v = rt.load %x[%i] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      %k = rt.load %idx[%i] : i32
      %k64 = arith.extsi %k : i32 to i64
      ad.accumulate %adj[%k64], %e {ad.segments = #ad.segments<slot 4, key 0, first 0>}
    }
  }
  func.return
}

// CHECK-LABEL: func.func @other_pieces
// CHECK-NOT: rt.bound
func.func @other_pieces(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %step = arith.constant 100 : i64
  scf.for %first = %zero to %n step %step : i64 {
    %rest = arith.addi %first, %step : i64
    %end = arith.minsi %rest, %n : i64
    scf.for %i = %first to %end step %one : i64 {
      %v = rt.load %x[%i] : f64
      %e = rt.math exp(%v) : (f64) -> f64
      %k = rt.load %idx[%i] : i32
      %k64 = arith.extsi %k : i32 to i64
      ad.accumulate %adj[%k64], %e {ad.segments = #ad.segments<slot 4, key 0, first 0>}
    }
  }
  func.return
}

// A division is worth it where bits may change.
// RUN: stan-opt %s -p 'split-scatters{divisions=true}' | filecheck %s --check-prefix=DIVISIONS
// CHECK-LABEL: func.func @divides
// CHECK-NOT: stack
// DIVISIONS-LABEL: func.func @divides
// DIVISIONS: rt.alloc stack
// DIVISIONS: arith.divf
// DIVISIONS-NEXT: arith.subi
// DIVISIONS-NEXT: rt.store
// DIVISIONS: ad.accumulate
func.func @divides(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c = arith.constant 1.0 : f64
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %x[%i] : f64
    %k = rt.load %idx[%i] : i32
    %k64 = arith.extsi %k : i32 to i64
    %e = arith.divf %c, %v : f64
    ad.accumulate %adj[%k64], %e
  }
  func.return
}

// So is a branch that only chooses a value: both arms are computed where a function does so for several rows. With one
// that is called row by row the loop stays.
// CHECK-LABEL: func.func @chooses
// CHECK-NOT: stack
// DIVISIONS-LABEL: func.func @chooses
// DIVISIONS: rt.alloc stack
// DIVISIONS: scf.if
// DIVISIONS: rt.math exp
// DIVISIONS: rt.store
// DIVISIONS: ad.accumulate
// DIVISIONS-LABEL: func.func @chooses_one_by_one
// DIVISIONS-NOT: rt.alloc stack
func.func @chooses(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %x[%i] : f64
    %k = rt.load %idx[%i] : i32
    %k64 = arith.extsi %k : i32 to i64
    %is = arith.cmpi eq, %k64, %one : i64
    %e = scf.if %is -> (f64) {
      %f = rt.math exp(%v) : (f64) -> f64
      scf.yield %f : f64
    } else {
      scf.yield %v : f64
    }
    ad.accumulate %adj[%k64], %e
  }
  func.return
}
func.func @chooses_one_by_one(%x: !rt.buf<f64>, %idx: !rt.buf<i32>, %adj: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %v = rt.load %x[%i] : f64
    %k = rt.load %idx[%i] : i32
    %k64 = arith.extsi %k : i32 to i64
    %is = arith.cmpi eq, %k64, %one : i64
    %e = scf.if %is -> (f64) {
      %f = rt.math lgamma(%v) : (f64) -> f64
      scf.yield %f : f64
    } else {
      scf.yield %v : f64
    }
    ad.accumulate %adj[%k64], %e
  }
  func.return
}
