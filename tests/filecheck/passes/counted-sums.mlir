// RUN: stan-opt -p counted-sums,dce,verify-dominance %s | filecheck %s

// What is added by a choice of data is counted, and read as counts times numbers.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for %t = {{.*}} iter_args({{.*}}[[K:%[0-9a-z]+]] = {{%.*}}, [[L:%[0-9a-z]+]] = {{%.*}})
// CHECK:        [[KU:%.*]] = arith.mulf [[K]], %u
// CHECK:        [[U:%.*]] = arith.select {{%.*}}, [[KU]], {{%.*}} : f64
// CHECK:        [[LV:%.*]] = arith.mulf [[L]], %v
// CHECK:        [[V:%.*]] = arith.select {{%.*}}, [[LV]], {{%.*}} : f64
// CHECK:        [[S:%.*]] = arith.addf [[U]], [[V]]
// CHECK:        rt.math exp([[S]])
// CHECK:        [[ONE:%.*]] = arith.select %is, {{%.*}}, {{%.*}} : f64
// CHECK:        [[K1:%.*]] = arith.addf [[K]], [[ONE]]
// CHECK:        [[L1:%.*]] = arith.addf [[L]], {{%.*}}
// CHECK:        scf.yield {{.*}}[[K1]], [[L1]]
func.func @evaluate(%u : f64, %v : f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %n = rt.bound 1 : i64
  %d = rt.bound 0 : !rt.buf<f64>
  %last = scf.for %t = %i0 to %n step %i1 iter_args(%s = %zero) -> (f64) : i64 {
    %p = rt.math exp(%s) : (f64) -> f64
    ad.target_add %p
    %y = rt.load %d[%t] : f64
    %is = arith.cmpf ogt, %y, %zero : f64
    %c = arith.select %is, %u, %v : f64
    %next = arith.addf %s, %c : f64
    scf.yield %next : f64
  }
  func.return
}
