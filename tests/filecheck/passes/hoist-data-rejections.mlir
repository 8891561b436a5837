// RUN: stan-opt -p hoist-data{rejections=true},verify-dominance --split-input-file %s | filecheck %s
// RUN: stan-opt -p hoist-data,verify-dominance --split-input-file %s | filecheck %s --check-prefix=KEPT

// Branches on data of which one rejects move with the checks beside it where `rejections` are asked for.
// CHECK-LABEL: @evaluate
// CHECK-NOT: rt.check
// CHECK-LABEL: @bind
// CHECK: scf.if
// CHECK: rt.check
// CHECK: rt.check
// KEPT-LABEL: @evaluate
// KEPT: scf.if
// KEPT: rt.check
// KEPT: rt.check
// KEPT-LABEL: @bind
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %never = arith.constant false
  %none = arith.constant 0.0 : f64
  %kind = rt.bound 0 : i1
  %y = rt.bound 1 : !rt.buf<f64>
  scf.if %kind {
    %e = rt.load %y[%zero] : f64
    %ok = arith.cmpf ogt, %e, %none : f64
    rt.check %ok site 0 status 1 with %e : f64
  } else {
    rt.check %never site 1 status 1
  }
  %t = rt.load %theta[%zero] : f64
  ad.target_add %t
  func.return %none : f64
}

// -----

// Not in a unit that prints: its prints come first.
// CHECK-LABEL: @evaluate
// CHECK: rt.kernel print_begin
// CHECK: scf.if
// CHECK: rt.check
// CHECK-LABEL: @bind
// CHECK-NOT: rt.check
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %k = arith.constant 0 : i32
  %never = arith.constant false
  %none = arith.constant 0.0 : f64
  %kind = rt.bound 0 : i1
  rt.kernel print_begin(%k) : (i32) -> ()
  rt.kernel print_end() : () -> ()
  scf.if %kind {
    rt.check %never site 1 status 1
  }
  %t = rt.load %theta[%zero] : f64
  ad.target_add %t
  func.return %none : f64
}
