// RUN: stan-opt -p link-library,verify-dominance %s | filecheck %s

// The density that is called, and the transform of a positive parameter, become part of the program.
// CHECK-LABEL: stan.program @linked
// CHECK-DAG: stan.func @exponential_lpdf({{.*}} library {
// CHECK-DAG: stan.func @lower_bound_constrain({{.*}} library {
// CHECK-DAG: stan.func @lower_bound_log_jacobian({{.*}} library {
// CHECK: stan.block parameters
// CHECK: stan.call exponential_lpdf({{.*}}) definition "exponential_lpdf"
builtin.module {
  stan.program @linked {
    stan.block parameters {
      %zero = stan.constant 0.0 : f64
      %s = stan.parameter s bounds lower(%zero : !stan.real) : !stan.var<!stan.real>
    }
    stan.block model {
      %s = stan.global s : !stan.var<!stan.real>
      %x = stan.read %s : !stan.real
      %one = stan.constant 1.0 : f64
      %d = stan.call exponential_lpdf(%x, %one) autodiff [1, 0] : (!stan.real, !stan.real) -> !stan.real
      stan.target_add %d : !stan.real
    }
  }
}
