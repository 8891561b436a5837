// What the verifiers of the `ad` dialect refuse.
// RUN: stan-opt %s --split-input-file --verify-diagnostics

func.func @f(%a: !rt.buf<f64>, %n: i64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i64}}
  "ad.keep"(%a, %n, %n) : (!rt.buf<f64>, i64, i64) -> ()
  func.return
}

// -----

func.func @f(%a: !rt.buf<f64>, %n: i64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i64}}
  %v = "ad.kept"(%a, %n) : (!rt.buf<f64>, i64) -> i64
  func.return
}
