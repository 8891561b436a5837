// RUN: stan-opt %s | filecheck %s
// Blocks: global variables of earlier blocks are declared where they are first needed, checks follow data at once and
// come at the end of the blocks that compute.

data {
  int<lower=1> N;
  vector[N] y;
}
transformed data {
  real<upper=y[1]> m = min(y);
}
parameters {
  array[N] simplex[3] p;
  real<offset=m, multiplier=2> mu;
}
transformed parameters {
  real<lower=0, upper=1> q;
  {
    real a = 0.5;
    q = a;
  }
}
model {
}

// CHECK:      "stan.block"() <{kind = "data"}> ({
// CHECK-NEXT:   %[[ONE:.*]] = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
// CHECK-NEXT:   %N = "stan.declare"(%[[ONE]]) <{var_name = "N", constraint = "bounds", operandSegmentSizes = array<i32: 0, 1, 0, 0, 0>}>
// CHECK-NEXT:   %[[VALUE:.*]] = "stan.read"(%N)
// CHECK-NEXT:   "stan.check"(%[[VALUE]], %[[ONE]]) <{var_name = "N", constraint = "bounds", operandSegmentSizes = array<i32: 1, 1, 0>}>
// CHECK-NEXT:   %[[SIZE:.*]] = "stan.read"(%N)
// CHECK-NEXT:   %y = "stan.declare"(%[[SIZE]]) <{var_name = "y", constraint = "none", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}>
// CHECK-NEXT: }) : () -> ()

// CHECK-NEXT: "stan.block"() <{kind = "transformed_data"}> ({
// CHECK-NEXT:   %y = "stan.global"() <{var_name = "y"}>
// CHECK-NEXT:   %m = "stan.declare"() <{var_name = "m", constraint = "bounds", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}>
// CHECK:        "stan.assign"(%m, {{.*}}) <{kinds = []}>
// CHECK-NEXT:   %[[M:.*]] = "stan.read"(%m)
// CHECK:        %[[BOUND:.*]] = "stan.index"
// CHECK-NEXT:   "stan.check"(%[[M]], %[[BOUND]]) <{var_name = "m", constraint = "bounds", operandSegmentSizes = array<i32: 1, 0, 1>}>

// CHECK:      "stan.block"() <{kind = "parameters"}> ({
// CHECK:        %p = "stan.parameter"(%{{.*}}, %{{.*}}) <{var_name = "p", constraint = "simplex", operandSegmentSizes = array<i32: 2, 0, 0, 0, 0>}> : (!stan.int, !stan.int) -> !stan.var<!stan.array<1, !stan.vector>>
// CHECK:        %mu = "stan.parameter"(%{{.*}}, %{{.*}}) <{var_name = "mu", constraint = "offset_multiplier", operandSegmentSizes = array<i32: 0, 0, 0, 1, 1>}>

// CHECK:      "stan.block"() <{kind = "transformed_parameters"}> ({
// CHECK-NEXT:   %q = "stan.declare"() <{var_name = "q", constraint = "bounds", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}>
// CHECK-NEXT:   %a = "stan.declare"() <{var_name = "a", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>, local}>
// CHECK:        "stan.check"({{.*}}) <{var_name = "q", constraint = "bounds", operandSegmentSizes = array<i32: 1, 1, 1>}>
// CHECK:      "stan.block"() <{kind = "model"}> ({
