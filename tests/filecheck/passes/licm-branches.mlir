// RUN: stan-opt -p 'licm{guarded=true branches=true},verify-dominance' %s | filecheck %s

// A coefficient that some rows read is read once: so near to the begin there is memory, of however few elements.
// CHECK-LABEL: @near
// CHECK:      rt.load [[B:%.*]][{{.*}}] {rt.ahead = #rt.ahead}
// CHECK-NEXT: scf.for
// CHECK-NOT:  rt.load [[B]]
func.func @near(%theta : !rt.buf<f64>, %n : i64, %k : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %kind = rt.bound 0 : !rt.buf<i1>
  %b = rt.alloc %k : !rt.buf<f64>
  rt.copy %theta to %b, %k initial : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %is = rt.load %kind[%i] : i1
    %m = scf.if %is -> (f64) {
      %x = rt.load %b[%i1] : f64
      scf.yield %x : f64
    } else {
      scf.yield %zero : f64
    }
    ad.target_add %m
  }
  func.return
}

// Elements further on, those of data, and those that the loop writes stay.
// CHECK-LABEL: @others
// CHECK-NOT: rt.ahead
func.func @others(%theta : !rt.buf<f64>, %n : i64, %k : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i9 = arith.constant 9 : i64
  %kind = rt.bound 0 : !rt.buf<i1>
  %data = rt.bound 1 : !rt.buf<f64>
  %b = rt.alloc %k : !rt.buf<f64>
  rt.copy %theta to %b, %k initial : !rt.buf<f64>
  %c = rt.alloc %k : !rt.buf<f64>
  rt.copy %theta to %c, %k initial : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %is = rt.load %kind[%i] : i1
    scf.if %is {
      %x = rt.load %b[%i9] : f64
      %y = rt.load %data[%i1] : f64
      %z = rt.load %c[%i1] : f64
      %s = arith.addf %x, %y : f64
      %t = arith.addf %s, %z : f64
      rt.store %t, %c[%i1] : f64
    }
  }
  %u = rt.load %c[%i1] : f64
  ad.target_add %u
  func.return
}
