// RUN: stan-opt -p lazy-comparisons,verify-dominance %s | filecheck %s

// Lazy `&&` and `||` of comparisons are no branches: what is compared is there before. An operand that is loaded in an
// arm may not be there, and stays; so do numbers that arms choose.
// CHECK-LABEL: @evaluate
func.func @evaluate(%x: f64, %y: f64, %data: !rt.buf<f64>, %n: i64) -> (i1, i1, i1, f64) attributes {rt.entry = #rt.entry} {
  %true = arith.constant true
  %false = arith.constant false
  %zero = arith.constant 0 : i64
  %first = arith.cmpf olt, %x, %y : f64
  // CHECK: %[[FIRST:.*]] = arith.cmpf olt
  %either = scf.if %first -> (i1) {
    scf.yield %true : i1
  } else {
    %more = arith.cmpi slt, %zero, %n : i64
    %both = scf.if %more -> (i1) {
      %second = arith.cmpf ueq, %x, %y : f64
      scf.yield %second : i1
    } else {
      scf.yield %false : i1
    }
    scf.yield %both : i1
  }
  // CHECK-NEXT: %[[MORE:.*]] = arith.cmpi slt
  // CHECK-NEXT: %[[SECOND:.*]] = arith.cmpf ueq
  // CHECK-NEXT: %[[BOTH:.*]] = arith.select %[[MORE]], %[[SECOND]], %{{.*}} : i1
  // CHECK-NEXT: %[[EITHER:.*]] = arith.select %[[FIRST]], %{{.*}}, %[[BOTH]] : i1
  %some = arith.cmpi slt, %zero, %n : i64
  %guarded = scf.if %some -> (i1) {
    %element = rt.load %data[%zero] : f64
    %third = arith.cmpf olt, %element, %y : f64
    scf.yield %third : i1
  } else {
    scf.yield %false : i1
  }
  // CHECK: scf.if
  // CHECK: rt.load
  %checked = scf.if %some -> (i1) {
    rt.check %first site 0
    scf.yield %first : i1
  } else {
    scf.yield %false : i1
  }
  // CHECK: scf.if
  // CHECK: rt.check
  %number = scf.if %first -> (f64) {
    scf.yield %x : f64
  } else {
    scf.yield %y : f64
  }
  // CHECK: scf.if
  func.return %either, %guarded, %checked, %number : i1, i1, i1, f64
}
