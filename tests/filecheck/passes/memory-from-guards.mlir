// RUN: stan-opt -p memory-from-guards,verify-dominance --split-input-file %s | filecheck %s

// Both arms fill memory of one size, in loops that have no iteration unless the branch is taken.
// CHECK-LABEL: @evaluate
// CHECK-NOT:   scf.if
// CHECK:       [[M:%[0-9a-z]+]] = rt.alloc %rows
// CHECK-NEXT:  scf.for {{%.*}} = %i0 to %rows
// CHECK:       rt.store {{%.*}}, [[M]]
// CHECK:       scf.for {{%.*}} = %i0 to %rows
// CHECK-NEXT:  rt.load [[M]]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %nan = arith.constant 0x7ff8000000000000 : f64
  %any = arith.cmpi sge, %rows, %i1 : i64
  %m = scf.if %any -> (!rt.buf<f64>) {
    %a = rt.alloc %rows : !rt.buf<f64>
    scf.for %i = %i0 to %rows step %i1 : i64 {
      %v = rt.load %theta[%i] : f64
      rt.store %v, %a[%i] : f64
    }
    scf.yield %a : !rt.buf<f64>
  } else {
    %b = rt.alloc %rows : !rt.buf<f64>
    scf.for %i = %i0 to %rows step %i1 : i64 {
      rt.store %nan, %b[%i] : f64
    }
    scf.yield %b : !rt.buf<f64>
  }
  scf.for %i = %i0 to %rows step %i1 : i64 {
    %e = rt.load %m[%i] : f64
    ad.target_add %e
  }
  func.return %nan : f64
}

// -----

// A loop over columns around the rows reads a coefficient of each: it has no iteration either, then.
// CHECK-LABEL: @evaluate
// CHECK-NOT:   scf.if
// CHECK:       [[END:%[0-9a-z]+]] = arith.select %any, %columns, %i0
// CHECK-NEXT:  scf.for {{%.*}} = %i0 to [[END]]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %columns = rt.bound 1 : i64
  %x = rt.bound 2 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %nan = arith.constant 0x7ff8000000000000 : f64
  %any = arith.cmpi sgt, %rows, %i0 : i64
  %m = scf.if %any -> (!rt.buf<f64>) {
    %a = rt.alloc zero %rows : !rt.buf<f64>
    scf.for %k = %i0 to %columns step %i1 : i64 {
      %c = rt.load %theta[%k] : f64
      scf.for %i = %i0 to %rows step %i1 : i64 {
        %v = rt.load %x[%i] : f64
        %p = arith.mulf %v, %c : f64
        ad.accumulate %a[%i], %p
      }
    }
    scf.yield %a : !rt.buf<f64>
  } else {
    %b = rt.alloc %rows : !rt.buf<f64>
    rt.fill %b, %nan, %rows : f64
    scf.yield %b : !rt.buf<f64>
  }
  scf.for %i = %i0 to %rows step %i1 : i64 {
    %e = rt.load %m[%i] : f64
    ad.target_add %e
  }
  func.return %nan : f64
}

// -----

// Another condition, memory of another size, and an arm that sets elements although the branch is not taken: no.
// CHECK-LABEL: @evaluate
// CHECK:       scf.if %on
// CHECK:       scf.if %any
// CHECK:       scf.if %any
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %more = rt.bound 1 : i64
  %on = rt.bound 2 : i1
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %one = arith.constant 1.0 : f64
  %any = arith.cmpi sge, %rows, %i1 : i64
  %m = scf.if %on -> (!rt.buf<f64>) {
    %a = rt.alloc %rows : !rt.buf<f64>
    rt.fill %a, %one, %rows : f64
    scf.yield %a : !rt.buf<f64>
  } else {
    %b = rt.alloc %rows : !rt.buf<f64>
    scf.for %i = %i0 to %rows step %i1 : i64 {
      rt.store %one, %b[%i] : f64
    }
    scf.yield %b : !rt.buf<f64>
  }
  %n = scf.if %any -> (!rt.buf<f64>) {
    %a = rt.alloc %rows : !rt.buf<f64>
    rt.fill %a, %one, %rows : f64
    scf.yield %a : !rt.buf<f64>
  } else {
    %b = rt.alloc %more : !rt.buf<f64>
    scf.yield %b : !rt.buf<f64>
  }
  %o = scf.if %any -> (!rt.buf<f64>) {
    %a = rt.alloc %rows : !rt.buf<f64>
    rt.fill %a, %one, %rows : f64
    scf.yield %a : !rt.buf<f64>
  } else {
    %b = rt.alloc %rows : !rt.buf<f64>
    rt.store %one, %b[%i0] : f64
    scf.yield %b : !rt.buf<f64>
  }
  %u = rt.load %m[%i0] : f64
  %v = rt.load %n[%i0] : f64
  %w = rt.load %o[%i0] : f64
  ad.target_add %u
  ad.target_add %v
  ad.target_add %w
  func.return %one : f64
}
