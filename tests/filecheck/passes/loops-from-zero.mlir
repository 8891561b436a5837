// RUN: stan-opt -p loops-from-zero,verify-dominance --split-input-file %s | filecheck %s

// Elements are read by the loop's number, which a check tells as the program has it.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for [[N:%.*]] = %{{.*}} to %{{rows|[0-9]+}} step
// CHECK-NEXT:   [[NUMBER:%.*]] = arith.addi [[N]]
// CHECK-NEXT:   [[X:%.*]] = rt.load %{{.*}}[[[N]]]
// CHECK:        rt.check {{.*}} with [[X]], [[NUMBER]]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i1 = arith.constant 1 : i64
  %end = arith.addi %rows, %i1 : i64
  %zero = arith.constant 0.0 : f64
  scf.for %n = %i1 to %end step %i1 : i64 {
    %k = arith.subi %n, %i1 : i64
    %v = rt.load %x[%k] : f64
    %ok = arith.cmpf ogt, %v, %zero : f64
    rt.check %ok site 0 status 3 with %v, %n : f64, i64
    ad.target_add %v
  }
  func.return %zero : f64
}

// -----

// A limit is 1 more than the number of rows whichever is written first: that number is the limit then.
// CHECK-LABEL: @evaluate
// CHECK:      [[ROWS:%.*]] = rt.bound 0
// CHECK:      scf.for %{{.*}} = %{{.*}} to [[ROWS]] step
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i1 = arith.constant 1 : i64
  %end = arith.addi %i1, %rows : i64
  scf.for %n = %i1 to %end step %i1 : i64 {
    %k = arith.subi %n, %i1 : i64
    %v = rt.load %x[%k] : f64
    ad.target_add %v
  }
  %zero = arith.constant 0.0 : f64
  func.return %zero : f64
}

// -----

// A loop from a later element on that stores nothing is counted likewise.
// CHECK-LABEL: @evaluate
// CHECK:      [[FIRST:%.*]] = arith.constant 2 : i64
// CHECK-NEXT: [[END:%.*]] = arith.subi %end, %i1
// CHECK-NEXT: scf.for %n = [[FIRST]] to [[END]] step %i1
// CHECK-NEXT:   rt.load %x[%n]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %end = rt.bound 0 : i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i1 = arith.constant 1 : i64
  %i3 = arith.constant 3 : i64
  scf.for %n = %i3 to %end step %i1 : i64 {
    %k = arith.subi %n, %i1 : i64
    %v = rt.load %x[%k] : f64
    ad.target_add %v
  }
  %zero = arith.constant 0.0 : f64
  func.return %zero : f64
}

// -----

// Where nothing is read before the number, or a later element is the first that is stored, the loop stays.
// CHECK-LABEL: @evaluate
// CHECK-NOT: arith.constant 0 : i64
// CHECK:     scf.for %n = %i1 to %end
// CHECK:     scf.for %{{.*}} = %i2 to %end
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %end = rt.bound 0 : i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %y = rt.alloc %end : !rt.buf<f64>
  scf.for %n = %i1 to %end step %i1 : i64 {
    %v = rt.load %x[%n] : f64
    ad.target_add %v
  }
  scf.for %n = %i2 to %end step %i1 : i64 {
    %k = arith.subi %n, %i1 : i64
    %v = rt.load %x[%k] : f64
    rt.store %v, %y[%k] : f64
  }
  %zero = arith.constant 0.0 : f64
  func.return %zero : f64
}
