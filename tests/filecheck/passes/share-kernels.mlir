// RUN: stan-opt -p share-kernels,verify-dominance %s | filecheck %s

// The vectors take what the call for the values has kept, and become a result of it.

"builtin.module"() ({
  func.func @evaluate(%a : !rt.buf<f64>, %n : i64) -> f64 attributes {rt.entry = #rt.entry} {
    %i = arith.constant 0 : i64
    %nn = arith.muli %n, %n : i64
    %w = rt.alloc %n : !rt.buf<f64>
    %kept = rt.alloc %nn : !rt.buf<f64>
    rt.kernel eigenvalues_sym(%a, %n, %w, %kept) throws site 0 : (!rt.buf<f64>, i64, !rt.buf<f64>, !rt.buf<f64>) -> ()
    %v = rt.alloc %nn : !rt.buf<f64>
    %rest = rt.alloc %n : !rt.buf<f64>
    rt.kernel eigenvectors_sym(%a, %n, %v, %rest) throws site 1 : (!rt.buf<f64>, i64, !rt.buf<f64>, !rt.buf<f64>) -> ()
    %x = rt.load %v[%i] : f64
    %y = rt.load %w[%i] : f64
    %z = arith.addf %x, %y : f64
    func.return %z : f64
  }
}) : () -> ()

// CHECK:      rt.kernel eigendecompose_sym(%a, %n, %kept, %w) throws site 0
// CHECK-NOT:  rt.kernel
// CHECK:      rt.load %kept
// CHECK-NEXT: %y = rt.load %w
