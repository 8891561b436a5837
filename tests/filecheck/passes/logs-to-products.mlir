// RUN: stan-opt -p logs-to-products,dce,verify-dominance %s | filecheck %s

// The factor 1 + exp(-|z|) is shared with the derivative; a large product is added after each 256 iterations.
// CHECK-LABEL: @evaluate
// CHECK:      [[ONE:%.*]] = arith.constant 1.000000e+00 : f64
// CHECK:      [[PIECE:%.*]] = arith.constant 256 : i64
// CHECK:      {{%.*}}, [[P:%.*]] = scf.for {{%.*}} = %i0 to %n step [[PIECE]] iter_args({{%.*}} = %zero, [[OUTER:%.*]] = [[ONE]])
// CHECK:        {{%.*}}, [[INNER:%.*]] = scf.for {{%.*}} = {{%.*}} to {{%.*}} step %i1 iter_args({{%.*}}, [[BEFORE:%.*]] = [[OUTER]])
// CHECK-NEXT:     %x = rt.load
// CHECK-NEXT:     [[Q:%.*]] = rt.math exp_minus_magnitude(%x)
// CHECK-NOT:      rt.math
// CHECK:          [[T:%.*]] = arith.addf {{%.*}}, [[Q]]
// CHECK:          arith.select {{%.*}}, %x
// CHECK:          arith.mulf [[BEFORE]], [[T]] fastmath<reassoc>
// CHECK-NEXT:     ad.target_add
// CHECK:          arith.divf {{%.*}}, [[T]]
// CHECK:        arith.cmpf ogt, [[INNER]]
// CHECK-NEXT:   scf.if
// CHECK-NEXT:     rt.math log([[INNER]])
// CHECK:      [[LOG:%.*]] = rt.math log([[P]])
// CHECK:      arith.mulf [[LOG]]
// CHECK-NEXT: ad.target_add
func.func @evaluate(%n : i64, %b : !rt.buf<f64>) -> (f64, f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %sum = scf.for %i = %i0 to %n step %i1 iter_args(%s = %zero) -> (f64) : i64 {
    %x = rt.load %b[%i] : f64
    %l = rt.math log1p_exp(%x) : (f64) -> f64
    %t = arith.negf %l : f64
    ad.target_add %t
    %d = rt.math inv_logit(%x) : (f64) -> f64
    %s2 = arith.addf %s, %d fastmath<reassoc> : f64
    scf.yield %s2 : f64
  }
  func.return %zero, %sum : f64, f64
}

