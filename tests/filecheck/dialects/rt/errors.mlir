// What the verifiers of the `rt` dialect refuse.
// RUN: stan-opt %s --split-input-file --verify-diagnostics

func.func @f(%b: !rt.buf<f64>, %n: i64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i32}}
  %v = "rt.load"(%b, %n) : (!rt.buf<f64>, i64) -> i32
  func.return
}

// -----

func.func @f(%b: !rt.buf<i32>, %n: i64, %x: f64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i32}}
  "rt.store"(%x, %b, %n) : (f64, !rt.buf<i32>, i64) -> ()
  func.return
}

// -----

func.func @f(%b: !rt.buf<f64>, %n: i64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i32}}
  %v = "rt.view"(%b, %n) : (!rt.buf<f64>, i64) -> !rt.buf<i32>
  func.return
}

// -----

func.func @f(%b: !rt.buf<f64>, %c: !rt.buf<i32>, %n: i64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i32}}
  "rt.copy"(%b, %c, %n) : (!rt.buf<f64>, !rt.buf<i32>, i64) -> ()
  func.return
}

// -----

func.func @f(%b: !rt.buf<f64>, %n: i64) {
  // expected-error@+1 {{attribute f64 expected from variable 'element type', but got i64}}
  "rt.fill"(%b, %n, %n) : (!rt.buf<f64>, i64, i64) -> ()
  func.return
}

// -----

func.func @f(%ok: i1, %x: f64) {
  // expected-error@+1 {{the message of a check has at most four values}}
  "rt.check"(%ok, %x, %x, %x, %x, %x) <{site = 0 : i64}> : (i1, f64, f64, f64, f64, f64) -> ()
  func.return
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{a kernel that throws has a site and no result}}
  "rt.kernel"(%x) <{function = "normal_rng", throws}> : (f64) -> ()
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{the elements of the buffer are of type i32, but the value is of type f64}}
  %a = "rt.constants"() <{values = array<f64: 1.5>}> : () -> !rt.buf<i32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{constants are finite: others cannot be read again}}
  %a = "rt.constants"() <{values = array<f64: 1.0e999>}> : () -> !rt.buf<f64>
  func.return
}
