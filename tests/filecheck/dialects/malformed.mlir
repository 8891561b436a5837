// RUN: stan-opt %s --split-input-file --verify-diagnostics
// Modules that break one rule each: all are refused, at the op that breaks it.

// unknown type
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{'stan.reel' is not registered}}
%x = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.reel }) : () -> () }) : () -> ()

// -----

// constant int typed real
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{a constant 1 : i32 has type !stan.int, not !stan.real}}
%x = "stan.constant"() <{value = 1 : i32}> : () -> !stan.real }) : () -> () }) : () -> ()

// -----

// add int+vector -> real
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
%v = "stan.row_vector"(%one) : (!stan.real) -> !stan.row_vector
// expected-error@below {{`+` of !stan.real, !stan.row_vector gives a !stan.row_vector, not a !stan.real}}
%z = "stan.add"(%one, %v) : (!stan.real, !stan.row_vector) -> !stan.real }) : () -> () }) : () -> ()

// -----

// mul row_vector*row_vector
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
%v = "stan.row_vector"(%one) : (!stan.real) -> !stan.row_vector
// expected-error@below {{there is no operator `*` for !stan.row_vector, !stan.row_vector}}
%z = "stan.mul"(%v, %v) : (!stan.row_vector, !stan.row_vector) -> !stan.real }) : () -> () }) : () -> ()

// -----

// target_add of int
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%i = "stan.constant"() <{value = 1 : i32}> : () -> !stan.int
// expected-error@below {{only reals and containers of reals are added to the target, not !stan.int}}
"stan.target_add"(%i) : (!stan.int) -> () }) : () -> () }) : () -> ()

// -----

// unknown block kind
"stan.program"() <{sym_name = "m"}> ({
// expected-error@below {{Region 'body' at position 0 expected a single block, but got 0 blocks}}
"stan.block"() <{kind = "modell"}> ({ }) : () -> () }) : () -> ()

// -----

// two model blocks
"stan.program"() <{sym_name = "m"}> ({
// expected-error@below {{Region 'body' at position 0 expected a single block, but got 0 blocks}}
"stan.block"() <{kind = "model"}> ({ }) : () -> ()
"stan.block"() <{kind = "model"}> ({ }) : () -> () }) : () -> ()

// -----

// blocks out of order
"stan.program"() <{sym_name = "m"}> ({
// expected-error@below {{Region 'body' at position 0 expected a single block, but got 0 blocks}}
"stan.block"() <{kind = "model"}> ({ }) : () -> ()
"stan.block"() <{kind = "data"}> ({ }) : () -> () }) : () -> ()

// -----

// use before def
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{operand 0 of stan.neg is used before its definition: %q, result of stan.constant}}
%z = "stan.neg"(%q) : (!stan.real) -> !stan.real
%q = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real  }) : () -> () }) : () -> ()

// -----

// call of unknown function
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{the library has no function 'nosuch'}}
%z = "stan.call"(%one) <{autodiff = array<i8: 0>, callee = "nosuch"}> : (!stan.real) -> !stan.real }) : () -> () }) : () -> ()

// -----

// call user function that is missing
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{the program has no function 'f'}}
%z = "stan.call"(%one) <{autodiff = array<i8: 0>, callee = "f", user}> : (!stan.real) -> !stan.real }) : () -> () }) : () -> ()

// -----

// call: autodiff of wrong length
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{autodiff has 2 entries for 1 arguments}}
%z = "stan.call"(%one) <{autodiff = array<i8: 0, 1>, callee = "square"}> : (!stan.real) -> !stan.real }) : () -> () }) : () -> ()

// -----

// call: wrong result type
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{'square' of (!stan.real) gives a !stan.real}}
%z = "stan.call"(%one) <{autodiff = array<i8: 0>, callee = "square"}> : (!stan.real) -> !stan.vector }) : () -> () }) : () -> ()

// -----

// assign real to int var
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
%k = "stan.declare"() <{var_name = "k", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.int>
// expected-error@below {{!stan.int is assigned here, not !stan.real}}
"stan.assign"(%k, %one) <{kinds = []}> : (!stan.var<!stan.int>, !stan.real) -> () }) : () -> () }) : () -> ()

// -----

// read type differs
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%k = "stan.declare"() <{var_name = "k", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.int>
// expected-error@below {{result 'res' at position 0 does not verify:}}
%r = "stan.read"(%k) : (!stan.var<!stan.int>) -> !stan.real }) : () -> () }) : () -> ()

// -----

// vector declared without size
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{a !stan.vector without sizes takes those of what is assigned, but nothing is}}
%k = "stan.declare"() <{var_name = "k", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.vector> }) : () -> () }) : () -> ()

// -----

// vector declared without size that is only read
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{a !stan.vector without sizes takes those of what is assigned, but nothing is}}
%k = "stan.declare"() <{var_name = "k", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.vector>
%v = "stan.read"(%k) : (!stan.var<!stan.vector>) -> !stan.vector }) : () -> () }) : () -> ()

// -----

// unknown constraint
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{unknown constraint spiky}}
%k = "stan.declare"() <{var_name = "k", constraint = "spiky", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> }) : () -> () }) : () -> ()

// -----

// break outside of a loop
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{stan.break is not inside stan.for or stan.foreach or stan.while}}
"stan.break"() : () -> () }) : () -> () }) : () -> ()

// -----

// return outside a function
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{stan.return is not inside stan.func}}
"stan.return"(%one) : (!stan.real) -> () }) : () -> () }) : () -> ()

// -----

// global of undeclared variable
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{no block before this one declares a global variable 'zz'}}
%g = "stan.global"() <{var_name = "zz"}> : () -> !stan.var<!stan.real> }) : () -> () }) : () -> ()

// -----

// global of another type
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "parameters"}> ({
%x = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> }) : () -> ()
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{'x' is a !stan.real, not a !stan.int}}
%x = "stan.global"() <{var_name = "x"}> : () -> !stan.var<!stan.int> }) : () -> () }) : () -> ()

// -----

// parameter in model block
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{a parameter is declared in the block model}}
%x = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> }) : () -> () }) : () -> ()

// -----

// target_add in transformed data
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "transformed_data"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{the target is not there in the block transformed_data}}
"stan.target_add"(%one) : (!stan.real) -> () }) : () -> () }) : () -> ()

// -----

// for with real bounds
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{operand 'lower' at position 0 does not verify:}}
"stan.for"(%one, %one) <{variable = "i"}> ({ ^bb0(%a: !stan.int): }) : (!stan.real, !stan.real) -> () }) : () -> () }) : () -> ()

// -----

// func: argument names of wrong length
"stan.program"() <{sym_name = "m"}> ({
// expected-error@below {{1 arguments, 2 names, 1 marks}}
"stan.func"() <{sym_name = "f", stan_name = "f", function_type = (!stan.real) -> !stan.real, argument_names = ["x", "y"], data_only = array<i8: 0>}> ({ ^bb0(%x: !stan.real):
"stan.return"(%x) : (!stan.real) -> () }) : () -> () }) : () -> ()

// -----

// func: no return
"stan.program"() <{sym_name = "m"}> ({
// expected-error@below {{the body ends in stan.return}}
"stan.func"() <{sym_name = "f", stan_name = "f", function_type = (!stan.real) -> !stan.real, argument_names = ["x"], data_only = array<i8: 0>}> ({ ^bb0(%x: !stan.real): }) : () -> () }) : () -> ()

// -----

// stan.block outside of a program
// expected-error@below {{Region 'body' at position 0 expected a single block, but got 0 blocks}}
"stan.block"() <{kind = "model"}> ({ }) : () -> ()

// -----

// rt.load of f64
"func.func"() <{sym_name="f", function_type=(f64,i64)->()}> ({ ^bb0(%a: f64, %i: i64):
// expected-error@below {{operand 'buffer' at position 0 does not verify:}}
%z = "rt.load"(%a, %i) : (f64, i64) -> f64
"func.return"() : () -> () }) : () -> ()

// -----

// rt.load element type
"func.func"() <{sym_name="f", function_type=(!rt.buf<f64>,i64)->()}> ({ ^bb0(%a: !rt.buf<f64>, %i: i64):
// expected-error@below {{result 'res' at position 0 does not verify:}}
%z = "rt.load"(%a, %i) : (!rt.buf<f64>, i64) -> i64
"func.return"() : () -> () }) : () -> ()

// -----

// rt.math unknown function
"func.func"() <{sym_name="f", function_type=(f64)->()}> ({ ^bb0(%a: f64):
// expected-error@below {{there is no primitive 'foo'}}
%z = "rt.math"(%a) <{function = "foo"}> : (f64) -> f64
"func.return"() : () -> () }) : () -> ()

// -----

// rt.math arity
"func.func"() <{sym_name="f", function_type=(f64)->()}> ({ ^bb0(%a: f64):
// expected-error@below {{'exp' takes 1 arguments, not 2}}
%z = "rt.math"(%a, %a) <{function = "exp"}> : (f64, f64) -> f64
"func.return"() : () -> () }) : () -> ()

// -----

// unknown block kind
// expected-error@below {{block modell is unknown, repeated or out of order}}
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "modell"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
"stan.target_add"(%one) : (!stan.real) -> ()  }) : () -> ()  }) : () -> ()

// -----

// two model blocks
// expected-error@below {{block model is unknown, repeated or out of order}}
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
"stan.target_add"(%one) : (!stan.real) -> ()  }) : () -> ()
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
"stan.target_add"(%one) : (!stan.real) -> ()  }) : () -> ()  }) : () -> ()

// -----

// blocks out of order
// expected-error@below {{block transformed_data is unknown, repeated or out of order}}
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
"stan.target_add"(%one) : (!stan.real) -> ()  }) : () -> ()
"stan.block"() <{kind = "transformed_data"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real  }) : () -> ()  }) : () -> ()

// -----

// for with real bounds
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{operand 'lower' at position 0 does not verify:}}
"stan.for"(%one, %one) <{variable = "i"}> ({ ^bb0(%a: !stan.int):
"stan.yield"() : () -> () }) : (!stan.real, !stan.real) -> () }) : () -> ()  }) : () -> ()

// -----

// func: no return, real result
"stan.program"() <{sym_name = "m"}> ({
"stan.func"() <{sym_name = "f", stan_name = "f", function_type = (!stan.real) -> !stan.real, argument_names = ["x"], data_only = array<i8: 0>}> ({ ^bb0(%x: !stan.real):
// expected-error@below {{Operation stan.constant terminates block in single-block region but is not a terminator}}
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real  }) : () -> () }) : () -> ()

// -----

// stan.block outside of a program
// expected-error@below {{stan.block is not inside stan.program}}
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
"stan.target_add"(%one) : (!stan.real) -> ()  }) : () -> ()

// -----

// sum real+row_vector -> real, used
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "model"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
%v = "stan.row_vector"(%one) : (!stan.real) -> !stan.row_vector
// expected-error@below {{`+` of !stan.real, !stan.row_vector gives a !stan.row_vector, not a !stan.real}}
%z = "stan.add"(%one, %v) : (!stan.real, !stan.row_vector) -> !stan.real
"stan.target_add"(%z) : (!stan.real) -> () }) : () -> ()  }) : () -> ()

// -----

// global of another type, used
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "parameters"}> ({
%x = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> }) : () -> ()
"stan.block"() <{kind = "model"}> ({
// expected-error@below {{'x' is a !stan.real, not a !stan.vector}}
%x = "stan.global"() <{var_name = "x"}> : () -> !stan.var<!stan.vector>
%r = "stan.read"(%x) : (!stan.var<!stan.vector>) -> !stan.vector
"stan.target_add"(%r) : (!stan.vector) -> () }) : () -> ()  }) : () -> ()

// -----

// target_add in transformed data, used
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "transformed_data"}> ({
%one = "stan.constant"() <{value = 1.0 : f64}> : () -> !stan.real
// expected-error@below {{the target is not there in the block transformed_data}}
"stan.target_add"(%one) : (!stan.real) -> ()  }) : () -> ()
"stan.block"() <{kind = "parameters"}> ({
%x = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> }) : () -> ()  }) : () -> ()

// -----

// two parameters of one name
"stan.program"() <{sym_name = "m"}> ({
"stan.block"() <{kind = "parameters"}> ({
%x = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real>
// expected-error@below {{a second variable 'x' is declared}}
%y = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> }) : () -> ()  }) : () -> ()
