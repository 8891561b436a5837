// RUN: stan-opt %s | stan-opt | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Ops that only the value form has.

"stan.program"() <{sym_name = "value_form"}> ({
  "stan.block"() <{kind = "generated_quantities"}> ({
    %n = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
    %v = "stan.declare"(%n) <{var_name = "v", constraint = "none", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!stan.int) -> !stan.var<!stan.vector>
    %size = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
    %u = "stan.uninitialized"(%size) : (!stan.int) -> !stan.vector
    %sum = "stan.add"(%u, %u) : (!stan.vector, !stan.vector) -> !stan.vector
    %length = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
    %w = "stan.assert_shape"(%sum, %length) <{var_name = "w"}> : (!stan.vector, !stan.int) -> !stan.vector
    "stan.define"(%w) <{var_name = "v"}> : (!stan.vector) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @value_form {
// CHECK-NEXT:     stan.block generated_quantities {
// CHECK-NEXT:       %n = stan.constant 2 : i32
// CHECK-NEXT:       %v = stan.declare v[%n] : !stan.var<!stan.vector>
// CHECK-NEXT:       %size = stan.constant 2 : i32
// CHECK-NEXT:       %u = stan.uninitialized[%size] : !stan.vector
// CHECK-NEXT:       %sum = stan.add %u, %u : !stan.vector
// CHECK-NEXT:       %length = stan.constant 2 : i32
// CHECK-NEXT:       %w = stan.assert_shape w %sum[%length] : !stan.vector
// CHECK-NEXT:       stan.define v = %w : !stan.vector
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

// TEXT:      vector[2] v;
// TEXT-NEXT: vector[2] u;
// TEXT-NEXT: vector[2] w = u + u;
// TEXT-NEXT: v = w;
