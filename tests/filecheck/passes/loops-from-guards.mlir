// RUN: stan-opt -p loops-from-guards,verify-dominance --split-input-file %s | filecheck %s

// What the loop reads is computed ahead of the branch, of what is harmless where there is no iteration.
// CHECK-LABEL: @evaluate
// CHECK:      [[RUNS:%.*]] = arith.cmpi sge
// CHECK:      [[SAFE:%.*]] = arith.select [[RUNS]], [[S:%.*]], %
// CHECK-NEXT: [[INVERSE:%.*]] = rt.math inv([[SAFE]])
// CHECK-NEXT: scf.if [[RUNS]] {
// CHECK-NEXT:   arith.cmpf ogt, [[S]]
// CHECK-NEXT:   rt.check
// CHECK-NEXT:   ad.target_add
// CHECK-NEXT: }
// CHECK-NEXT: scf.for
// CHECK:        arith.mulf %{{.*}}, [[INVERSE]]
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %size = rt.bound 0 : i32
  %rows = arith.extsi %size : i32 to i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f64
  %s = rt.load %theta[%i0] : f64
  %runs = arith.cmpi sge, %size, %one : i32
  scf.if %runs {
    %positive = arith.cmpf ogt, %s, %zero : f64
    rt.check %positive site 0 status 1 with %s : f64
    %inverse = rt.math inv(%s) : (f64) -> f64
    ad.target_add %s
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %v = rt.load %x[%n] : f64
      %z = arith.mulf %v, %inverse : f64
      ad.target_add %z
    }
  }
  func.return %zero : f64
}

// -----

// Conditions that do not hold wherever the loop has an iteration, loops that write, and loops that read what may not be
// there.
// CHECK-LABEL: @evaluate
// CHECK-NOT: arith.select
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %size = rt.bound 0 : i32
  %rows = arith.extsi %size : i32 to i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f64
  %s = rt.load %theta[%i0] : f64
  %memory = rt.alloc %rows : !rt.buf<f64>
  %several = arith.cmpi sge, %size, %two : i32
  %runs = arith.cmpi sge, %size, %one : i32
  // CHECK:      scf.if
  // CHECK-NEXT:   scf.for
  scf.if %several {
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %v = rt.load %x[%n] : f64
      %z = arith.mulf %v, %s : f64
      ad.target_add %z
    }
  }
  // CHECK-NOT:  scf.if
  // CHECK:      rt.store %{{.*}}, %memory
  scf.if %runs {
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %v = rt.load %x[%n] : f64
      rt.store %v, %memory[%n] : f64
      ad.target_add %v
    }
  }
  // CHECK:      scf.if
  // CHECK-NEXT:   rt.load
  // CHECK-NEXT:   scf.for
  scf.if %runs {
    %first = rt.load %memory[%i0] : f64
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %v = rt.load %x[%n] : f64
      %z = arith.mulf %v, %first : f64
      ad.target_add %z
    }
  }
  func.return %zero : f64
}

// -----

// A loop over something else, as over elements that are checked, stays in the branch.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK-NEXT:   scf.for %k
// CHECK:          rt.check
// CHECK:      }
// CHECK:      scf.for %n
// CHECK:        ad.target_add
func.func @evaluate(%theta : !rt.buf<f64>, %elements : i64) -> f64 attributes {rt.entry = #rt.entry} {
  %size = rt.bound 0 : i32
  %rows = arith.extsi %size : i32 to i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f64
  %runs = arith.cmpi sge, %size, %one : i32
  scf.if %runs {
    scf.for %k = %i0 to %elements step %i1 : i64 {
      %s = rt.load %theta[%k] : f64
      %positive = arith.cmpf ogt, %s, %zero : f64
      rt.check %positive site 0 status 1 with %s : f64
    }
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %v = rt.load %x[%n] : f64
      %t = rt.load %theta[%n] : f64
      %z = arith.mulf %v, %t : f64
      ad.target_add %z
    }
  }
  func.return %zero : f64
}

// -----

// A row fills its columns of what it has loaded for all of them: the loop loads it.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK-NOT:    scf.for
// CHECK:      } else {
// CHECK:      scf.for %k
// CHECK-NEXT:   rt.load %x[%i0]
// CHECK:        rt.store
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %size = rt.bound 0 : i32
  %columns = arith.extsi %size : i32 to i64
  %x = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %two = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f64
  %memory = rt.alloc %columns : !rt.buf<f64>
  %more = arith.subi %columns, %i1 : i64
  %runs = arith.cmpi sge, %size, %two : i32
  scf.if %runs {
    %v = rt.load %x[%i0] : f64
    scf.for %k = %i0 to %more step %i1 : i64 {
      %b = rt.load %theta[%k] : f64
      %z = arith.mulf %v, %b : f64
      rt.store %z, %memory[%k] : f64
    }
  } else {
  }
  %r = rt.load %memory[%i0] : f64
  func.return %r : f64
}
