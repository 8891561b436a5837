// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Functions: overloads, forward declarations, recursion, exits; what follows an exit is dropped.

functions {
  real f(real x);
  int f(int n) {
    if (n > 1) {
      return n * f(n - 1);
    } else {
      return 1;
      print("never");
    }
  }
  real f(real x) {
    for (i in 1:3) {
      if (i > x) break;
      else continue;
    }
    return x;
  }
  void g(data vector v) {
    print("v = ", v);
  }
  real h(int n) {
    while (n) return 1;
  }
  real k(int n) {
    if (n) return 1;
    reject("n is ", n);
  }
}
transformed data {
  real x = f(2);
  real y = f(2.5);
  g([x, y]');
}

// CHECK:      "stan.func"() <{sym_name = "f", stan_name = "f", function_type = (!stan.int) -> !stan.int, argument_names = ["n"], data_only = array<i8: 0>}> ({
// CHECK:        "stan.if"(%{{.*}}) ({
// CHECK:          %[[R:.*]] = "stan.call"(%{{.*}}) <{autodiff = array<i8: 0>, callee = "f", user}> : (!stan.int) -> !stan.int
// CHECK:          "stan.return"
// CHECK-NEXT:   }, {
// CHECK-NEXT:     "stan.yield"() : () -> ()
// CHECK-NEXT:   }) : (!stan.int) -> ()
// CHECK-NEXT:   %[[ONE:.*]] = "stan.constant"() <{value = 1 : i32}>
// CHECK-NEXT:   "stan.return"(%[[ONE]]) : (!stan.int) -> ()
// CHECK-NEXT: }) : () -> ()
// CHECK-NEXT: "stan.func"() <{sym_name = "f.1", stan_name = "f",
// CHECK:          "stan.if"(%{{.*}}) ({
// CHECK-NEXT:       "stan.break"() : () -> ()
// CHECK-NEXT:     }, {
// CHECK-NEXT:       "stan.yield"() : () -> ()
// CHECK-NEXT:     }) : (!stan.int) -> ()
// CHECK-NEXT:     "stan.continue"() : () -> ()
// CHECK:      "stan.func"() <{sym_name = "g", stan_name = "g", function_type = (!stan.vector) -> (), argument_names = ["v"], data_only = array<i8: 1>}> ({
// CHECK:        "stan.return"() : () -> ()
// CHECK:      "stan.func"() <{sym_name = "h"
// CHECK:        "stan.print"({{.*}}) <{kind = "fatal_error"}>
// CHECK-NEXT:   %[[U:.*]] = "stan.uninitialized"() : () -> !stan.real
// CHECK-NEXT:   "stan.return"(%[[U]]) : (!stan.real) -> ()
// CHECK:      "stan.func"() <{sym_name = "k"
// CHECK:        "stan.print"({{.*}}) <{kind = "reject"}>
// CHECK-NEXT:   %[[U:.*]] = "stan.uninitialized"() : () -> !stan.real
// CHECK-NEXT:   "stan.return"(%[[U]]) : (!stan.real) -> ()
// CHECK:      "stan.block"() <{kind = "transformed_data"}> ({
// CHECK:        "stan.call"(%{{.*}}) <{autodiff = array<i8: 0>, callee = "f", user}> : (!stan.int) -> !stan.int
// CHECK:        "stan.call"(%{{.*}}) <{autodiff = array<i8: 0>, callee = "f.1", user}> : (!stan.real) -> !stan.real
// CHECK:        "stan.call"(%{{.*}}) <{autodiff = array<i8: 0>, callee = "g", user}> : (!stan.vector) -> ()

// TEXT:      int f(int n) {
// TEXT-NEXT:   if (n > 1) {
// TEXT-NEXT:     return n * f(n - 1);
// TEXT-NEXT:   }
// TEXT-NEXT:   return 1;
// TEXT-NEXT: }
// TEXT:      real x = f(2);
// TEXT-NEXT: real y = f(2.5);
// TEXT-NEXT: g([x, y]');
