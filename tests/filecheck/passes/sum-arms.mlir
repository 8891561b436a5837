// RUN: stan-opt --split-input-file --verify-each -p sum-arms %s | filecheck %s

// Arms begin with zero; branches inside as well.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %c = arith.cmpf olt, %a, %zero : f64
      %t = scf.if %c -> (f64) {
        %u = scf.if %c -> (f64) {
          scf.yield %s : f64
        } else {
          %b = arith.addf %s, %a fastmath<reassoc> : f64
          scf.yield %b : f64
        }
        scf.yield %u : f64
      } else {
        %d = arith.addf %s, %a fastmath<reassoc> : f64
        %e = arith.addf %d, %a fastmath<reassoc> : f64
        scf.yield %e : f64
      }
      scf.yield %t : f64
    }
    func.return %sum : f64
  }
}
// CHECK:       %c = arith.cmpf olt, %a, %zero : f64
// CHECK-NEXT:    %t = scf.if %c -> (f64) {
// CHECK-NEXT:      %u = scf.if %c -> (f64) {
// CHECK-NEXT:        [[ZERO:%.*]] = arith.constant 0.000000e+00 : f64
// CHECK-NEXT:        scf.yield [[ZERO]] : f64
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %a : f64
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %u : f64
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %e = arith.addf %a, %a fastmath<reassoc> : f64
// CHECK-NEXT:      scf.yield %e : f64
// CHECK-NEXT:    }
// CHECK-NEXT:    %t_1 = arith.addf %s, %t fastmath<reassoc> : f64
// CHECK-NEXT:    scf.yield %t_1 : f64

// -----

// Additions in order stay where they are.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %c = arith.cmpf olt, %a, %zero : f64
      %t = scf.if %c -> (f64) {
        %b = arith.addf %s, %a : f64
        scf.yield %b : f64
      } else {
        scf.yield %s : f64
      }
      scf.yield %t : f64
    }
    func.return %sum : f64
  }
}
// CHECK:       %t = scf.if %c -> (f64) {
// CHECK-NEXT:    %b = arith.addf %s, %a : f64
