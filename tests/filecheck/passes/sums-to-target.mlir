// RUN: stan-opt --split-input-file --verify-each -p sums-to-target,dce %s | filecheck %s

// A sum that only the target gets, with a factor; what a branch chooses for it.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %half = arith.constant 0.5 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %c = arith.cmpf olt, %a, %half : f64
      %t = scf.if %c -> (f64) {
        %e = rt.math exp(%a) : (f64) -> f64
        scf.yield %e : f64
      } else {
        scf.yield %a : f64
      }
      %next = arith.addf %s, %t fastmath<reassoc> : f64
      scf.yield %next : f64
    }
    %negated = arith.negf %sum : f64
    ad.target_add %negated
    func.return %zero : f64
  }
}
// CHECK:       scf.for %i = %0 to %n step %1 : i64 {
// CHECK-NEXT:    %a = rt.load %x[%i] : f64
// CHECK-NEXT:    %c = arith.cmpf olt, %a, %half : f64
// CHECK-NEXT:    scf.if %c {
// CHECK-NEXT:      %e = rt.math exp(%a) : (f64) -> f64
// CHECK-NEXT:      [[E:%.*]] = arith.negf %e : f64
// CHECK-NEXT:      ad.target_add [[E]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      [[A:%.*]] = arith.negf %a : f64
// CHECK-NEXT:      ad.target_add [[A]]
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A sum that both arms of a branch go on with.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %half = arith.constant 0.5 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %c = arith.cmpf olt, %a, %half : f64
      %t = scf.if %c -> (f64) {
        %b = arith.addf %s, %a fastmath<reassoc> : f64
        scf.yield %b : f64
      } else {
        scf.yield %s : f64
      }
      scf.yield %t : f64
    }
    ad.target_add %sum
    func.return %zero : f64
  }
}
// CHECK:       scf.for
// CHECK-NEXT:    %a = rt.load %x[%i] : f64
// CHECK-NEXT:    %c = arith.cmpf olt, %a, %half : f64
// CHECK-NEXT:    scf.if %c {
// CHECK-NEXT:      ad.target_add %a
// CHECK-NEXT:    } else {
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----

// A sum that is read on the way stays.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %b = arith.mulf %s, %a : f64
      %next = arith.addf %s, %b fastmath<reassoc> : f64
      scf.yield %next : f64
    }
    ad.target_add %sum
    func.return %zero : f64
  }
}
// CHECK:       [[SUM:%.*]] = scf.for
// CHECK:       ad.target_add [[SUM]]

// -----

// Outside of loops, what a branch with loops gives is added in its arms, so that they are loops that add to the target.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %some = arith.cmpi sgt, %n, %0 : i64
    %all = scf.if %some -> (f64) {
      %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
        %a = rt.load %x[%i] : f64
        %next = arith.addf %s, %a fastmath<reassoc> : f64
        scf.yield %next : f64
      }
      scf.yield %sum : f64
    } else {
      scf.yield %zero : f64
    }
    ad.target_add %all
    func.return %zero : f64
  }
}
// CHECK:       scf.if %some
// CHECK-NEXT:    scf.for %i
// CHECK-NEXT:      %a = rt.load %x[%i] : f64
// CHECK-NEXT:      ad.target_add %a

// -----

// A sum that a loop behind adds in each of its iterations stays a sum: it counts several times.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %next = arith.addf %s, %a fastmath<reassoc> : f64
      scf.yield %next : f64
    }
    scf.for %k = %0 to %n step %1 : i64 {
      ad.target_add %sum
    }
    func.return %zero : f64
  }
}
// CHECK:       [[SUM:%.*]] = scf.for %i
// CHECK-NOT:     ad.target_add
// CHECK:       scf.for %k
// CHECK-NEXT:    ad.target_add [[SUM]]
