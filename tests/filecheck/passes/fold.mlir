// RUN: stan-opt -p fold,verify-dominance %s | filecheck %s

// CHECK-LABEL: @integers
func.func @integers(%x: i32, %y: i64, %c: i1) -> (i32, i32, i64, i1, i32, i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %large = arith.constant 2147483647 : i32
  %true = arith.constant true
  %wrapped = arith.addi %large, %one : i32
  // CHECK-DAG: %[[W:.*]] = arith.constant -2147483648 : i32
  %same = arith.muli %one, %x : i32
  %none = arith.subi %y, %y : i64
  // CHECK-DAG: %[[N:.*]] = arith.constant 0 : i64
  %not = arith.xori %c, %true : i1
  %again = arith.xori %not, %true : i1
  %undefined = arith.divsi %x, %zero : i32
  // CHECK: %[[U:.*]] = arith.divsi %x, %
  %wide = arith.extui %c : i1 to i32
  %truth = arith.cmpi ne, %wide, %zero : i32
  // CHECK: func.return %[[W]], %x, %[[N]], %c, %[[U]], %c
  func.return %wrapped, %same, %none, %again, %undefined, %truth : i32, i32, i64, i1, i32, i1
}

// Not one bit changes: x + 0.0 is not x for x = -0.0, x * 0.0 not 0.0, x - x not 0.0 for an infinity.
// CHECK-LABEL: @reals
func.func @reals(%x: f64) -> (f64, f64, f64, f64, f64, f64, f64) {
  %zero = arith.constant 0.0 : f64
  %negative_zero = arith.constant -0.0 : f64
  %one = arith.constant 1.0 : f64
  %third = arith.constant 3.0 : f64
  %a = arith.addf %x, %zero : f64
  // CHECK: %[[A:.*]] = arith.addf %x
  %b = arith.addf %x, %negative_zero : f64
  %c = arith.mulf %x, %zero : f64
  // CHECK: %[[C:.*]] = arith.mulf %x
  %d = arith.subf %x, %x : f64
  // CHECK: %[[D:.*]] = arith.subf %x, %x
  %e = arith.divf %one, %third : f64
  // CHECK: %[[E:.*]] = arith.constant 0.3333333333333333{{[0-9]*}} : f64
  %f = arith.divf %zero, %zero : f64
  // CHECK: %[[F:.*]] = arith.divf
  %g = arith.negf %x : f64
  %h = arith.negf %g : f64
  // CHECK: func.return %[[A]], %x, %[[C]], %[[D]], %[[E]], %[[F]], %x
  func.return %a, %b, %c, %d, %e, %f, %h : f64, f64, f64, f64, f64, f64, f64
}

// CHECK-LABEL: @control
func.func @control(%x: f64, %c: i1) -> (f64, f64, f64, f64) {
  %true = arith.constant true
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  // CHECK-NOT: rt.check
  rt.check %true site 0
  %a = scf.if %true -> (f64) {
    %sum = arith.addf %x, %x : f64
    scf.yield %sum : f64
  } else {
    scf.yield %x : f64
  }
  // CHECK: %[[A:.*]] = arith.addf %x, %x
  %b = scf.for %i = %one to %one step %one iter_args(%s = %x) -> (f64) : i64 {
    scf.yield %a : f64
  }
  %d = scf.for %i = %one to %two step %one iter_args(%s = %x) -> (f64) : i64 {
    %product = arith.mulf %s, %s : f64
    scf.yield %product : f64
  }
  // CHECK-NOT: scf.for
  // CHECK: %[[D:.*]] = arith.mulf %x, %x
  %e = scf.if %c -> (f64) {
    scf.yield %x : f64
  } else {
    scf.yield %x : f64
  }
  // CHECK: func.return %[[A]], %x, %[[D]], %x
  func.return %a, %b, %d, %e : f64, f64, f64, f64
}
