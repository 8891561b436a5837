// Every op of the `ad` dialect: parsed, printed, parsed again.
// RUN: stan-opt %s | stan-opt | filecheck %s

// CHECK: ad.gradient @sweeps
ad.gradient @sweeps
// CHECK: ad.hessian_vector @sweeps
ad.hessian_vector @sweeps

// CHECK-LABEL: func.func @sweeps
func.func @sweeps(%theta: !rt.buf<f64>, %n: i64, %x: f64) {
  // CHECK: ad.independent %{{.*}}, %{{.*}}
  ad.independent %theta, %n
  // CHECK: ad.target_add %{{.*}}
  ad.target_add %x
  // CHECK: ad.accumulate %{{.*}}[%{{.*}}], %{{.*}}
  ad.accumulate %theta[%n], %x
  // CHECK: ad.take %{{.*}}[%{{.*}}]
  %g = ad.take %theta[%n]
  // CHECK: ad.keep %{{.*}}[%{{.*}}], %{{.*}} : f64
  ad.keep %theta[%n], %x : f64
  // CHECK: ad.kept %{{.*}}[%{{.*}}] : f64
  %k = ad.kept %theta[%n] : f64
  %null = rt.null : !rt.buf<f64>
  // CHECK: %[[TOP:.*]] = ad.push %{{.*}}, %{{.*}}, %{{.*}} : f64, i64
  %top = ad.push %null, %x, %n : f64, i64
  // CHECK: ad.pop %[[TOP]] : !rt.buf<f64>, f64, i64
  %below, %v, %w = ad.pop %top : !rt.buf<f64>, f64, i64
  func.return
}
