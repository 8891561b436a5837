// Every op of the `ad` dialect: parsed, printed, parsed again.
// RUN: stan-opt %s | stan-opt | filecheck %s

// CHECK: "ad.gradient"() <{function = @log_density}> : () -> ()
"ad.gradient"() <{function = @log_density}> : () -> ()
// CHECK: "ad.hessian_vector"() <{function = @log_density}> : () -> ()
"ad.hessian_vector"() <{function = @log_density}> : () -> ()

// CHECK-LABEL: func.func @sweeps
func.func @sweeps(%theta: !rt.buf<f64>, %n: i64, %x: f64) {
  // CHECK: "ad.independent"(%{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64) -> ()
  "ad.independent"(%theta, %n) : (!rt.buf<f64>, i64) -> ()
  // CHECK: "ad.target_add"(%{{.*}}) : (f64) -> ()
  "ad.target_add"(%x) : (f64) -> ()
  // CHECK: "ad.accumulate"(%{{.*}}, %{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64, f64) -> ()
  "ad.accumulate"(%theta, %n, %x) : (!rt.buf<f64>, i64, f64) -> ()
  // CHECK: "ad.take"(%{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64) -> f64
  %g = "ad.take"(%theta, %n) : (!rt.buf<f64>, i64) -> f64
  // CHECK: "ad.keep"(%{{.*}}, %{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64, f64) -> ()
  "ad.keep"(%theta, %n, %x) : (!rt.buf<f64>, i64, f64) -> ()
  // CHECK: "ad.kept"(%{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64) -> f64
  %k = "ad.kept"(%theta, %n) : (!rt.buf<f64>, i64) -> f64
  %null = "rt.null"() : () -> !rt.buf<f64>
  // CHECK: %[[TOP:.*]] = "ad.push"(%{{.*}}, %{{.*}}, %{{.*}}) : (!rt.buf<f64>, f64, i64) -> !rt.buf<f64>
  %top = "ad.push"(%null, %x, %n) : (!rt.buf<f64>, f64, i64) -> !rt.buf<f64>
  // CHECK: "ad.pop"(%[[TOP]]) : (!rt.buf<f64>) -> (!rt.buf<f64>, f64, i64)
  %below, %v, %w = "ad.pop"(%top) : (!rt.buf<f64>) -> (!rt.buf<f64>, f64, i64)
  func.return
}
