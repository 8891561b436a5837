// RUN: stan-opt --split-input-file --verify-each -p unswitch-loops %s | filecheck %s

// A loop for each choice that is the same in all iterations; an arm decides about its own branches only.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %lower: i1, %upper: i1) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %sum = scf.for %i = %0 to %n step %1 iter_args(%s = %zero) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %v = scf.if %lower -> (f64) {
        %e = rt.math exp(%a) : (f64) -> f64
        scf.yield %e : f64
      } else {
        %w = scf.if %upper -> (f64) {
          %f = rt.math log(%a) : (f64) -> f64
          scf.yield %f : f64
        } else {
          scf.yield %a : f64
        }
        scf.yield %w : f64
      }
      %b = arith.select %upper, %v, %a : f64
      %t = arith.addf %s, %b fastmath<reassoc> : f64
      scf.yield %t : f64
    }
    func.return %sum : f64
  }
}
// CHECK:         [[SUM:%.*]] = scf.if %lower -> (f64) {
// CHECK-NEXT:      [[FIRST:%.*]] = scf.for {{%i.*}} = %0 to %n step %1
// CHECK-NEXT:        [[LOWER:%.*]] = arith.constant true
// CHECK-NEXT:        rt.load
// CHECK-NEXT:        scf.if [[LOWER]]
// CHECK:             arith.select %upper
// CHECK:           scf.yield [[FIRST]] : f64
// CHECK-NEXT:    } else {
// CHECK-NEXT:      [[REST:%.*]] = scf.if %upper -> (f64) {
// CHECK-NEXT:        scf.for {{%i.*}} = %0 to %n step %1
// CHECK-NEXT:          [[UPPER:%.*]] = arith.constant true
// CHECK-NEXT:          [[LOWER:%.*]] = arith.constant false
// CHECK-NEXT:          rt.load
// CHECK-NEXT:          scf.if [[LOWER]]
// CHECK:               scf.if [[UPPER]]
// CHECK:               arith.select [[UPPER]]
// CHECK:           } else {
// CHECK-NEXT:        scf.for {{%i.*}} = %0 to %n step %1
// CHECK-NEXT:          [[UPPER:%.*]] = arith.constant false
// CHECK:               arith.select [[UPPER]]
// CHECK:           scf.yield [[REST]] : f64
// CHECK:         func.return [[SUM]] : f64

// -----

// What costs little in the arms is chosen by masks; conditions that vary stay where they are.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %lower: i1) attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %0 to %n step %1 : i64 {
      %a = rt.load %x[%i] : f64
      %v = scf.if %lower -> (f64) {
        %e = arith.addf %a, %a : f64
        scf.yield %e : f64
      } else {
        scf.yield %a : f64
      }
      %c = arith.cmpf olt, %v, %zero : f64
      %w = scf.if %c -> (f64) {
        %e = rt.math exp(%v) : (f64) -> f64
        scf.yield %e : f64
      } else {
        scf.yield %v : f64
      }
      rt.store %w, %x[%i] : f64
    }
    func.return
  }
}
// CHECK:         %zero = arith.constant 0.000000e+00 : f64
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      rt.load
// CHECK-NEXT:      scf.if %lower
// CHECK:           scf.if %c
// CHECK-NOT:     scf.for
// CHECK:         func.return
