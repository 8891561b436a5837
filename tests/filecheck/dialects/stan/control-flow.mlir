// RUN: stan-opt %s | stan-opt | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Control flow in both forms: with variables, break and return; and with carried values.

"stan.program"() <{sym_name = "control_flow"}> ({
  "stan.func"() <{sym_name = "variables", stan_name = "variables", argument_names = ["n", "xs"], data_only = array<i8: 0, 0>,
    function_type = (!stan.int, !stan.array<1, !stan.real>) -> !stan.real}> ({
  ^bb0(%n: !stan.int, %xs: !stan.array<1, !stan.real>):
    %one = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
    "stan.for"(%one, %n) <{variable = "i"}> ({
    ^bb1(%i: !stan.int):
      %two = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
      %c = "stan.lt"(%i, %two) : (!stan.int, !stan.int) -> !stan.int
      "stan.if"(%c) ({
        "stan.continue"() : () -> ()
      }, {
        "stan.yield"() : () -> ()
      }) : (!stan.int) -> ()
      "stan.break"() : () -> ()
    }) : (!stan.int, !stan.int) -> ()
    "stan.foreach"(%xs) <{variable = "x"}> ({
    ^bb2(%x: !stan.real):
      %zero = "stan.constant"() <{value = 0.0 : f64}> : () -> !stan.real
      %positive = "stan.gt"(%x, %zero) : (!stan.real, !stan.real) -> !stan.int
      %both = "stan.and"(%positive) ({
        %two = "stan.constant"() <{value = 2 : i32}> : () -> !stan.int
        %large = "stan.gt"(%n, %two) : (!stan.int, !stan.int) -> !stan.int
        %either = "stan.or"(%large) ({
          "stan.yield"(%n) : (!stan.int) -> ()
        }) : (!stan.int) -> !stan.int
        "stan.yield"(%either) : (!stan.int) -> ()
      }) : (!stan.int) -> !stan.int
      "stan.if"(%both) ({
        "stan.return"(%x) : (!stan.real) -> ()
      }, {
        "stan.yield"() : () -> ()
      }) : (!stan.int) -> ()
      "stan.yield"() : () -> ()
    }) : (!stan.array<1, !stan.real>) -> ()
    "stan.profile"() <{profile_name = "work"}> ({
      "stan.scope"() ({
        "stan.while"() ({
          "stan.condition"(%n) : (!stan.int) -> ()
        }, {
          "stan.yield"() : () -> ()
        }) : () -> ()
        "stan.yield"() : () -> ()
      }) : () -> ()
      "stan.yield"() : () -> ()
    }) : () -> ()
    %r = "stan.select"(%n) ({
      %a = "stan.constant"() <{value = 1.5 : f64}> : () -> !stan.real
      "stan.yield"(%a) : (!stan.real) -> ()
    }, {
      %b = "stan.constant"() <{value = 2.5 : f64}> : () -> !stan.real
      "stan.yield"(%b) : (!stan.real) -> ()
    }) : (!stan.int) -> !stan.real
    "stan.return"(%r) : (!stan.real) -> ()
  }) : () -> ()

  "stan.func"() <{sym_name = "values", stan_name = "values", argument_names = ["n"], data_only = array<i8: 0>,
    function_type = (!stan.int) -> !stan.int}> ({
  ^bb0(%n: !stan.int):
    %a0 = "stan.constant"() <{value = 0 : i32}> : () -> !stan.int
    %b0 = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
    %one = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
    %a, %b = "stan.for"(%one, %n, %a0, %b0) <{variable = "i"}> ({
    ^bb0(%i: !stan.int, %x: !stan.int, %y: !stan.int):
      %next = "stan.add"(%x, %y) : (!stan.int, !stan.int) -> !stan.int
      "stan.yield"(%y, %next) : (!stan.int, !stan.int) -> ()
    }) : (!stan.int, !stan.int, !stan.int, !stan.int) -> (!stan.int, !stan.int)
    %k = "stan.while"(%a) ({
    ^bb0(%x: !stan.int):
      %c = "stan.lt"(%x, %b) : (!stan.int, !stan.int) -> !stan.int
      "stan.condition"(%c, %x) : (!stan.int, !stan.int) -> ()
    }, {
    ^bb0(%x: !stan.int):
      %twice = "stan.add"(%x, %x) : (!stan.int, !stan.int) -> !stan.int
      "stan.yield"(%twice) : (!stan.int) -> ()
    }) : (!stan.int) -> !stan.int
    %m = "stan.if"(%k) ({
      "stan.yield"(%a) : (!stan.int) -> ()
    }, {
      "stan.yield"(%k) : (!stan.int) -> ()
    }) : (!stan.int) -> !stan.int
    "stan.return"(%m) : (!stan.int) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @control_flow {
// CHECK-NEXT:     stan.func @variables(n %n: !stan.int, xs %xs: !stan.array<1, !stan.real>) -> (!stan.real) {
// CHECK-NEXT:       %one = stan.constant 1 : i32
// CHECK-NEXT:       stan.for %i = %one to %n {
// CHECK-NEXT:         %two = stan.constant 2 : i32
// CHECK-NEXT:         %c = stan.lt %i, %two : !stan.int
// CHECK-NEXT:         stan.if %c {
// CHECK-NEXT:           stan.continue
// CHECK-NEXT:         }
// CHECK-NEXT:         stan.break
// CHECK-NEXT:       }
// CHECK-NEXT:       stan.foreach %x in %xs : !stan.array<1, !stan.real> {
// CHECK-NEXT:         %zero = stan.constant 0.000000e+00 : f64
// CHECK-NEXT:         %positive = stan.gt %x, %zero : (!stan.real, !stan.real) -> !stan.int
// CHECK-NEXT:         %both = stan.and %positive {
// CHECK-NEXT:           %two_1 = stan.constant 2 : i32
// CHECK-NEXT:           %large = stan.gt %n, %two_1 : !stan.int
// CHECK-NEXT:           %either = stan.or %large {
// CHECK-NEXT:             stan.yield %n : !stan.int
// CHECK-NEXT:           }
// CHECK-NEXT:           stan.yield %either : !stan.int
// CHECK-NEXT:         }
// CHECK-NEXT:         stan.if %both {
// CHECK-NEXT:           stan.return %x : !stan.real
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       stan.profile work {
// CHECK-NEXT:         stan.scope {
// CHECK-NEXT:           stan.while {
// CHECK-NEXT:             stan.condition %n
// CHECK-NEXT:           } do {
// CHECK-NEXT:           }
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       %r = stan.select %n -> (!stan.real) {
// CHECK-NEXT:         %a = stan.constant 1.500000e+00 : f64
// CHECK-NEXT:         stan.yield %a : !stan.real
// CHECK-NEXT:       } else {
// CHECK-NEXT:         %b = stan.constant 2.500000e+00 : f64
// CHECK-NEXT:         stan.yield %b : !stan.real
// CHECK-NEXT:       }
// CHECK-NEXT:       stan.return %r : !stan.real
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.func @values(n %n: !stan.int) -> (!stan.int) {
// CHECK-NEXT:       %a0 = stan.constant 0 : i32
// CHECK-NEXT:       %b0 = stan.constant 1 : i32
// CHECK-NEXT:       %one = stan.constant 1 : i32
// CHECK-NEXT:       %a, %b = stan.for %i = %one to %n iter_args(%x = %a0 : !stan.int, %y = %b0 : !stan.int) {
// CHECK-NEXT:         %next = stan.add %x, %y : !stan.int
// CHECK-NEXT:         stan.yield %y, %next : !stan.int, !stan.int
// CHECK-NEXT:       }
// CHECK-NEXT:       %k = stan.while iter_args(%x_1 = %a : !stan.int) {
// CHECK-NEXT:         %c = stan.lt %x_1, %b : !stan.int
// CHECK-NEXT:         stan.condition %c, %x_1 : !stan.int
// CHECK-NEXT:       } do (%x_2: !stan.int) {
// CHECK-NEXT:         %twice = stan.add %x_2, %x_2 : !stan.int
// CHECK-NEXT:         stan.yield %twice : !stan.int
// CHECK-NEXT:       }
// CHECK-NEXT:       %m = stan.if %k -> (!stan.int) {
// CHECK-NEXT:         stan.yield %a : !stan.int
// CHECK-NEXT:       } else {
// CHECK-NEXT:         stan.yield %k : !stan.int
// CHECK-NEXT:       }
// CHECK-NEXT:       stan.return %m : !stan.int
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

// TEXT:      real variables(int n, array[] real xs) {
// TEXT-NEXT:   for (i in 1:n) {
// TEXT-NEXT:     if (i < 2) {
// TEXT-NEXT:       continue;
// TEXT-NEXT:     }
// TEXT-NEXT:     break;
// TEXT-NEXT:   }
// TEXT-NEXT:   for (x in xs) {
// TEXT-NEXT:     if (x > 0 && (n > 2 || n)) {
// TEXT-NEXT:       return x;
// TEXT-NEXT:     }
// TEXT-NEXT:   }
// TEXT-NEXT:   profile("work") {
// TEXT-NEXT:     {
// TEXT-NEXT:       while (n) {
// TEXT-NEXT:       }
// TEXT-NEXT:     }
// TEXT-NEXT:   }
// TEXT-NEXT:   return n ? 1.5 : 2.5;
// TEXT-NEXT: }
// TEXT-NEXT: int values(int n) {
// TEXT-NEXT:   int a = 0;
// TEXT-NEXT:   int b = 1;
// TEXT-NEXT:   for (i in 1:n) {
// TEXT-NEXT:     int b_next = a + b;
// TEXT-NEXT:     a = b;
// TEXT-NEXT:     b = b_next;
// TEXT-NEXT:   }
// TEXT-NEXT:   int k = a;
// TEXT-NEXT:   while (k < b) {
// TEXT-NEXT:     k = k + k;
// TEXT-NEXT:   }
// TEXT-NEXT:   int m;
// TEXT-NEXT:   if (k) {
// TEXT-NEXT:     m = a;
// TEXT-NEXT:   } else {
// TEXT-NEXT:     m = k;
// TEXT-NEXT:   }
// TEXT-NEXT:   return m;
// TEXT-NEXT: }
