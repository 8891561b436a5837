// RUN: stan-opt -p thread-target,verify-dominance %s | filecheck %s
// RUN: stan-opt -p 'thread-target{reassociate=true}' %s | filecheck %s --check-prefix=FAST

// The total goes through loops and branches that add to it, and through no others.
// CHECK-LABEL: @f
// FAST-LABEL: @f
func.func @f(%n: i64, %x: f64, %c: i1) -> (i64, f64) attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 1>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %placeholder = arith.constant 0.0 : f64
  // CHECK: %[[START:.*]] = arith.constant 0.000000e+00 : f64
  ad.target_add %x
  // CHECK: %[[T1:.*]] = arith.addf %[[START]], %x : f64
  // FAST: arith.addf %{{.*}}, %x fastmath<reassoc> : f64
  %sum = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> (f64) : i64 {
    ad.target_add %s
    scf.if %c {
      ad.target_add %x
    }
    scf.yield %s : f64
  }
  // CHECK: %{{.*}}, %[[T2:.*]] = scf.for %{{.*}} iter_args(%[[S:.*]] = %x, %[[T:.*]] = %[[T1]]) -> (f64, f64)
  // CHECK-NEXT: %[[A:.*]] = arith.addf %[[T]], %[[S]]
  // CHECK-NEXT: %[[I:.*]] = scf.if %c -> (f64) {
  // CHECK-NEXT:   %[[B:.*]] = arith.addf %[[A]], %x
  // CHECK-NEXT:   scf.yield %[[B]]
  // CHECK-NEXT: } else {
  // CHECK-NEXT:   scf.yield %[[A]]
  // CHECK-NEXT: }
  // CHECK-NEXT: scf.yield %[[S]], %[[I]]
  scf.for %i = %zero to %n step %one : i64 {
    rt.check %c site 0
  }
  // CHECK: scf.for
  // CHECK-NOT: iter_args
  %w = scf.while (%k = %zero) : (i64) -> (i64) {
    scf.condition(%c) %k : i64
  } do {
  ^bb0(%k : i64):
    ad.target_add %x
    scf.yield %k : i64
  }
  // CHECK: %[[W:.*]], %[[T3:.*]] = scf.while (%[[K:.*]] = %{{.*}}, %[[U:.*]] = %[[T2]])
  // CHECK: scf.condition(%c) %[[K]], %[[U]] : i64, f64
  // CHECK: ^{{.*}}(%[[K2:.*]]: i64, %[[U2:.*]]: f64):
  // CHECK-NEXT: %[[V:.*]] = arith.addf %[[U2]], %x
  // CHECK-NEXT: scf.yield %[[K2]], %[[V]]
  func.return %w, %placeholder : i64, f64
  // CHECK: func.return %[[W]], %[[T3]]
}

// Nothing is added: the placeholder stays.
// CHECK-LABEL: @g
func.func @g() -> f64 attributes {ad.target_position = #ad.target_position<result 0>} {
  %placeholder = arith.constant 0.0 : f64
  func.return %placeholder : f64
  // CHECK: %[[P:.*]] = arith.constant 0.0
  // CHECK-NEXT: func.return %[[P]]
}
