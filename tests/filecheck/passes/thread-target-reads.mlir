// RUN: stan-opt -p thread-target,verify-dominance %s | filecheck %s

// A read becomes the total at its place; in a function whose `ad.target_position` has an argument, that argument plus the total.
// CHECK-LABEL: @f
func.func @f(%x: f64, %before: f64) -> (f64, f64) attributes {ad.target_position = #ad.target_position<result 1, argument 1>} {
  %placeholder = arith.constant 0.0 : f64
  // CHECK: %[[START:.*]] = arith.constant 0.000000e+00 : f64
  // CHECK: %[[T1:.*]] = arith.addf %[[START]], %x : f64
  // CHECK-NEXT: %[[READ:.*]] = arith.addf %before, %[[T1]] : f64
  // CHECK-NEXT: %[[T2:.*]] = arith.addf %[[T1]], %[[READ]] : f64
  // CHECK-NEXT: func.return %[[READ]], %[[T2]] : f64, f64
  ad.target_add %x
  %read = ad.target
  ad.target_add %read
  func.return %read, %placeholder : f64, f64
}
