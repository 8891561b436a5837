// RUN: stan-opt %s | stan-opt | filecheck %s
// Every type of the dialect, through a round trip.

"stan.program"() <{sym_name = "types"}> ({
  "stan.func"() <{sym_name = "f", stan_name = "f", argument_names = ["i", "r", "c", "v", "w", "m", "cv", "cw", "cm", "a", "aa", "t"],
    data_only = array<i8: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
    function_type = (!stan.int, !stan.real, !stan.complex, !stan.vector, !stan.row_vector, !stan.matrix,
      !stan.complex_vector, !stan.complex_row_vector, !stan.complex_matrix,
      !stan.array<1, !stan.int>, !stan.array<2, !stan.matrix>, !stan.tuple<[!stan.int, !stan.array<1, !stan.real>]>) -> ()}> ({
  }) : () -> ()
}) : () -> ()

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @types {
// CHECK-NEXT:     stan.func @f(i: !stan.int, r: !stan.real, c: !stan.complex, v: !stan.vector, w: !stan.row_vector, m: !stan.matrix, cv: !stan.complex_vector, cw: !stan.complex_row_vector, cm: !stan.complex_matrix, a: !stan.array<1, !stan.int>, aa: !stan.array<2, !stan.matrix>, t: !stan.tuple<[!stan.int, !stan.array<1, !stan.real>]>)
// CHECK-NEXT:   }
// CHECK-NEXT: }
