// RUN: stan-opt -p idle-iterations,verify-dominance %s | filecheck %s

// Each iteration looks at the same elements.
// CHECK-LABEL: @checks
// CHECK:      [[SECOND:%.*]] = arith.addi %begin, {{.*}}
// CHECK-NEXT: [[END:%.*]] = arith.minsi %end, [[SECOND]]
// CHECK:      scf.for %t = %begin to [[END]]
func.func @checks(%x : !rt.buf<f64>, %begin : i64, %end : i64, %count : i64) -> i64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %bad = scf.for %t = %begin to %end step %i1 iter_args(%before = %i0) -> (i64) : i64 {
    %row = scf.for %k = %i0 to %count step %i1 iter_args(%so_far = %before) -> (i64) : i64 {
      %value = rt.load %x[%k] : f64
      %is_bad = arith.cmpf ult, %value, %zero : f64
      %bit = arith.extui %is_bad : i1 to i64
      %with = arith.ori %so_far, %bit : i64
      scf.yield %with : i64
    }
    scf.yield %row : i64
  }
  func.return %bad : i64
}

// It looks at another element each time.
// CHECK-LABEL: @elements
// CHECK-NOT:  arith.minsi
func.func @elements(%x : !rt.buf<f64>, %end : i64) -> i64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %bad = scf.for %t = %i0 to %end step %i1 iter_args(%before = %i0) -> (i64) : i64 {
    %value = rt.load %x[%t] : f64
    %is_bad = arith.cmpf ult, %value, %zero : f64
    %bit = arith.extui %is_bad : i1 to i64
    %with = arith.ori %before, %bit : i64
    scf.yield %with : i64
  }
  func.return %bad : i64
}

// What it has collected decides what it collects next.
// CHECK-LABEL: @counts
// CHECK-NOT:  arith.minsi
func.func @counts(%end : i64) -> i64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %found = scf.for %t = %i0 to %end step %i1 iter_args(%before = %i0) -> (i64) : i64 {
    %more = arith.addi %before, %i1 : i64
    %with = arith.ori %before, %more : i64
    scf.yield %with : i64
  }
  func.return %found : i64
}

// Two results change places.
// CHECK-LABEL: @turns
// CHECK-NOT:  arith.minsi
func.func @turns(%end : i64, %a : i64, %b : i64) -> (i64, i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %c, %d = scf.for %t = %i0 to %end step %i1 iter_args(%x = %a, %y = %b) -> (i64, i64) : i64 {
    scf.yield %y, %x : i64, i64
  }
  func.return %c, %d : i64, i64
}

// It writes.
// CHECK-LABEL: @writes
// CHECK-NOT:  arith.minsi
func.func @writes(%x : !rt.buf<f64>, %end : i64) -> i64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %found = scf.for %t = %i0 to %end step %i1 iter_args(%before = %i0) -> (i64) : i64 {
    %value = rt.load %x[%i0] : f64
    %twice = arith.addf %value, %value : f64
    rt.store %twice, %x[%i0] : f64
    scf.yield %before : i64
  }
  func.return %found : i64
}
