// RUN: stan-opt -p inline-kernels,verify-dominance %s | filecheck %s

// A factor of two rows in straight code, with one check; one of a size that is not known stays.

"builtin.module"() ({
  func.func @evaluate(%a : !rt.buf<f64>, %n : i64) -> f64 attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %two = arith.constant 2 : i64
    %four = arith.constant 4 : i64
    %l = rt.alloc %four : !rt.buf<f64>
    rt.kernel cholesky_decompose(%a, %two, %l) throws site 7 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    %nn = arith.muli %n, %n : i64
    %m = rt.alloc %nn : !rt.buf<f64>
    rt.kernel cholesky_decompose(%a, %n, %m) throws site 8 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    %x = rt.load %l[%zero] : f64
    %y = rt.load %m[%zero] : f64
    %z = arith.addf %x, %y : f64
    func.return %z : f64
  }
}) : () -> ()

// CHECK-COUNT-4: rt.load %a[
// CHECK:         rt.math abs
// CHECK:         %[[FIRST:.*]] = rt.math sqrt
// CHECK:         rt.math inv(%[[FIRST]])
// CHECK:         %[[SECOND:.*]] = rt.math sqrt
// CHECK:         rt.check %{{.*}} site 7 status 3
// CHECK:         rt.store %[[FIRST]], %l[{{.*}}] initial
// CHECK:         rt.store %[[SECOND]], %l[{{.*}}] initial
// CHECK:         rt.kernel cholesky_decompose(%a, %n, %m) throws site 8
