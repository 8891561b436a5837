// RUN: stan-opt %s | stan-opt | filecheck %s
// A program with each kind of block; functions with and without result, of the program and of the library.

"stan.program"() <{sym_name = "all_blocks"}> ({
  "stan.func"() <{sym_name = "half", stan_name = "half", argument_names = ["x"], data_only = array<i8: 1>,
                  function_type = (!stan.real) -> !stan.real, library}> ({
  ^bb0(%x: !stan.real):
    %two = "stan.constant"() <{value = 2.0 : f64}> : () -> !stan.real
    %h = "stan.div"(%x, %two) : (!stan.real, !stan.real) -> !stan.real
    "stan.return"(%h) : (!stan.real) -> ()
  }) : () -> ()
  "stan.func"() <{sym_name = "hello", stan_name = "hello", argument_names = [], data_only = array<i8>,
                  function_type = () -> ()}> ({
    "stan.return"() : () -> ()
  }) : () -> ()
  "stan.block"() <{kind = "data"}> ({
  ^bb0:
  }) : () -> ()
  "stan.block"() <{kind = "transformed_data"}> ({
  ^bb0:
  }) : () -> ()
  "stan.block"() <{kind = "parameters"}> ({
  ^bb0:
  }) : () -> ()
  "stan.block"() <{kind = "transformed_parameters"}> ({
  ^bb0:
  }) : () -> ()
  "stan.block"() <{kind = "model"}> ({
  ^bb0:
  }) : () -> ()
  "stan.block"() <{kind = "generated_quantities"}> ({
  ^bb0:
  }) : () -> ()
}) : () -> ()

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @all_blocks {
// CHECK-NEXT:     stan.func @half(data x %x: !stan.real) -> (!stan.real) library {
// CHECK-NEXT:       %two = stan.constant 2.000000e+00 : f64
// CHECK-NEXT:       %h = stan.div %x, %two : !stan.real
// CHECK-NEXT:       stan.return %h : !stan.real
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.func @hello() {
// CHECK-NEXT:       stan.return
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block data {
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block transformed_data {
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block parameters {
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block transformed_parameters {
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block model {
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.block generated_quantities {
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
