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

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @variables {
// CHECK-NEXT:     stan.block data {
// CHECK-NEXT:       %lower = stan.constant 1 : i32
// CHECK-NEXT:       %N = stan.declare N bounds lower(%lower : !stan.int) : !stan.var<!stan.int>
// CHECK-NEXT:       %value = stan.read %N : !stan.int
// CHECK-NEXT:       stan.check N %value : !stan.int bounds lower(%lower : !stan.int)
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block parameters {
// CHECK-NEXT:       %N = stan.global N : !stan.var<!stan.int>
// CHECK-NEXT:       %n = stan.read %N : !stan.int
// CHECK-NEXT:       %theta = stan.parameter theta[%n] simplex : !stan.var<!stan.vector>
// CHECK-NEXT:       %mean = stan.constant 3.000000e+00 : f64
// CHECK-NEXT:       %scale = stan.constant 5.000000e-01 : f64
// CHECK-NEXT:       %mu = stan.parameter mu offset_multiplier offset(%mean : !stan.real) multiplier(%scale : !stan.real) : !stan.var<!stan.real>
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block model {
// CHECK-NEXT:       %theta = stan.global theta : !stan.var<!stan.vector>
// CHECK-NEXT:       %r = stan.constant 2 : i32
// CHECK-NEXT:       %c = stan.constant 3 : i32
// CHECK-NEXT:       %m = stan.declare m[%r, %c] : !stan.var<!stan.matrix>
// CHECK-NEXT:       %t = stan.read %theta : !stan.vector
// CHECK-NEXT:       %one = stan.constant 1 : i32
// CHECK-NEXT:       %two = stan.constant 2 : i32
// CHECK-NEXT:       %slice = stan.index %t[%one to %two] : !stan.vector -> !stan.vector
// CHECK-NEXT:       %j = stan.constant 1 : i32
// CHECK-NEXT:       stan.assign %m[:, %j] = %slice : !stan.var<!stan.matrix>, !stan.vector
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

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
