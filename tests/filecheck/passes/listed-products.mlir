// RUN: stan-opt --split-input-file -p listed-products,verify-dominance %s | filecheck %s

// What rows sum up of coefficients that data of their entries choose is a call; the entries are listed when data are bound.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %ends = rt.bound 1 : !rt.buf<i64>
    %w = rt.bound 2 : !rt.buf<f64>
    %v = rt.bound 3 : !rt.buf<i64>
    %y = rt.bound 4 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %next = arith.addi %i, %one : i64
      %begin = rt.load %ends[%i] : i64
      %end = rt.load %ends[%next] : i64
      %sum = scf.for %k = %begin to %end step %one iter_args(%s = %none) -> (f64) : i64 {
        %key = rt.load %v[%k] : i64
        %b = rt.load %theta[%key] : f64
        %x = rt.load %w[%k] : f64
        %product = arith.mulf %x, %b : f64
        %t = arith.addf %s, %product : f64
        scf.yield %t : f64
      }
      %u = rt.load %y[%i] : f64
      %p = arith.mulf %u, %sum : f64
      %e = rt.math exp(%p) : (f64) -> f64
      ad.target_add %e
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         [[SUMS:%[0-9]+]] = rt.alloc [[N:%[0-9]+]]
// CHECK-NEXT:    rt.kernel design_product(%theta, {{.*}}, [[N]], [[SUMS]])
// CHECK-NEXT:    scf.for
// CHECK-NOT:       scf.for
// CHECK:           rt.load [[SUMS]]
// CHECK:           rt.math exp
// CHECK-LABEL: func.func @bind
// CHECK:         [[INDEX:%[0-9]+]] = rt.alloc_bound {{%[0-9]+}} : !rt.buf<i32>
// CHECK:         [[VALUES:%[0-9]+]] = rt.alloc_bound [[ENTRIES:%[0-9]+]] : !rt.buf<f64>
// CHECK:         scf.for {{.*}} = %zero to %n
// CHECK:           scf.for
// CHECK:             rt.store {{.*}}, [[INDEX]]
// CHECK:             rt.store {{.*}}, [[VALUES]]
// CHECK:         rt.kernel listed_rows([[INDEX]], {{%[0-9]+}}, [[VALUES]], [[ENTRIES]]
// CHECK:         rt.layout "listed entries"

// -----

// The number of the entry alone tells the coefficient; rows write what they read: nothing.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %ends = rt.bound 1 : !rt.buf<i64>
    %v = rt.bound 2 : !rt.buf<i64>
    %a = rt.alloc zero %n : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %end = rt.load %ends[%i] : i64
      %sum = scf.for %k = %zero to %end step %one iter_args(%s = %none) -> (f64) : i64 {
        %b = rt.load %theta[%k] : f64
        %t = arith.addf %s, %b : f64
        scf.yield %t : f64
      }
      %own = scf.for %k = %zero to %end step %one iter_args(%s = %none) -> (f64) : i64 {
        %key = rt.load %v[%k] : i64
        %b = rt.load %a[%key] : f64
        %t = arith.addf %s, %b : f64
        scf.yield %t : f64
      }
      rt.store %own, %a[%i] : f64
      ad.target_add %sum
    }
    func.return %none : f64
  }
}
// CHECK-NOT:  rt.kernel
