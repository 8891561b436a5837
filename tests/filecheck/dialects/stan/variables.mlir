// RUN: stan-opt %s | stan-opt | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Declaring, reading, assigning, indexing, checking.

"stan.program"() <{sym_name = "variables"}> ({
  "stan.block"() <{kind = "data"}> ({
    %lower = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
    %N = "stan.declare"(%lower) <{var_name = "N", constraint = "bounds", operandSegmentSizes = array<i32: 0, 1, 0, 0, 0>}> : (!stan.int) -> !stan.var<!stan.int>
    %value = "stan.read"(%N) : (!stan.var<!stan.int>) -> !stan.int
    "stan.check"(%value, %lower) <{var_name = "N", constraint = "bounds", operandSegmentSizes = array<i32: 1, 1, 0>}> : (!stan.int, !stan.int) -> ()
  }) : () -> ()
  "stan.block"() <{kind = "parameters"}> ({
    %N = "stan.global"() <{var_name = "N"}> : () -> !stan.var<!stan.int>
    %n = "stan.read"(%N) : (!stan.var<!stan.int>) -> !stan.int
    %theta = "stan.parameter"(%n) <{var_name = "theta", constraint = "simplex", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!stan.int) -> !stan.var<!stan.vector>
    %mean = "stan.constant"() <{value = 3.0 : f64}> : () -> !stan.real
    %scale = "stan.constant"() <{value = 0.5 : f64}> : () -> !stan.real
    %mu = "stan.parameter"(%mean, %scale) <{var_name = "mu", constraint = "offset_multiplier", operandSegmentSizes = array<i32: 0, 0, 0, 1, 1>}> : (!stan.real, !stan.real) -> !stan.var<!stan.real>
  }) : () -> ()
  "stan.block"() <{kind = "model"}> ({
    %theta = "stan.global"() <{var_name = "theta"}> : () -> !stan.var<!stan.vector>
    %r = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
    %c = "stan.constant"() <{value = 3 : i32}> : () -> !stan.int
    %m = "stan.declare"(%r, %c) <{var_name = "m", constraint = "none", operandSegmentSizes = array<i32: 2, 0, 0, 0, 0>}> : (!stan.int, !stan.int) -> !stan.var<!stan.matrix>
    %t = "stan.read"(%theta) : (!stan.var<!stan.vector>) -> !stan.vector
    %one = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
    %two = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
    %slice = "stan.index"(%t, %one, %two) <{kinds = ["between"]}> : (!stan.vector, !stan.int, !stan.int) -> !stan.vector
    %j = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
    "stan.assign"(%m, %slice, %j) <{kinds = ["all", "single"]}> : (!stan.var<!stan.matrix>, !stan.vector, !stan.int) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK:      %N = "stan.declare"(%lower) <{{.*}}var_name = "N", constraint = "bounds"
// CHECK-NEXT: %value = "stan.read"(%N)
// CHECK-NEXT: "stan.check"(%value, %lower)
// CHECK:      %N = "stan.global"() <{var_name = "N"}> : () -> !stan.var<!stan.int>
// CHECK:      %theta = "stan.parameter"(%n) <{{.*}}constraint = "simplex"
// CHECK:      %mu = "stan.parameter"(%mean, %scale) <{{.*}}constraint = "offset_multiplier"
// CHECK:      %slice = "stan.index"(%t, %one, %two) <{kinds = ["between"]}> : (!stan.vector, !stan.int, !stan.int) -> !stan.vector
// CHECK:      "stan.assign"(%m, %slice, %j) <{kinds = ["all", "single"]}> : (!stan.var<!stan.matrix>, !stan.vector, !stan.int) -> ()

// TEXT:      data {
// TEXT-NEXT:   int<lower=1> N;
// TEXT-NEXT: }
// TEXT-NEXT: parameters {
// TEXT-NEXT:   simplex[N] theta;
// TEXT-NEXT:   real<offset=3, multiplier=0.5> mu;
// TEXT-NEXT: }
// TEXT-NEXT: model {
// TEXT-NEXT:   matrix[2, 3] m;
// TEXT-NEXT:   m[:, 1] = theta[1:2];
// TEXT-NEXT: }
