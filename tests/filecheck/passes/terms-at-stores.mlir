// RUN: stan-opt --split-input-file --verify-each -p terms-at-stores,dce,verify-dominance %s | filecheck %s

// Terms in rows one behind the other, all of which are added up: each is added where it is stored.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %nm = arith.muli %n, %m : i64
    %s = rt.alloc variable %nm : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %row = arith.muli %i, %m : i64
      scf.for %j = %0 to %m step %1 : i64 {
        %a = rt.load %x[%j] : f64
        %e = rt.math exp(%a) : (f64) -> f64
        %at = arith.addi %row, %j : i64
        rt.store %e, %s[%at] : f64
      }
    }
    scf.for %k = %0 to %nm step %1 : i64 {
      %t = rt.load %s[%k] : f64
      %u = arith.negf %t : f64
      ad.target_add %u
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.alloc
// CHECK:         rt.math exp
// CHECK-NEXT:    arith.negf %e
// CHECK-NEXT:    ad.target_add
// CHECK-NOT:     scf.for

// -----

// Memory that was filled before has that where nothing is stored: both sizes may be below 0.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %nan = arith.constant 0x7ff8000000000000 : f64
    %nm = arith.muli %n, %m : i64
    %s = rt.alloc variable %nm : !rt.buf<f64>
    rt.fill %s, %nan, %nm initial : f64
    scf.for %i = %0 to %n step %1 : i64 {
      %row = arith.muli %i, %m : i64
      scf.for %j = %0 to %m step %1 : i64 {
        %a = rt.load %x[%j] : f64
        %at = arith.addi %row, %j : i64
        rt.store %a, %s[%at] : f64
      }
    }
    scf.for %k = %0 to %nm step %1 : i64 {
      %t = rt.load %s[%k] : f64
      ad.target_add %t
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         [[ALL:%.*]] = arith.cmpi eq, {{.*}}, %nm
// CHECK:         [[REST:%.*]] = arith.select [[ALL]], {{.*}}, %nan
// CHECK-NEXT:    ad.target_add [[REST]]
// CHECK-NEXT:    scf.for
// CHECK:         ad.target_add %a

// -----

// Not all are stored: from the second on; under a condition.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64, %c: i1) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %nm = arith.muli %n, %m : i64
    %s = rt.alloc variable %nm : !rt.buf<f64>
    %r = rt.alloc variable %nm : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %row = arith.muli %i, %m : i64
      scf.for %j = %1 to %m step %1 : i64 {
        %a = rt.load %x[%j] : f64
        %at = arith.addi %row, %j : i64
        rt.store %a, %s[%at] : f64
        scf.if %c {
          rt.store %a, %r[%at] : f64
        } else {
        }
      }
    }
    scf.for %k = %0 to %nm step %1 : i64 {
      %t = rt.load %s[%k] : f64
      ad.target_add %t
    }
    scf.for %l = %0 to %nm step %1 : i64 {
      %u = rt.load %r[%l] : f64
      ad.target_add %u
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK-COUNT-2: rt.alloc
// CHECK-COUNT-4: scf.for
