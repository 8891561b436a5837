// RUN: stan-opt --split-input-file -p batch-kernels,verify-dominance %s | filecheck %s

// Equations with the same matrix are solved once, for the right sides of all iterations; what these leave out is zero.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %l: !rt.buf<f64>, %k: i64, %n: i64, %ok: i1) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %0 to %n step %1 : i64 {
      %at = arith.muli %i, %k : i64
      %row = rt.view %x[%at] : !rt.buf<f64>
      %b = rt.alloc zero %k : !rt.buf<f64>
      scf.for %j = %1 to %k step %1 : i64 {
        %e = rt.load %row[%j] : f64
        %s = arith.addf %e, %e : f64
        rt.store %s, %b[%j] : f64
      }
      rt.check %ok site -1 status 3 {rt.harmless = #rt.harmless}
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%l, %b, %k, %1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
      %e = rt.load %z[%0] : f64
      ad.target_add %e
    }
    func.return %zero : f64
  }
}
// CHECK:       [[COUNT:%.*]] = arith.maxsi
// CHECK:       [[B:%.*]] = rt.alloc zero
// CHECK:       [[Z:%.*]] = rt.alloc
// CHECK:       scf.for [[I:%.*]] = %0 to %n
// CHECK:         [[OWN:%.*]] = rt.view [[B]]
// CHECK:         scf.for
// CHECK:           rt.store {{.*}}, [[OWN]]
// CHECK:       rt.kernel mdivide_left_tri_low(%l, [[B]], %k, [[COUNT]], [[Z]])
// CHECK-NEXT:  scf.for %i = %0 to %n
// CHECK-NOT:     rt.kernel
// CHECK:         [[ROW:%.*]] = rt.view [[Z]]
// CHECK-NEXT:    rt.load [[ROW]][%0]

// -----

// A row that is made of the row before, a matrix of its own, and indices that are looked at first.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %l: !rt.buf<f64>, %k: i64, %n: i64, %ok: i1) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %last = rt.alloc zero %k : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %b = rt.alloc %k : !rt.buf<f64>
      rt.copy %last to %b, %k : !rt.buf<f64>
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%l, %b, %k, %1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
      rt.copy %z to %last, %k : !rt.buf<f64>
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %b = rt.alloc zero %k : !rt.buf<f64>
      %own = rt.view %l[%i] : !rt.buf<f64>
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%own, %b, %k, %1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
    }
    scf.for %i = %0 to %n step %1 : i64 {
      rt.check %ok site 0 status 2
      %e = rt.load %x[%i] : f64
      %b = rt.alloc zero %k : !rt.buf<f64>
      rt.store %e, %b[%0] : f64
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%l, %b, %k, %1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
    }
    func.return %zero : f64
  }
}
// CHECK-COUNT-3: rt.kernel mdivide_left_tri_low({{.*}}, %k, %1,
