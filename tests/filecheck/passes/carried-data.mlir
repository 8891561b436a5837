// RUN: stan-opt -p carried-data,dce,verify-dominance --split-input-file %s | filecheck %s

// A number that a row carries, made of data alone, has a table, which `hoist-data` moves to `bind`; a counter has none.
// CHECK-LABEL: @evaluate
// CHECK:      [[TABLE:%.*]] = rt.alloc {{.*}} : !rt.buf<i32>
// CHECK:      scf.for
// CHECK:        scf.for {{.*}} iter_args([[S:%.*]] = %none) -> (i32)
// CHECK:          rt.store [[S]], [[TABLE]][{{%.*}}] initial : i32
// CHECK:      scf.for %i
// CHECK-NEXT:   scf.for %j = {{.*}} iter_args(%c = %none) -> (i32) : i64 {
// CHECK:          [[R:%.*]] = rt.load [[TABLE]][{{%.*}}] : i32
// CHECK:          arith.sitofp [[R]] : i32 to f64
// CHECK:          scf.yield %d : i32
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i32
  %next = arith.constant 1 : i32
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %m = rt.bound 1 : i64
  %y = rt.bound 2 : !rt.buf<i32>
  scf.for %i = %zero to %n step %one : i64 {
    %end, %count = scf.for %j = %zero to %m step %one iter_args(%s = %none, %c = %none) -> (i32, i32) : i64 {
      %t = rt.load %theta[%j] : f64
      %r = arith.sitofp %s : i32 to f64
      %k = arith.sitofp %c : i32 to f64
      %p = arith.mulf %r, %t : f64
      %q = arith.mulf %k, %p : f64
      ad.target_add %q
      %at = arith.muli %i, %m : i64
      %place = arith.addi %at, %j : i64
      %e = rt.load %y[%place] : i32
      %f = arith.addi %s, %e : i32
      %d = arith.addi %c, %next : i32
      scf.yield %f, %d : i32, i32
    }
  }
  func.return %nothing : f64
}

// -----

// What an inner loop adds up of data is one number of the row, and a check of it goes where it is computed. What a
// parameter decides on, and what only ragged loops carry, stays.
// CHECK-LABEL: @evaluate
// CHECK:      [[TABLE:%.*]] = rt.alloc {{.*}} : !rt.buf<i32>
// CHECK:      scf.for
// CHECK:        [[S:%.*]] = scf.for {{.*}} -> (i32)
// CHECK:        rt.store [[S]], [[TABLE]][{{%.*}}] initial : i32
// CHECK:        rt.check
// CHECK:      scf.for %i = {{.*}} iter_args(%v = %none) -> (i32)
// CHECK-NOT:    rt.check
// CHECK:        rt.load [[TABLE]]
// CHECK:        scf.for %h = %zero to %i {{.*}} iter_args(%w = %none) -> (i32)
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i32
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %m = rt.bound 1 : i64
  %y = rt.bound 2 : !rt.buf<i32>
  %last = scf.for %i = %zero to %n step %one iter_args(%v = %none) -> (i32) : i64 {
    %sum = scf.for %j = %zero to %m step %one iter_args(%s = %none) -> (i32) : i64 {
      %e = rt.load %y[%j] : i32
      %a = arith.addi %s, %e : i32
      scf.yield %a : i32
    }
    %ok = arith.cmpi sge, %sum, %none : i32
    rt.check %ok site 0 status 1 with %sum : i32
    %t = rt.load %theta[%i] : f64
    %r = arith.sitofp %sum : i32 to f64
    %p = arith.mulf %r, %t : f64
    ad.target_add %p
    %own = scf.for %h = %zero to %i step %one iter_args(%w = %none) -> (i32) : i64 {
      %e = rt.load %y[%h] : i32
      %a = arith.addi %w, %e : i32
      %u = arith.sitofp %w : i32 to f64
      %q = arith.mulf %u, %t : f64
      ad.target_add %q
      scf.yield %a : i32
    }
    %some = arith.cmpf ogt, %t, %nothing : f64
    %d = arith.sitofp %v : i32 to f64
    %x = arith.mulf %d, %t : f64
    ad.target_add %x
    %l = scf.if %some -> (i32) {
      %g = arith.addi %v, %sum : i32
      scf.yield %g : i32
    } else {
      scf.yield %v : i32
    }
    scf.yield %l : i32
  }
  func.return %nothing : f64
}

// -----

// Memory of an iteration, in which elements are made of those before, of data alone: each iteration has a part of a
// table. Memory that is read before it is filled stays.
// CHECK-LABEL: @evaluate
// CHECK:      [[TABLE:%.*]] = rt.alloc
// CHECK:      scf.for
// CHECK:        [[P:%.*]] = rt.view [[TABLE]]
// CHECK:        rt.store {{%.*}}, [[P]][
// CHECK:      scf.for %i
// CHECK:        [[Q:%.*]] = rt.view [[TABLE]]
// CHECK-NEXT:   %r = rt.alloc
// CHECK:        rt.load [[Q]][
// CHECK:        rt.store {{%.*}}, %r[
func.func @evaluate(%theta: f64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i32
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %m = rt.bound 1 : i64
  %y = rt.bound 2 : !rt.buf<i32>
  scf.for %i = %zero to %n step %one : i64 {
    %s = rt.alloc variable %m : !rt.buf<i32>
    %r = rt.alloc variable %m : !rt.buf<i32>
    rt.fill %s, %none, %m initial : i32
    rt.fill %r, %none, %m initial : i32
    scf.for %j = %one to %m step %one : i64 {
      %before = arith.subi %j, %one : i64
      %a = rt.load %s[%before] : i32
      %e = rt.load %y[%j] : i32
      %b = arith.addi %a, %e : i32
      rt.store %b, %s[%j] : i32
    }
    scf.for %k = %one to %m step %one : i64 {
      %x = rt.load %s[%k] : i32
      %f = arith.sitofp %x : i32 to f64
      %p = arith.mulf %f, %theta : f64
      ad.target_add %p
      %before = arith.subi %k, %one : i64
      %c = rt.load %r[%before] : i32
      %d = arith.addi %c, %x : i32
      rt.store %d, %r[%k] : i32
      %g = arith.sitofp %c : i32 to f64
      %q = arith.mulf %g, %theta : f64
      ad.target_add %q
    }
  }
  func.return %nothing : f64
}

// -----

// Checks of data that nothing carries go with the others, and are not made twice.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for
// CHECK:        rt.store
// CHECK:        rt.check
// CHECK:      scf.for %i
// CHECK-NOT:    rt.check
// CHECK:        ad.target_add
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i32
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<i32>
  %last = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (i32) : i64 {
    %e = rt.load %y[%i] : i32
    %ok = arith.cmpi sge, %e, %none : i32
    rt.check %ok site 0 status 1 with %e : i32
    %t = rt.load %theta[%i] : f64
    %r = arith.sitofp %s : i32 to f64
    %p = arith.mulf %r, %t : f64
    ad.target_add %p
    %next = arith.addi %s, %e : i32
    scf.yield %next : i32
  }
  func.return %nothing : f64
}

// -----

// Memory that several ops fill with data, one of them in a loop, is a part of a table, too; what one loop fills is not.
// CHECK-LABEL: @evaluate
// CHECK:      [[TABLE:%.*]] = rt.alloc {{.*}} : !rt.buf<f64>
// CHECK:      scf.for
// CHECK:        rt.view [[TABLE]]
// CHECK:      scf.for %i
// CHECK:        [[PART:%.*]] = rt.view [[TABLE]]
// CHECK:        rt.alloc %m
// CHECK:        rt.load [[PART]]
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %first = arith.constant 1.0 : f64
  %nothing = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %m = rt.bound 1 : i64
  %x = rt.bound 2 : !rt.buf<f64>
  %width = arith.addi %m, %one : i64
  scf.for %i = %zero to %n step %one : i64 {
    %row = rt.alloc %width : !rt.buf<f64>
    rt.store %first, %row[%zero] initial : f64
    %rest = rt.view %row[%one] : !rt.buf<f64>
    %copy = rt.alloc %m : !rt.buf<f64>
    scf.for %j = %zero to %m step %one : i64 {
      %at = arith.muli %j, %n : i64
      %place = arith.addi %at, %i : i64
      %e = rt.load %x[%place] : f64
      rt.store %e, %rest[%j] initial : f64
    }
    scf.for %j = %zero to %m step %one : i64 {
      %e = rt.load %x[%j] : f64
      rt.store %e, %copy[%j] initial : f64
    }
    scf.for %k = %zero to %m step %one : i64 {
      %e = rt.load %row[%k] : f64
      %c = rt.load %copy[%k] : f64
      %t = rt.load %theta[%k] : f64
      %p = arith.mulf %e, %t : f64
      %q = arith.mulf %p, %c : f64
      ad.target_add %q
    }
  }
  func.return %nothing : f64
}
