// RUN: stan-opt --verify-each -p 'share-parts{above=4 least=4},verify-dominance' %s | filecheck %s

// Constants that differ are passed to what equal branches share, also those that stand in a branch.
// CHECK-LABEL: @evaluate
// CHECK:       %[[ONE:.*]] = arith.constant 1 : i64
// CHECK:       func.call @evaluate.shared(%[[ONE]]
// CHECK:       %[[TWO:.*]] = arith.constant 2 : i64
// CHECK:       func.call @evaluate.shared(%[[TWO]]
// CHECK:       func.func private @evaluate.shared(%{{.*}}: i64
func.func @evaluate(%c: i1, %m: !rt.buf<f64>) {
  scf.if %c {
    %i1 = arith.constant 1 : i64
    %x = rt.load %m[%i1] : f64
    %y = rt.math exp(%x) : (f64) -> f64
    %z = rt.math sin(%y) : (f64) -> f64
    ad.target_add %z
  } else {
  }
  scf.if %c {
    %i2 = arith.constant 2 : i64
    %x = rt.load %m[%i2] : f64
    %y = rt.math exp(%x) : (f64) -> f64
    %z = rt.math sin(%y) : (f64) -> f64
    ad.target_add %z
  } else {
  }
  func.return
}
