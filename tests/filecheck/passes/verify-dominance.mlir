// RUN: stan-opt --split-input-file --verify-diagnostics -p verify-dominance %s

func.func @before_definition(%x: f64) -> f64 {
  // expected-error@+1 {{used before its definition}}
  %a = arith.addf %b, %x : f64
  %b = arith.addf %x, %x : f64
  func.return %a : f64
}

// -----
// A value of a branch is not seen after it.
func.func @out_of_a_branch(%x: f64, %c: i1) -> f64 {
  scf.if %c {
    %a = arith.addf %x, %x : f64
  }
  %b = arith.addf %x, %x : f64
  func.return %b : f64
}
