// A container literal of numbers alone: printed, as Stan, and lowered to one copy, matrices column by column.
// RUN: stan-opt %s | stan-opt | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// RUN: stan-opt %s --unit value_propto | filecheck %s --check-prefix=LOW

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @literals {
// CHECK-NEXT:     stan.block model {
// CHECK-NEXT:       %m = stan.literal array<f64: 1.500000e+00, -2.000000e+00, 3.000000e+00, 4.000000e+00> sizes array<i64: 2, 2> : !stan.matrix
// CHECK-NEXT:       stan.print print(%m : !stan.matrix)
// CHECK-NEXT:       %i = stan.literal array<i32: 1, 2, 3, 4, 5, 6> sizes array<i64: 2, 3> : !stan.array<2, !stan.int>
// CHECK-NEXT:       stan.print print(%i : !stan.array<2, !stan.int>)
// CHECK-NEXT:       %v = stan.literal array<f64: 1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00> sizes array<i64: 2, 2> : !stan.array<1, !stan.row_vector>
// CHECK-NEXT:       stan.print print(%v : !stan.array<1, !stan.row_vector>)
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
"stan.program"() <{sym_name = "literals"}> ({
  "stan.block"() <{kind = "model"}> ({
    // TEXT: print({{\[\[}}1.5, -2.0], [3.0, 4.0{{\]\]}});
    // LOW: rt.constants array<f64: 1.500000e+00, 3.000000e+00, -2.000000e+00, 4.000000e+00> : !rt.buf<f64>
    %m = "stan.literal"() <{values = array<f64: 1.5, -2.0, 3.0, 4.0>, sizes = array<i64: 2, 2>}> : () -> !stan.matrix
    "stan.print"(%m) <{kind = "print"}> : (!stan.matrix) -> ()
    // TEXT: print({{[{]}}{1, 2, 3}, {4, 5, 6}{{[}]}});
    %i = "stan.literal"() <{values = array<i32: 1, 2, 3, 4, 5, 6>, sizes = array<i64: 2, 3>}> : () -> !stan.array<2, !stan.int>
    "stan.print"(%i) <{kind = "print"}> : (!stan.array<2, !stan.int>) -> ()
    // TEXT: print({[1.0, 2.0], [3.0, 4.0]});
    %v = "stan.literal"() <{values = array<f64: 1.0, 2.0, 3.0, 4.0>, sizes = array<i64: 2, 2>}> : () -> !stan.array<1, !stan.row_vector>
    "stan.print"(%v) <{kind = "print"}> : (!stan.array<1, !stan.row_vector>) -> ()
  }) : () -> ()
}) : () -> ()
