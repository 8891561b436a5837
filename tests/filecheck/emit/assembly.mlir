// RUN: stan-opt %s -O3 -t asm | filecheck %s

// CHECK-LABEL: f:
// CHECK:         ret
func.func @f(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %y = arith.addf %x, %x : f64
  func.return %y : f64
}
