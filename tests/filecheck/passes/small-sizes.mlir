// RUN: stan-opt --split-input-file --verify-each -p small-sizes %s | filecheck %s

// Straight code for two and three columns, and the nest for others; what all rows read is read ahead of them.
builtin.module {
  func.func @evaluate(%y: !rt.buf<f64>, %b: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %n = rt.bound 2 : i64
    %k = rt.bound 3 : i64
    scf.for %i = %0 to %n step %1 : i64 {
      %x = rt.load %y[%i] : f64
      scf.for %j = %0 to %k step %1 : i64 {
        %c = rt.load %b[%j] : f64
        %t = arith.mulf %x, %c : f64
        ad.target_add %t
      }
    }
    func.return
  }
}
// CHECK:         [[ROWS:%.*]] = arith.cmpi slt, %0, %n
// CHECK-NEXT:    [[TWO:%.*]] = arith.constant 2 : i64
// CHECK-NEXT:    [[IS:%.*]] = arith.cmpi eq, %k, [[TWO]]
// CHECK-NEXT:    [[BOTH:%.*]] = arith.andi [[IS]], [[ROWS]]
// CHECK-NEXT:    [[THREE:%.*]] = arith.constant 3 : i64
// CHECK-NEXT:    [[OR:%.*]] = arith.cmpi eq, %k, [[THREE]]
// CHECK-NEXT:    [[ELSE:%.*]] = arith.andi [[OR]], [[ROWS]]
// CHECK-NEXT:    scf.if [[BOTH]] {
// CHECK:           rt.load %b
// CHECK:           rt.load %b
// CHECK:           scf.for
// CHECK-NOT:         scf.for
// CHECK-COUNT-2:     ad.target_add
// CHECK:         } else {
// CHECK-NEXT:      scf.if [[ELSE]] {
// CHECK-COUNT-3:     ad.target_add
// CHECK:           } else {
// CHECK:             scf.for
// CHECK:               scf.for

// -----

// Not where data decide what a row reads, nor where the inner loop has functions.
builtin.module {
  func.func @evaluate(%y: !rt.buf<f64>, %b: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %n = rt.bound 2 : i64
    %k = rt.bound 3 : i64
    %g = rt.bound 4 : !rt.buf<i64>
    scf.for %i = %0 to %n step %1 : i64 {
      %group = rt.load %g[%i] : i64
      scf.for %j = %0 to %k step %1 : i64 {
        %place = arith.addi %group, %j : i64
        %c = rt.load %b[%place] : f64
        ad.target_add %c
      }
    }
    scf.for %i = %0 to %n step %1 : i64 {
      scf.for %j = %0 to %k step %1 : i64 {
        %c = rt.load %b[%j] : f64
        %e = rt.math exp(%c) : (f64) -> f64
        ad.target_add %e
      }
    }
    func.return
  }
}
// CHECK-NOT:     scf.if
// CHECK:         rt.math exp
// CHECK-NOT:     scf.if

// -----

// What stands behind a check is read where it was: it may not be there.
builtin.module {
  func.func @evaluate(%b: !rt.buf<f64>, %ok: i1) attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %n = rt.bound 2 : i64
    %k = rt.bound 3 : i64
    scf.for %i = %0 to %n step %1 : i64 {
      scf.for %j = %0 to %k step %1 : i64 {
        rt.check %ok site 0 status 3
        %c = rt.load %b[%j] : f64
        ad.target_add %c
      }
    }
    func.return
  }
}
// CHECK:       func.func @evaluate({{.*}}%ok: i1
// CHECK:         scf.if
// CHECK-NOT:       rt.load
// CHECK:           scf.for
// CHECK-NEXT:        arith.constant 0 : i64
// CHECK-NEXT:        rt.check
// CHECK-NEXT:        rt.load %b
// CHECK-NEXT:        ad.target_add
// CHECK-NEXT:        arith.constant 1 : i64
// CHECK-NEXT:        rt.check
