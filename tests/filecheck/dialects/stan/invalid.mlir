// RUN: stan-opt %s --split-input-file --verify-diagnostics
// What the verifiers reject. `!stan.real` and the rest come from a cast of nothing, so that each case is one op.

// expected-error@+1 {{is unknown, repeated or out of order}}
"stan.program"() <{sym_name = "p"}> ({
  "stan.block"() <{kind = "model"}> ({
  ^bb0:
  }) : () -> ()
  "stan.block"() <{kind = "data"}> ({
  ^bb0:
  }) : () -> ()
}) : () -> ()

// -----

// expected-error@+1 {{block arguments are (!stan.real), not (!stan.int)}}
"stan.func"() <{sym_name = "f", stan_name = "f", argument_names = ["x"], data_only = array<i8: 0>, function_type = (!stan.int) -> ()}> ({
^bb0(%x: !stan.real):
  "stan.return"() : () -> ()
}) : () -> ()

// -----

// expected-error@+3 {{returns (!stan.real), not (!stan.int)}}
"stan.func"() <{sym_name = "f", stan_name = "f", argument_names = ["x"], data_only = array<i8: 0>, function_type = (!stan.real) -> !stan.int}> ({
^bb0(%x: !stan.real):
  "stan.return"(%x) : (!stan.real) -> ()
}) : () -> ()

// -----

// expected-error@+1 {{1 arguments, 2 names, 1 marks}}
"stan.func"() <{sym_name = "f", stan_name = "f", argument_names = ["x", "y"], data_only = array<i8: 0>, function_type = (!stan.int) -> ()}> ({
}) : () -> ()

// -----

// expected-error@+1 {{a constant 1 : i32 has type !stan.int, not !stan.real}}
%c = "stan.constant"() <{value = 1 : i32}> : () -> !stan.real

// -----

%i, %r = "builtin.unrealized_conversion_cast"() : () -> (!stan.int, !stan.real)
// expected-error@+1 {{the int one needs a stan.promote}}
%x = "stan.add"(%i, %r) : (!stan.int, !stan.real) -> !stan.real

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{a comparison gives an int}}
%x = "stan.lt"(%r, %r) : (!stan.real, !stan.real) -> !stan.real

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{`%` is for ints}}
%x = "stan.mod"(%r, %r) : (!stan.real, !stan.real) -> !stan.real

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+2 {{cannot give !stan.int}}
%x = "stan.promote"(%i) : (!stan.int) -> !stan.real
%y = "stan.add"(%x, %x) : (!stan.real, !stan.real) -> !stan.int

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{!stan.real is not promoted to !stan.int}}
%x = "stan.promote"(%r) : (!stan.real) -> !stan.int

// -----

%v = "builtin.unrealized_conversion_cast"() : () -> !stan.array<1, !stan.int>
// expected-error@+1 {{is not promoted to}}
%x = "stan.promote"(%v) : (!stan.array<1, !stan.int>) -> !stan.array<2, !stan.real>

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{autodiff has 2 entries for 1 arguments}}
%x = "stan.call"(%r) <{callee = "exp", autodiff = array<i8: 1, 1>}> : (!stan.real) -> !stan.real

// -----

%v = "builtin.unrealized_conversion_cast"() : () -> !stan.var<!stan.real>
// expected-error@+1 {{a variable is read first}}
%x = "stan.call"(%v) <{callee = "exp", autodiff = array<i8: 1>}> : (!stan.var<!stan.real>) -> !stan.real

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{has no library definition}}
%x = "stan.call"(%r) <{callee = "f", autodiff = array<i8: 1>, user, definition = "g"}> : (!stan.real) -> !stan.real

// -----

%i, %r = "builtin.unrealized_conversion_cast"() : () -> (!stan.int, !stan.real)
// expected-error@+1 {{elements do not make !stan.array<1, !stan.real>}}
%x = "stan.array"(%i, %r) : (!stan.int, !stan.real) -> !stan.array<1, !stan.real>

// -----

%v = "builtin.unrealized_conversion_cast"() : () -> !stan.vector
// expected-error@+1 {{elements do not make !stan.matrix}}
%x = "stan.row_vector"(%v) : (!stan.vector) -> !stan.matrix

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{elements do not make !stan.tuple<[!stan.real]>}}
%x = "stan.tuple"(%i) : (!stan.int) -> !stan.tuple<[!stan.real]>

// -----

%t = "builtin.unrealized_conversion_cast"() : () -> !stan.tuple<[!stan.real]>
// expected-error@+1 {{a tuple of 1 has no field 2}}
%x = "stan.field"(%t) <{field = 2 : i64}> : (!stan.tuple<[!stan.real]>) -> !stan.real

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{only reals and containers of reals are added to the target}}
"stan.target_add"(%i) : (!stan.int) -> ()

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{kind is print, reject or fatal_error, not warn}}
"stan.print"(%i) <{kind = "warn"}> : (!stan.int) -> ()

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{1 sizes do not declare a none of type !stan.matrix}}
%m = "stan.declare"(%i) <{var_name = "m", constraint = "none", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!stan.int) -> !stan.var<!stan.matrix>

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{do not declare a simplex of type !stan.matrix}}
%m = "stan.parameter"(%i) <{var_name = "m", constraint = "simplex", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!stan.int) -> !stan.var<!stan.matrix>

// -----

// expected-error@+1 {{unknown constraint positive}}
%m = "stan.parameter"() <{var_name = "m", constraint = "positive", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real>

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{constraint none has no lower}}
%m = "stan.declare"(%r) <{var_name = "m", constraint = "none", operandSegmentSizes = array<i32: 0, 1, 0, 0, 0>}> : (!stan.real) -> !stan.var<!stan.real>

// -----

%r = "builtin.unrealized_conversion_cast"() : () -> !stan.real
// expected-error@+1 {{there is nothing to check}}
"stan.check"(%r) <{var_name = "m", constraint = "none", operandSegmentSizes = array<i32: 1, 0, 0>}> : (!stan.real) -> ()

// -----

%v = "builtin.unrealized_conversion_cast"() : () -> !stan.var<!stan.real>
// expected-error@+1 {{attribute !stan.real expected from variable}}
%x = "stan.read"(%v) : (!stan.var<!stan.real>) -> !stan.int

// -----

%m, %i = "builtin.unrealized_conversion_cast"() : () -> (!stan.matrix, !stan.int)
// expected-error@+1 {{the result is !stan.row_vector, not !stan.vector}}
%x = "stan.index"(%m, %i) <{kinds = ["single"]}> : (!stan.matrix, !stan.int) -> !stan.vector

// -----

%v, %i = "builtin.unrealized_conversion_cast"() : () -> (!stan.vector, !stan.int)
// expected-error@+1 {{indices of kinds ['between'] take operands of types}}
%x = "stan.index"(%v, %i) <{kinds = ["between"]}> : (!stan.vector, !stan.int) -> !stan.vector

// -----

%v, %i = "builtin.unrealized_conversion_cast"() : () -> (!stan.vector, !stan.int)
// expected-error@+1 {{unknown kind of index some}}
%x = "stan.index"(%v, %i) <{kinds = ["some"]}> : (!stan.vector, !stan.int) -> !stan.vector

// -----

%v, %i = "builtin.unrealized_conversion_cast"() : () -> (!stan.var<!stan.vector>, !stan.int)
// expected-error@+1 {{!stan.real is assigned here, not !stan.int}}
"stan.assign"(%v, %i, %i) <{kinds = ["single"]}> : (!stan.var<!stan.vector>, !stan.int, !stan.int) -> ()

// -----

%v, %i = "builtin.unrealized_conversion_cast"() : () -> (!stan.vector, !stan.int)
// expected-error@+1 {{attribute !stan.vector expected from variable}}
%x = "stan.assert_shape"(%v, %i) <{var_name = "x"}> : (!stan.vector, !stan.int) -> !stan.row_vector

// -----

%i, %r = "builtin.unrealized_conversion_cast"() : () -> (!stan.int, !stan.real)
// expected-error@+1 {{yields (!stan.real), not (!stan.int)}}
%x = "stan.if"(%i) ({
  "stan.yield"(%r) : (!stan.real) -> ()
}, {
  "stan.yield"(%i) : (!stan.int) -> ()
}) : (!stan.int) -> !stan.int

// -----

%i, %r = "builtin.unrealized_conversion_cast"() : () -> (!stan.int, !stan.real)
// expected-error@+1 {{types of initial values and results differ}}
%x = "stan.for"(%i, %i, %i) <{variable = "i"}> ({
^bb0(%k: !stan.int, %c: !stan.real):
  "stan.yield"(%c) : (!stan.real) -> ()
}) : (!stan.int, !stan.int, !stan.int) -> !stan.real

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{!stan.int has no elements to loop over}}
"stan.foreach"(%i) <{variable = "i"}> ({
^bb0(%k: !stan.int):
  "stan.yield"() : () -> ()
}) : (!stan.int) -> ()

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{the condition ends in a stan.condition that passes the carried values}}
"stan.while"() ({
  "stan.yield"() : () -> ()
}, {
  "stan.yield"() : () -> ()
}) : () -> ()

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
"stan.if"(%i) ({
  // expected-error@+1 {{stan.break is not inside stan.for or stan.foreach or stan.while}}
  "stan.break"() : () -> ()
}, {
  "stan.yield"() : () -> ()
}) : (!stan.int) -> ()

// -----

%i = "builtin.unrealized_conversion_cast"() : () -> !stan.int
// expected-error@+1 {{yields (), not (!stan.int)}}
%x = "stan.and"(%i) ({
  "stan.yield"() : () -> ()
}) : (!stan.int) -> !stan.int

// -----

// expected-error {{an array has at least one dimension, and elements that are no arrays}}
%x = "builtin.unrealized_conversion_cast"() : () -> !stan.array<1, !stan.array<1, !stan.int>>

// -----

// expected-error@+1 {{3 values do not fill the sizes [2, 2]}}
%x = "stan.literal"() <{values = array<f64: 1.0, 2.0, 3.0>, sizes = array<i64: 2, 2>}> : () -> !stan.matrix

// -----

// expected-error@+1 {{1 dimensions of f64 do not make !stan.matrix}}
%x = "stan.literal"() <{values = array<f64: 1.0, 2.0>, sizes = array<i64: 2>}> : () -> !stan.matrix

// -----

// expected-error@+1 {{1 dimensions of f64 do not make !stan.array<1, !stan.int>}}
%x = "stan.literal"() <{values = array<f64: 1.0, 2.0>, sizes = array<i64: 2>}> : () -> !stan.array<1, !stan.int>
