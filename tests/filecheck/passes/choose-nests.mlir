// RUN: stan-opt --split-input-file --verify-each -p choose-nests,fold,cse,dce,verify-dominance %s | filecheck %s

// One of two layouts is enough for the one loop to run.
builtin.module attributes {rt.slots = #rt.slots<10>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %rows = rt.bound 5 {rt.coalesced = #rt.coalesced<5>} : i1
    %place = arith.constant 0 : i64
    %x = rt.load %theta[%place] : f64
    scf.if %rows {
      ad.target_add %x
    } else {
      ad.target_add %none
    }
    func.return %none : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %are = arith.constant true
    %n = rt.bound 0 : i64
    %m = rt.bound 1 : i64
    rt.set_bound 5, %are : i1
    rt.layout "unique rows" slot 6 outcome %n of ["too few"] figures []() {rt.coalesced = #rt.coalesced<5>}
    rt.layout "parts of rows" slot 8 outcome %m of ["one arm"] figures []() {rt.coalesced = #rt.coalesced<5>}
    rt.layout "unique rows" slot 9 outcome %m of ["too few"] figures []()
    func.return
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK-LABEL: func.func @bind
// CHECK:         rt.set_bound 5
// CHECK:         [[A:%.*]] = arith.cmpi eq, %n, {{.*}} : i64
// CHECK-NEXT:    [[B:%.*]] = arith.cmpi eq, %m, {{.*}} : i64
// CHECK-NEXT:    [[C:%.*]] = arith.ori [[A]], [[B]] : i1
// CHECK-NEXT:    rt.set_bound 5, [[C]] : i1
// CHECK-NEXT:    func.return

// -----

// All sums of squares of a loop have to be reduced.
builtin.module attributes {rt.slots = #rt.slots<10>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %rows = rt.bound 5 {rt.coalesced = #rt.coalesced<5>} : i1
    scf.if %rows {
      ad.target_add %none
    }
    func.return %none : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %m = rt.bound 1 : i64
    rt.layout "reduced rows" slot 6 outcome %n of ["more"] figures []() {rt.coalesced = #rt.coalesced<5>}
    rt.layout "reduced rows" slot 8 outcome %m of ["more"] figures []() {rt.coalesced = #rt.coalesced<5>}
    func.return
  }
}
// CHECK-LABEL: func.func @bind
// CHECK:         arith.andi
// CHECK-NEXT:    rt.set_bound 5

// -----

// No layout: the nest alone, and no tables.
builtin.module attributes {rt.slots = #rt.slots<10>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %one = arith.constant 1.0 : f64
    %rows = rt.bound 5 {rt.coalesced = #rt.coalesced<5>} : i1
    scf.if %rows {
      ad.target_add %none
    } else {
      ad.target_add %one
    }
    func.return %none : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %n = rt.bound 0 : i64
    %are = arith.cmpi sgt, %n, %zero : i64
    %count = arith.select %are, %n, %zero : i64
    rt.set_bound 5, %are : i1
    rt.set_bound 6, %count : i64
    func.return
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     scf.if
// CHECK:         ad.target_add %one
// CHECK-LABEL: func.func @bind
// CHECK:         [[NO:%.*]] = arith.constant false
// CHECK-NEXT:    rt.set_bound 5, [[NO]] : i1
// CHECK-NEXT:    rt.set_bound 6, %zero : i64
