// RUN: stan-opt -p logs-of-transforms,dce,verify-dominance %s | filecheck %s

// Checks of an exponential that nothing else needs are checks of its argument; one of 1 needs the exponential.
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:  rt.math exp(%u)
// CHECK:      [[LEAST:%.*]] = arith.constant -745.1332191019412
// CHECK:      arith.cmpf ogt, %u, [[LEAST]]
// CHECK:      [[MOST:%.*]] = arith.constant 709.7827128933
// CHECK:      arith.cmpf ole, %u, [[MOST]]
// CHECK:      arith.cmpf ord, %u, %u
// CHECK:      [[V:%.*]] = rt.math exp(%v)
// CHECK-NEXT: arith.cmpf ogt, [[V]], %zero
// CHECK-NEXT: arith.cmpf olt, [[V]], %one
func.func @evaluate(%u : f64, %v : f64) -> (i1, i1, i1, i1, i1) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %most = arith.constant 0x7ff0000000000000 : f64
  %e = rt.math exp(%u) : (f64) -> f64
  %a = arith.cmpf ogt, %e, %zero : f64
  %b = arith.cmpf olt, %e, %most : f64
  %c = arith.cmpf oge, %e, %zero : f64
  %f = rt.math exp(%v) : (f64) -> f64
  %d = arith.cmpf ogt, %f, %zero : f64
  %g = arith.cmpf olt, %f, %one : f64
  func.return %a, %b, %c, %d, %g : i1, i1, i1, i1, i1
}
