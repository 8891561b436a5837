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

// CHECK:      stan.block data {
// CHECK-NEXT:   %[[ONE:.*]] = stan.constant 1 : i32
// CHECK-NEXT:   %N = stan.declare N bounds lower(%[[ONE]]
// CHECK-NEXT:   %[[VALUE:.*]] = stan.read %N
// CHECK-NEXT:   stan.check N %[[VALUE]]
// CHECK-NEXT:   %[[SIZE:.*]] = stan.read %N
// CHECK-NEXT:   %y = stan.declare y[%[[SIZE]]]
// CHECK-NEXT: }

// CHECK-NEXT: stan.block transformed_data {
// CHECK-NEXT:   %y = stan.global y
// CHECK-NEXT:   %m = stan.declare m bounds
// CHECK:        stan.assign %m = {{.*}}
// CHECK-NEXT:   %[[M:.*]] = stan.read %m
// CHECK:        %[[BOUND:.*]] = stan.index
// CHECK-NEXT:   stan.check m %[[M]]

// CHECK:      stan.block parameters {
// CHECK:        %p = stan.parameter p[%{{.*}}, %{{.*}}] simplex : !stan.var<!stan.array<1, !stan.vector>>
// CHECK:        %mu = stan.parameter mu offset_multiplier offset(%{{.*}}

// CHECK:      stan.block transformed_parameters {
// CHECK-NEXT:   %q = stan.declare q bounds
// CHECK-NEXT:   %a = stan.declare a local
// CHECK:        stan.check q {{.*}}
// CHECK:      stan.block model {
