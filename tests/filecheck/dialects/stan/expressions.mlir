// RUN: stan-opt %s | stan-opt | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Every operator and expression op, and the ops that have effects.

"stan.program"() <{sym_name = "expressions"}> ({
  stan.func @report(n: !stan.int)
  "stan.func"() <{sym_name = "f", stan_name = "f", argument_names = ["i", "x", "v", "m", "t"], data_only = array<i8: 0, 0, 0, 0, 0>,
    function_type = (!stan.int, !stan.real, !stan.vector, !stan.matrix, !stan.tuple<[!stan.int, !stan.real]>) -> ()}> ({
  ^bb0(%i: !stan.int, %x: !stan.real, %v: !stan.vector, %m: !stan.matrix, %t: !stan.tuple<[!stan.int, !stan.real]>):
    %text = "stan.constant"() <{value = "x ="}> : () -> !stan.string
    %half = "stan.constant"() <{value = 5.000000e-01 : f64}> : () -> !stan.real
    %sum = "stan.add"(%x, %half) : (!stan.real, !stan.real) -> !stan.real
    %difference = "stan.sub"(%sum, %x) : (!stan.real, !stan.real) -> !stan.real
    "stan.print"(%text, %difference) <{kind = "print"}> : (!stan.string, !stan.real) -> ()
    %p = "stan.promote"(%i) : (!stan.int) -> !stan.real
    %product = "stan.mul"(%p, %v) : (!stan.real, !stan.vector) -> !stan.vector
    %quotient = "stan.elt_div"(%product, %v) : (!stan.vector, !stan.vector) -> !stan.vector
    %elementwise = "stan.elt_mul"(%quotient, %v) : (!stan.vector, !stan.vector) -> !stan.vector
    %solved = "stan.left_div"(%m, %elementwise) : (!stan.matrix, !stan.vector) -> !stan.vector
    "stan.print"(%solved) <{kind = "print"}> : (!stan.vector) -> ()
    %rest = "stan.mod"(%i, %i) : (!stan.int, !stan.int) -> !stan.int
    %whole = "stan.int_div"(%rest, %i) : (!stan.int, !stan.int) -> !stan.int
    %minus = "stan.neg"(%whole) : (!stan.int) -> !stan.int
    %plus = "stan.plus"(%minus) : (!stan.int) -> !stan.int
    %not = "stan.not"(%plus) : (!stan.int) -> !stan.int
    "stan.print"(%not) <{kind = "print"}> : (!stan.int) -> ()
    %square = "stan.pow"(%x, %x) : (!stan.real, !stan.real) -> !stan.real
    %ratio = "stan.div"(%square, %x) : (!stan.real, !stan.real) -> !stan.real
    %entries = "stan.elt_pow"(%v, %ratio) : (!stan.vector, !stan.real) -> !stan.vector
    %row = "stan.transpose"(%entries) : (!stan.vector) -> !stan.row_vector
    "stan.print"(%row) <{kind = "print"}> : (!stan.row_vector) -> ()
    %eq = "stan.eq"(%i, %i) : (!stan.int, !stan.int) -> !stan.int
    %ne = "stan.ne"(%eq, %i) : (!stan.int, !stan.int) -> !stan.int
    %lt = "stan.lt"(%ne, %i) : (!stan.int, !stan.int) -> !stan.int
    %le = "stan.le"(%lt, %i) : (!stan.int, !stan.int) -> !stan.int
    %gt = "stan.gt"(%le, %i) : (!stan.int, !stan.int) -> !stan.int
    %ge = "stan.ge"(%gt, %i) : (!stan.int, !stan.int) -> !stan.int
    "stan.print"(%ge) <{kind = "print"}> : (!stan.int) -> ()
    %pair = "stan.array"(%x, %x) : (!stan.real, !stan.real) -> !stan.array<1, !stan.real>
    "stan.print"(%pair) <{kind = "print"}> : (!stan.array<1, !stan.real>) -> ()
    %literal = "stan.row_vector"(%x, %x) : (!stan.real, !stan.real) -> !stan.row_vector
    %matrix = "stan.row_vector"(%literal) : (!stan.row_vector) -> !stan.matrix
    "stan.print"(%matrix) <{kind = "print"}> : (!stan.matrix) -> ()
    %tuple = "stan.tuple"(%i, %x) : (!stan.int, !stan.real) -> !stan.tuple<[!stan.int, !stan.real]>
    "stan.print"(%tuple) <{kind = "print"}> : (!stan.tuple<[!stan.int, !stan.real]>) -> ()
    %field = "stan.field"(%t) <{field = 2 : i64}> : (!stan.tuple<[!stan.int, !stan.real]>) -> !stan.real
    "stan.target_add"(%field) : (!stan.real) -> ()
    %two = "stan.constant"() <{value = 2.000000e+00 : f64}> : () -> !stan.real
    %density = "stan.call"(%x, %x, %two) <{callee = "normal_lpdf", autodiff = array<i8: 1, 1, 0>, unnormalized}> : (!stan.real, !stan.real, !stan.real) -> !stan.real
    "stan.target_add"(%density) <{tilde}> : (!stan.real) -> ()
    %now = "stan.target"() : () -> !stan.real
    "stan.jacobian_add"(%now) : (!stan.real) -> ()
    "stan.call"(%i) <{callee = "report", autodiff = array<i8: 0>, user}> : (!stan.int) -> ()
    "stan.print"(%i) <{kind = "reject"}> : (!stan.int) -> ()
    "stan.print"(%i) <{kind = "fatal_error"}> : (!stan.int) -> ()
    "stan.return"() : () -> ()
  }) : () -> ()
}) : () -> ()

// CHECK:      builtin.module {
// CHECK-NEXT:   stan.program @expressions {
// CHECK-NEXT:     stan.func @report(n: !stan.int)
// CHECK-NEXT:     stan.func @f(i %i: !stan.int, x %x: !stan.real, v %v: !stan.vector, m %m: !stan.matrix, t %t: !stan.tuple<[!stan.int, !stan.real]>) {
// CHECK-NEXT:       %text = stan.constant "x ="
// CHECK-NEXT:       %half = stan.constant 5.000000e-01 : f64
// CHECK-NEXT:       %sum = stan.add %x, %half : !stan.real
// CHECK-NEXT:       %difference = stan.sub %sum, %x : !stan.real
// CHECK-NEXT:       stan.print print(%text, %difference : !stan.string, !stan.real)
// CHECK-NEXT:       %p = stan.promote %i : (!stan.int) -> !stan.real
// CHECK-NEXT:       %product = stan.mul %p, %v : (!stan.real, !stan.vector) -> !stan.vector
// CHECK-NEXT:       %quotient = stan.elt_div %product, %v : !stan.vector
// CHECK-NEXT:       %elementwise = stan.elt_mul %quotient, %v : !stan.vector
// CHECK-NEXT:       %solved = stan.left_div %m, %elementwise : (!stan.matrix, !stan.vector) -> !stan.vector
// CHECK-NEXT:       stan.print print(%solved : !stan.vector)
// CHECK-NEXT:       %rest = stan.mod %i, %i : !stan.int
// CHECK-NEXT:       %whole = stan.int_div %rest, %i : !stan.int
// CHECK-NEXT:       %minus = stan.neg %whole : !stan.int
// CHECK-NEXT:       %plus = stan.plus %minus : !stan.int
// CHECK-NEXT:       %not = stan.not %plus : !stan.int
// CHECK-NEXT:       stan.print print(%not : !stan.int)
// CHECK-NEXT:       %square = stan.pow %x, %x : !stan.real
// CHECK-NEXT:       %ratio = stan.div %square, %x : !stan.real
// CHECK-NEXT:       %entries = stan.elt_pow %v, %ratio : (!stan.vector, !stan.real) -> !stan.vector
// CHECK-NEXT:       %row = stan.transpose %entries : (!stan.vector) -> !stan.row_vector
// CHECK-NEXT:       stan.print print(%row : !stan.row_vector)
// CHECK-NEXT:       %eq = stan.eq %i, %i : !stan.int
// CHECK-NEXT:       %ne = stan.ne %eq, %i : !stan.int
// CHECK-NEXT:       %lt = stan.lt %ne, %i : !stan.int
// CHECK-NEXT:       %le = stan.le %lt, %i : !stan.int
// CHECK-NEXT:       %gt = stan.gt %le, %i : !stan.int
// CHECK-NEXT:       %ge = stan.ge %gt, %i : !stan.int
// CHECK-NEXT:       stan.print print(%ge : !stan.int)
// CHECK-NEXT:       %pair = stan.array %x, %x : (!stan.real, !stan.real) -> !stan.array<1, !stan.real>
// CHECK-NEXT:       stan.print print(%pair : !stan.array<1, !stan.real>)
// CHECK-NEXT:       %literal = stan.row_vector %x, %x : (!stan.real, !stan.real) -> !stan.row_vector
// CHECK-NEXT:       %matrix = stan.row_vector %literal : (!stan.row_vector) -> !stan.matrix
// CHECK-NEXT:       stan.print print(%matrix : !stan.matrix)
// CHECK-NEXT:       %tuple = stan.tuple %i, %x : (!stan.int, !stan.real) -> !stan.tuple<[!stan.int, !stan.real]>
// CHECK-NEXT:       stan.print print(%tuple : !stan.tuple<[!stan.int, !stan.real]>)
// CHECK-NEXT:       %field = stan.field 2 of %t : (!stan.tuple<[!stan.int, !stan.real]>) -> !stan.real
// CHECK-NEXT:       stan.target_add %field : !stan.real
// CHECK-NEXT:       %two = stan.constant 2.000000e+00 : f64
// CHECK-NEXT:       %density = stan.call normal_lpdf(%x, %x, %two) unnormalized autodiff [1, 1, 0] : (!stan.real, !stan.real, !stan.real) -> !stan.real
// CHECK-NEXT:       stan.target_add tilde %density : !stan.real
// CHECK-NEXT:       %now = stan.target
// CHECK-NEXT:       stan.jacobian_add %now : !stan.real
// CHECK-NEXT:       stan.call report(%i) user autodiff [0] : (!stan.int) -> ()
// CHECK-NEXT:       stan.print reject(%i : !stan.int)
// CHECK-NEXT:       stan.print fatal_error(%i : !stan.int)
// CHECK-NEXT:       stan.return
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }

// TEXT:      print("x =", x + 0.5 - x);
// TEXT-NEXT: print(m \ (i * v ./ v .* v));
// TEXT-NEXT: print(!(+(-((i % i) %/% i))));
// TEXT-NEXT: print((v.^(x^x / x))');
// TEXT-NEXT: print((i == i != i) < i <= i > i >= i);
// TEXT-NEXT: print({x, x});
// TEXT-NEXT: print({{\[\[}}x, x{{\]\]}});
// TEXT-NEXT: print((i, x));
// TEXT-NEXT: target += t.2;
// TEXT-NEXT: x ~ normal(x, 2);
// TEXT-NEXT: jacobian += target();
// TEXT-NEXT: report(i);
// TEXT-NEXT: reject(i);
// TEXT-NEXT: fatal_error(i);
