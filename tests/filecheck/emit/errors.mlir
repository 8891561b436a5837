// RUN: not stan-opt %s -t llvm --split-input-file 2>&1 | filecheck %s

// CHECK: there is no primitive 'bessel_zero'
func.func @f(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %y = rt.math bessel_zero(%x) : (f64) -> f64
  func.return %y : f64
}
