// RUN: stan-opt --split-input-file --verify-each -p overwritten-memory,verify-dominance %s | filecheck %s

// Memory that each row fills, copies and reads: it is the row's, and there is no copy.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %p = rt.alloc variable %m : !rt.buf<f64>
    rt.fill %p, %zero, %m initial : f64
    scf.for %i = %0 to %n step %1 : i64 {
      scf.for %k = %0 to %m step %1 : i64 {
        rt.store %zero, %p[%k] : f64
      }
      %q = rt.alloc %m : !rt.buf<f64>
      rt.copy %p to %q, %m initial : !rt.buf<f64>
      scf.for %k = %0 to %m step %1 : i64 {
        %e = rt.load %q[%k] : f64
        ad.target_add %e
      }
    }
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.alloc
// CHECK:         scf.for %i
// CHECK-NEXT:      [[P:%.*]] = rt.alloc variable %m
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        rt.store %zero, [[P]][%k]
// CHECK-NOT:       rt.copy
// CHECK:           %e = rt.load [[P]][%k

// -----

// The loop that overwrites a copy reads what was copied.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %q = rt.bound 0 : !rt.buf<f64>
    %p = rt.alloc variable %m : !rt.buf<f64>
    rt.copy %q to %p, %m initial : !rt.buf<f64>
    scf.for %k = %0 to %m step %1 : i64 {
      %e = rt.load %p[%k] : f64
      %s = rt.math square(%e) : (f64) -> f64
      rt.store %s, %p[%k] : f64
    }
    %last = rt.load %p[%0] : f64
    ad.target_add %last
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.copy
// CHECK:         %e = rt.load %q[%k]
// CHECK:         rt.store %s, %p[%k]
// CHECK:         %last = rt.load %p

// -----

// An element is read before all are written: the iteration before has written it.
builtin.module {
  func.func @evaluate(%n: i64, %m: i64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %p = rt.alloc variable %m : !rt.buf<f64>
    rt.fill %p, %zero, %m initial : f64
    scf.for %i = %0 to %n step %1 : i64 {
      %e = rt.load %p[%0] : f64
      ad.target_add %e
      scf.for %k = %0 to %m step %1 : i64 {
        rt.store %e, %p[%k] : f64
      }
    }
    func.return
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         rt.alloc variable %m
// CHECK-NEXT:    rt.fill
// CHECK-NEXT:    scf.for %i

// -----

// What a loop computes to be copied is stored where it is copied to: a part of a variable that is made of itself.
// CHECK-LABEL: @evaluate
// CHECK:      [[PART:%.*]] = rt.view %p[%m]
// CHECK:      scf.for [[K:%.*]] =
// CHECK-NEXT:   [[E:%.*]] = rt.load [[PART]]{{\[}}[[K]]{{\]}}
// CHECK-NEXT:   [[S:%.*]] = arith.addf [[E]], %a
// CHECK-NEXT:   rt.store [[S]], [[PART]]{{\[}}[[K]]{{\]}} : f64
// CHECK-NOT:  rt.copy
builtin.module {
  func.func @evaluate(%n: i64, %m: i64, %a: f64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %all = arith.addi %n, %m : i64
    %p = rt.alloc variable %all : !rt.buf<f64>
    rt.fill %p, %a, %all initial : f64
    %part = rt.view %p[%m] : !rt.buf<f64>
    %made = rt.alloc %n : !rt.buf<f64>
    scf.for %k = %0 to %n step %1 : i64 {
      %e = rt.load %part[%k] : f64
      %s = arith.addf %e, %a : f64
      rt.store %s, %made[%k] initial : f64
    }
    rt.copy %made to %part, %n : !rt.buf<f64>
    %last = rt.load %p[%m] : f64
    ad.target_add %last
    func.return
  }
}

// -----

// Not where the loop reads another element, where something reads in between what is there, or reads what is copied.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-3: rt.copy
builtin.module {
  func.func @evaluate(%n: i64, %m: i64, %a: f64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %all = arith.addi %n, %m : i64
    %p = rt.alloc variable %all : !rt.buf<f64>
    rt.fill %p, %a, %all initial : f64
    %part = rt.view %p[%m] : !rt.buf<f64>
    %made = rt.alloc %n : !rt.buf<f64>
    scf.for %k = %0 to %n step %1 : i64 {
      %e = rt.load %p[%k] : f64
      rt.store %e, %made[%k] initial : f64
    }
    rt.copy %made to %part, %n : !rt.buf<f64>
    %other = rt.alloc %n : !rt.buf<f64>
    scf.for %k = %0 to %n step %1 : i64 {
      %e = rt.load %part[%k] : f64
      %s = arith.addf %e, %a : f64
      rt.store %s, %other[%k] initial : f64
    }
    %before = rt.load %p[%m] : f64
    ad.target_add %before
    rt.copy %other to %part, %n : !rt.buf<f64>
    %third = rt.alloc %n : !rt.buf<f64>
    scf.for %k = %0 to %n step %1 : i64 {
      rt.store %a, %third[%k] initial : f64
    }
    rt.copy %third to %part, %n : !rt.buf<f64>
    %again = rt.load %third[%0] : f64
    ad.target_add %again
    %last = rt.load %p[%m] : f64
    ad.target_add %last
    func.return
  }
}

// -----

// Part by part: the first element, a loop over the next ones, and the last one.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for %n
// CHECK-NEXT:   [[OWN:%.*]] = rt.alloc variable %count
// CHECK:        rt.view [[OWN]]
// CHECK:        rt.store %x, [[OWN]]
func.func @evaluate(%theta: !rt.buf<f64>, %rows: i64, %count: i64) attributes {rt.entry = #rt.entry} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %zero = arith.constant 0.0 : f64
  %last = arith.subi %count, %i1 : i64
  %between = arith.subi %count, %i2 : i64
  %p = rt.alloc variable %count : !rt.buf<f64>
  rt.fill %p, %zero, %count initial : f64
  %rest = rt.view %p[%i1] : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %x = rt.load %theta[%n] : f64
    rt.store %x, %p[%i0] : f64
    scf.for %k = %i0 to %between step %i1 : i64 {
      rt.store %x, %rest[%k] : f64
    }
    rt.store %x, %p[%last] : f64
    %y = rt.load %p[%i1] : f64
    ad.target_add %y
  }
  func.return
}

// -----

// A part is left out, a part is read before all are written, and one that a branch may leave as it was.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-3: rt.fill
func.func @evaluate(%theta: !rt.buf<f64>, %rows: i64, %count: i64, %c: i1) attributes {rt.entry = #rt.entry} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i2 = arith.constant 2 : i64
  %zero = arith.constant 0.0 : f64
  %last = arith.subi %count, %i1 : i64
  %between = arith.subi %count, %i2 : i64
  %p = rt.alloc variable %count : !rt.buf<f64>
  rt.fill %p, %zero, %count initial : f64
  %q = rt.alloc variable %count : !rt.buf<f64>
  rt.fill %q, %zero, %count initial : f64
  %r = rt.alloc variable %count : !rt.buf<f64>
  rt.fill %r, %zero, %count initial : f64
  %rest = rt.view %q[%i1] : !rt.buf<f64>
  %others = rt.view %r[%i1] : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %x = rt.load %theta[%n] : f64
    rt.store %x, %p[%i0] : f64
    rt.store %x, %p[%last] : f64
    %y = rt.load %p[%i1] : f64
    ad.target_add %y
    rt.store %x, %q[%i0] : f64
    scf.for %k = %i0 to %between step %i1 : i64 {
      %following = arith.addi %k, %i1 : i64
      %z = rt.load %rest[%following] : f64
      rt.store %z, %rest[%k] : f64
    }
    rt.store %x, %q[%last] : f64
    %u = rt.load %q[%i1] : f64
    ad.target_add %u
    rt.store %x, %r[%i0] : f64
    scf.for %k = %i0 to %between step %i1 : i64 {
      scf.if %c {
        rt.store %x, %others[%k] : f64
      }
    }
    rt.store %x, %r[%last] : f64
    %w = rt.load %r[%i1] : f64
    ad.target_add %w
  }
  func.return
}

// -----

// A row that an iteration copies to hand the copy on is handed on itself; not a part of it, nor one that is read later.
// CHECK-LABEL: @evaluate
// CHECK:       scf.for {{.*}} iter_args(%before
// CHECK-NOT:     rt.copy
// CHECK:         %[[ROW:.*]] = rt.alloc
// CHECK:         scf.yield %[[ROW]]
// CHECK:       scf.for
// CHECK-COUNT-2: rt.copy
func.func @evaluate(%first: !rt.buf<f64>, %rows: i64, %count: i64, %half: i64) attributes {rt.entry = #rt.entry} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %p = rt.alloc variable %count : !rt.buf<f64>
  %last = scf.for %n = %i0 to %rows step %i1 iter_args(%before = %first) -> (!rt.buf<f64>) : i64 {
    scf.for %k = %i0 to %count step %i1 : i64 {
      %x = rt.load %before[%k] : f64
      %y = rt.math exp(%x) : (f64) -> f64
      rt.store %y, %p[%k] : f64
    }
    %row = rt.alloc %count : !rt.buf<f64>
    rt.copy %p to %row, %count initial : !rt.buf<f64>
    scf.yield %row : !rt.buf<f64>
  }
  %q = rt.alloc variable %count : !rt.buf<f64>
  %ends:2 = scf.for %n = %i0 to %rows step %i1 iter_args(%a = %last, %b = %last) -> (!rt.buf<f64>, !rt.buf<f64>) : i64 {
    scf.for %k = %i0 to %count step %i1 : i64 {
      %x = rt.load %a[%k] : f64
      %y = rt.math exp(%x) : (f64) -> f64
      rt.store %y, %q[%k] : f64
    }
    %row = rt.alloc %half : !rt.buf<f64>
    rt.copy %q to %row, %half initial : !rt.buf<f64>
    %whole = rt.alloc %count : !rt.buf<f64>
    rt.copy %q to %whole, %count initial : !rt.buf<f64>
    %z = rt.load %b[%i0] : f64
    rt.store %z, %q[%i0] : f64
    scf.yield %row, %whole : !rt.buf<f64>, !rt.buf<f64>
  }
  %x = rt.load %ends#0[%i0] : f64
  ad.target_add %x
  func.return
}

// -----

// Of memory that several loops of a branch overwrite the last one has its own; not of what is read behind it.
// CHECK-LABEL: @evaluate
// CHECK:       %p = rt.alloc variable
// CHECK:       %q = rt.alloc variable
// CHECK:       scf.if
// CHECK:         rt.store %{{.*}}, %p[
// CHECK:         scf.for
// CHECK-NEXT:      %[[OWN:.*]] = rt.alloc variable
// CHECK:           rt.store %{{.*}}, %[[OWN]][
// CHECK:           rt.store %{{.*}}, %q[
func.func @evaluate(%x: f64, %rows: i64, %count: i64, %c: i1) attributes {rt.entry = #rt.entry} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %p = rt.alloc variable %count : !rt.buf<f64>
  %q = rt.alloc variable %count : !rt.buf<f64>
  rt.fill %p, %x, %count initial : f64
  rt.fill %q, %x, %count initial : f64
  scf.if %c {
    scf.for %k = %i0 to %count step %i1 : i64 {
      rt.store %x, %p[%k] : f64
      rt.store %x, %q[%k] : f64
    }
    %y = rt.load %p[%i0] : f64
    ad.target_add %y
    scf.for %n = %i0 to %rows step %i1 : i64 {
      scf.for %k = %i0 to %count step %i1 : i64 {
        rt.store %x, %p[%k] : f64
        rt.store %x, %q[%k] : f64
      }
      %z = rt.load %p[%i0] : f64
      ad.target_add %z
      %w = rt.load %q[%i0] : f64
      ad.target_add %w
    }
    %u = rt.load %q[%i0] : f64
    ad.target_add %u
  } else {
  }
  func.return
}
