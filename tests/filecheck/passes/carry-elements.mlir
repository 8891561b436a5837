// RUN: stan-opt -p carry-elements,verify-dominance --split-input-file %s | filecheck %s

// The element is one of memory that a loop around runs over.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for [[N:%.*]] = %{{.*}} to [[ROWS:%.*]] step
// CHECK-NEXT:   [[FIRST:%.*]] = rt.load [[MU:%.*]][[[N]]]
// CHECK-NEXT:   [[SUM:%.*]] = scf.for {{.*}} iter_args([[SO_FAR:%.*]] = [[FIRST]]) -> (f64)
// CHECK-NEXT:     rt.load
// CHECK-NEXT:     [[MORE:%.*]] = arith.addf [[SO_FAR]]
// CHECK-NEXT:     scf.yield [[MORE]] : f64
// CHECK-NEXT:   }
// CHECK-NEXT:   rt.store [[SUM]], [[MU]][[[N]]]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %columns = rt.bound 1 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %mu = rt.alloc %rows : !rt.buf<f64>
  rt.fill %mu, %zero, %rows : f64
  scf.for %n = %i0 to %rows step %i1 : i64 {
    scf.for %k = %i0 to %columns step %i1 : i64 {
      %x = rt.load %theta[%k] : f64
      %m = rt.load %mu[%n] : f64
      %s = arith.addf %m, %x : f64
      rt.store %s, %mu[%n] : f64
    }
  }
  %t = rt.load %mu[%i0] : f64
  func.return %t : f64
}

// -----

// The element was stored before, so it is there; two nested loops change it.
// CHECK-LABEL: @evaluate
// CHECK:      rt.store %{{.*}}, [[MU:%.*]][[[E:%.*]]]
// CHECK-NEXT: [[FIRST:%.*]] = rt.load [[MU]][[[E]]]
// CHECK-NEXT: [[ALL:%.*]] = scf.for {{.*}} iter_args([[OUTER:%.*]] = [[FIRST]])
// CHECK-NEXT:   [[SUM:%.*]] = scf.for {{.*}} iter_args({{.*}} = [[OUTER]])
// CHECK:        scf.yield [[SUM]]
// CHECK-NEXT: }
// CHECK-NEXT: rt.store [[ALL]], [[MU]][[[E]]]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %e = rt.bound 0 : i64
  %columns = rt.bound 1 : i64
  %rows = rt.bound 2 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %mu = rt.alloc %rows : !rt.buf<f64>
  rt.store %zero, %mu[%e] : f64
  scf.for %j = %i0 to %columns step %i1 : i64 {
    scf.for %k = %i0 to %columns step %i1 : i64 {
      %m = rt.load %mu[%e] : f64
      %x = rt.load %theta[%k] : f64
      %s = arith.addf %m, %x : f64
      rt.store %s, %mu[%e] : f64
    }
  }
  %t = rt.load %mu[%e] : f64
  func.return %t : f64
}

// -----

// The element is one of a known number: it is there although nothing has accessed it. One beyond them may not be.
// CHECK-LABEL: @evaluate
// CHECK:      [[OF:%.*]] = rt.alloc
// CHECK-NEXT: [[FIRST:%.*]] = rt.load [[OF]]
// CHECK-NEXT: [[SUM:%.*]] = scf.for {{.*}} iter_args({{.*}} = [[FIRST]])
// CHECK:      rt.store [[SUM]], [[OF]]
// CHECK-NOT: iter_args
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %columns = rt.bound 0 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %of = rt.alloc %i2 : !rt.buf<f64>
  scf.for %k = %i0 to %columns step %i1 : i64 {
    %m = rt.load %of[%i1] : f64
    %x = rt.load %theta[%k] : f64
    %s = arith.addf %m, %x : f64
    rt.store %s, %of[%i1] : f64
  }
  %some = rt.alloc %columns : !rt.buf<f64>
  scf.for %k = %i0 to %columns step %i1 : i64 {
    %m = rt.load %some[%i2] : f64
    %x = rt.load %theta[%k] : f64
    %s = arith.addf %m, %x : f64
    rt.store %s, %some[%i2] : f64
  }
  %t = rt.load %of[%i1] : f64
  %u = rt.load %some[%i0] : f64
  %v = arith.addf %t, %u : f64
  func.return %v : f64
}

// -----

// An element that may not be there if the loop does not run; memory that is read elsewhere in the loop; an element
// that is stored before it is read.
// CHECK-LABEL: @evaluate
// CHECK-NOT: iter_args
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %e = rt.bound 0 : i64
  %columns = rt.bound 1 : i64
  %rows = rt.bound 2 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %mu = rt.alloc %rows : !rt.buf<f64>
  scf.for %k = %i0 to %columns step %i1 : i64 {
    %m = rt.load %mu[%e] : f64
    %x = rt.load %theta[%k] : f64
    %s = arith.addf %m, %x : f64
    rt.store %s, %mu[%e] : f64
  }
  %nu = rt.alloc %rows : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    scf.for %k = %i0 to %columns step %i1 : i64 {
      %m = rt.load %nu[%n] : f64
      %x = rt.load %nu[%k] : f64
      %s = arith.addf %m, %x : f64
      rt.store %s, %nu[%n] : f64
    }
    scf.for %k = %i0 to %columns step %i1 : i64 {
      %x = rt.load %theta[%k] : f64
      rt.store %x, %nu[%n] : f64
      %m = rt.load %nu[%n] : f64
      ad.target_add %m
    }
  }
  %t = rt.load %nu[%i0] : f64
  %u = rt.load %mu[%i0] : f64
  %v = arith.addf %t, %u : f64
  func.return %v : f64
}
