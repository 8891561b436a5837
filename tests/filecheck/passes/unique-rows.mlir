// RUN: stan-opt --split-input-file --verify-each -p unique-rows,dce %s | filecheck %s

// A loop over rows of two columns: a group for each weight, whose sums are multiplied behind its rows.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %g = rt.bound 2 : !rt.buf<i32>
    %sum = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %b = rt.load %g[%i] : i32
      %k = arith.extsi %b : i32 to i64
      %t = rt.load %theta[%k] : f64
      %p = arith.mulf %a, %t : f64
      %e = rt.math exp(%p) : (f64) -> f64
      ad.target_add %e
      %r = arith.addf %s, %t fastmath<reassoc> : f64
      scf.yield %r : f64
    }
    ad.target_add %sum
    func.return %none : f64
  }
}
// CHECK:       func.func @evaluate
// CHECK:         [[SUM:%.*]] = scf.for [[G:%.*]] = {{.*}} iter_args([[S:%.*]] = %none) -> (f64) : i64 {
// CHECK:           [[FIRST:%.*]] = rt.load [[STARTS:%.*]][[[G]]] : i64
// CHECK-NEXT:      [[LAST:%.*]] = rt.load [[STARTS]][{{.*}}] : i64
// CHECK-NEXT:      [[W:%.*]] = rt.load {{.*}}[[[G]]] : f64
// CHECK-NEXT:      [[INNER:%.*]] = scf.for [[R:%.*]] = [[FIRST]] to [[LAST]] {{.*}} -> (f64) : i64 {
// CHECK:             [[P:%.*]] = rt.math exp(%p) : (f64) -> f64
// CHECK-NEXT:        [[WP:%.*]] = arith.mulf [[W]], [[P]]
// CHECK-NEXT:        ad.target_add [[WP]]
// CHECK:             scf.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      [[WS:%.*]] = arith.mulf [[W]], [[INNER]]
// CHECK-NEXT:      [[T:%.*]] = arith.addf [[S]], [[WS]] fastmath<reassoc> : f64
// CHECK-NEXT:      scf.yield [[T]] : f64
// CHECK-NEXT:    } {rt.loop = #rt.loop<groups>}
// CHECK:       func.func @bind
// CHECK:         rt.kernel sample_reals
// CHECK:         rt.kernel group_ints
// CHECK:         rt.kernel group_reals
// CHECK:         rt.kernel weigh_rows
// CHECK:         rt.layout "unique rows"

// -----

// A parameter of its own for each row, and a sum that later rows read: nothing.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %x[%i] : f64
      %t = rt.load %theta[%i] : f64
      %p = arith.mulf %a, %t : f64
      ad.target_add %p
    }
    %sum = scf.for %j = %zero to %n step %one iter_args(%s = %none) -> (f64) : i64 {
      %b = rt.load %x[%j] : f64
      %q = arith.mulf %b, %s : f64
      ad.target_add %q
      %r = arith.addf %s, %b fastmath<reassoc> : f64
      scf.yield %r : f64
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @evaluate
// CHECK-NOT:   rt.loop
// CHECK-NOT:   rt.kernel

// -----

// In a branch of which data decide: groups are found in front of it, of no rows where it is not taken.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %asked = rt.bound 2 : i64
    %is_asked = arith.cmpi ne, %asked, %zero : i64
    scf.if %is_asked {
      %t = rt.load %theta[%zero] : f64
      scf.for %i = %zero to %n step %one : i64 {
        %a = rt.load %x[%i] : f64
        %p = arith.mulf %a, %t : f64
        %e = rt.math exp(%p) : (f64) -> f64
        ad.target_add %e
      }
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @evaluate
// CHECK:         scf.if
// CHECK:           rt.load %theta
// CHECK:           } {rt.loop = #rt.loop<groups>}
// CHECK:       func.func @bind
// CHECK:         [[END:%.*]] = arith.select {{.*}} : i64
// CHECK:         arith.subi [[END]]
// CHECK:         rt.kernel group_reals

// -----

// What a row of a nest computes of its numbers and of data is a column, for which a table is filled; data that nothing
// else reads are none.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: f64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %m = rt.bound 1 : i64
    %s = rt.bound 2 : !rt.buf<i32>
    scf.for %i = %zero to %n step %one : i64 {
      %begin = arith.muli %i, %m : i64
      scf.for %j = %zero to %m step %one : i64 {
        %at = arith.addi %begin, %j : i64
        %a = rt.load %s[%at] : i32
        %t = arith.trunci %j : i64 to i32
        %left = arith.subi %t, %a : i32
        %r = arith.sitofp %left : i32 to f64
        %p = arith.mulf %r, %theta : f64
        ad.target_add %p
      }
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @evaluate
// CHECK:         scf.for [[G:%.*]] = {{.*}} : i64 {
// CHECK:           scf.for [[R:%.*]] = {{.*}} : i64 {
// CHECK:             [[LEFT:%.*]] = rt.load {{%.*}}[[[R]]] : i32
// CHECK-NEXT:        %r = arith.sitofp [[LEFT]] : i32 to f64
// CHECK:       func.func @bind
// CHECK:         rt.store %left, {{%.*}}[{{%.*}}] : i32
// CHECK:         rt.kernel group_ints
// CHECK-NOT:     rt.kernel group_ints
// CHECK:         rt.kernel weigh_rows

// -----

// Arms of one branch read different columns, of which a row may have no other: both are in one table.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: f64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %no = arith.constant 0 : i32
    %n = rt.bound 0 : i64
    %s = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %y = rt.bound 3 : !rt.buf<f64>
    %z = rt.bound 4 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %s[%i] : i32
      %c = arith.cmpi eq, %a, %no : i32
      scf.if %c {
        %u = rt.load %x[%i] : f64
        %p = arith.mulf %u, %theta : f64
        %e = rt.math exp(%p) : (f64) -> f64
        ad.target_add %e
      } else {
        %v = rt.load %y[%i] : f64
        %w = rt.load %z[%i] : f64
        %q = arith.mulf %v, %theta : f64
        %r = arith.addf %q, %w : f64
        %f = rt.math exp(%r) : (f64) -> f64
        ad.target_add %f
      }
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @bind
// CHECK:         rt.store %u, [[TABLE:%[0-9]+]][
// CHECK:         rt.store %v, [[TABLE]][
// CHECK:         rt.store %w, [[OTHER:%[0-9]+]][
// CHECK:         rt.kernel group_reals([[TABLE]],
// CHECK:         rt.kernel group_reals([[OTHER]],
// CHECK-NOT:     rt.kernel group_reals

// -----

// A column that multiplies all that rows add is no reason to keep rows apart: its sums are taken.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: f64, %adj: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %w = rt.bound 2 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %u = rt.load %x[%i] : f64
      %v = rt.load %w[%i] : f64
      %p = arith.mulf %u, %theta : f64
      %e = rt.math exp(%p) : (f64) -> f64
      %a = arith.mulf %e, %v : f64
      %b = arith.negf %a : f64
      %d = arith.mulf %u, %b : f64
      ad.target_add %b
      ad.accumulate %adj[%zero], %d
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @bind
// CHECK:         rt.kernel weight_kinds
// CHECK:         rt.kernel group_ints
// CHECK:         rt.kernel group_reals
// CHECK-NOT:     rt.kernel group_reals
// CHECK:         rt.kernel sum_weights
// CHECK:         rt.kernel weigh_rows
// CHECK:         rt.kernel take_reals
// CHECK:         rt.kernel take_of_groups

// -----

// Where something else is added, too, their mean is taken: what a row adds is affine in the column. Rows with numbers of
// other signs stay apart.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: f64, %adj: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %w = rt.bound 2 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %u = rt.load %x[%i] : f64
      %v = rt.load %w[%i] : f64
      %p = arith.mulf %u, %theta : f64
      %e = rt.math exp(%p) : (f64) -> f64
      %a = arith.mulf %e, %v : f64
      ad.target_add %a
      ad.accumulate %adj[%zero], %e
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @bind
// CHECK:         rt.kernel weight_kinds
// CHECK:         rt.kernel group_ints
// CHECK:         rt.kernel group_reals
// CHECK-NOT:     rt.kernel group_reals
// CHECK-NOT:     rt.kernel sum_weights
// CHECK:         rt.kernel group_means
// CHECK:         rt.kernel weigh_rows
// CHECK:         rt.kernel take_of_groups

// -----

// An int stands for the mean of what is computed of it; equal rows have the same conditions on it.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: f64, %adj: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %w = rt.bound 2 : !rt.buf<i32>
    %three = arith.constant 3 : i32
    scf.for %i = %zero to %n step %one : i64 {
      %u = rt.load %x[%i] : f64
      %y = rt.load %w[%i] : i32
      %c = arith.cmpi eq, %y, %three : i32
      %v = arith.sitofp %y : i32 to f64
      %p = arith.mulf %u, %theta : f64
      %e = rt.math exp(%p) : (f64) -> f64
      %m = arith.mulf %e, %v : f64
      %a = arith.select %c, %none, %m : f64
      ad.target_add %a
      ad.accumulate %adj[%zero], %e
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @evaluate
// CHECK:         %[[INT:.*]] = rt.load %{{.*}} : i32
// CHECK:         %[[ZERO:.*]] = arith.cmpi eq, %[[INT]]
// CHECK:         %[[MEAN:.*]] = rt.load %{{.*}} : f64
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %{{.*}}, %[[MEAN]]
// CHECK:         arith.select %[[ZERO]], %{{.*}}, %[[PRODUCT]]
// CHECK:       func.func @bind
// CHECK:         rt.kernel weight_kinds
// CHECK:         rt.kernel group_ints
// CHECK:         arith.cmpi eq
// CHECK:         rt.kernel group_ints
// CHECK:         rt.kernel group_means
// CHECK:         rt.kernel take_ints
// CHECK:         rt.kernel take_of_groups

// -----

// What compares with 0 compares the mean: equal rows have numbers of one sign.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: f64, %adj: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %w = rt.bound 2 : !rt.buf<i32>
    %none_of_it = arith.constant 0 : i32
    scf.for %i = %zero to %n step %one : i64 {
      %u = rt.load %x[%i] : f64
      %y = rt.load %w[%i] : i32
      %c = arith.cmpi eq, %y, %none_of_it : i32
      %v = arith.sitofp %y : i32 to f64
      %p = arith.mulf %u, %theta : f64
      %e = rt.math exp(%p) : (f64) -> f64
      %m = arith.mulf %e, %v : f64
      %a = arith.select %c, %none, %m : f64
      ad.target_add %a
      ad.accumulate %adj[%zero], %e
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @evaluate
// CHECK:         %v = rt.load {{.*}} : f64
// CHECK-NOT:     : i32
// CHECK:         arith.cmpf oeq, %v, {{.*}} : f64
// CHECK:       func.func @bind

// -----

// Not where what is added is not affine in it.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: f64, %adj: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %w = rt.bound 2 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %u = rt.load %x[%i] : f64
      %v = rt.load %w[%i] : f64
      %p = arith.mulf %u, %theta : f64
      %e = rt.math exp(%p) : (f64) -> f64
      %q = arith.mulf %v, %v : f64
      %a = arith.mulf %e, %q : f64
      ad.target_add %a
      ad.accumulate %adj[%zero], %e
    }
    func.return %none : f64
  }
}
// CHECK:       func.func @bind
// CHECK-NOT:     rt.kernel weight_kinds
// CHECK-NOT:     rt.kernel group_means
// CHECK:         rt.kernel weigh_rows

// -----

// A table of what one arm computes has an entry for each row: it is 0 in others, and compared and copied as it is. The
// condition that parts the rows is compared, and not copied.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: f64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %no = arith.constant 0 : i32
    %n = rt.bound 0 : i64
    %s = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %t = rt.bound 3 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %s[%i] : i32
      %c = arith.cmpi eq, %a, %no : i32
      %u = rt.load %x[%i] : f64
      scf.if %c {
        %l = rt.load %t[%i] : f64
        %p = arith.mulf %l, %theta : f64
        %e = rt.math exp(%p) : (f64) -> f64
        ad.target_add %e
      } else {
        %q = arith.mulf %u, %theta : f64
        %f = rt.math exp(%q) : (f64) -> f64
        ad.target_add %f
      }
    }
    func.return %none : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %no = arith.constant 0 : i32
    %n = rt.bound 0 : i64
    %s = rt.bound 1 : !rt.buf<i32>
    %x = rt.bound 2 : !rt.buf<f64>
    %span = arith.subi %n, %zero : i64
    %rows = arith.maxsi %span, %zero : i64
    %t = rt.alloc_bound %rows : !rt.buf<f64>
    rt.set_bound 3, %t : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %s[%i] : i32
      %c = arith.cmpi eq, %a, %no : i32
      scf.if %c {
        %u = rt.load %x[%i] : f64
        %l = rt.math log(%u) : (f64) -> f64
        rt.store %l, %t[%i] initial : f64
      } else {
      }
    }
    func.return
  }
}
// CHECK:       func.func @bind
// CHECK:         %t = rt.alloc_bound %rows : !rt.buf<f64>
// CHECK:         rt.fill %t, {{.*}}, %rows initial : f64
// CHECK:         rt.store %l, %t[%i] initial : f64
// CHECK-NOT:     rt.alloc_bound
// CHECK:         [[X:%.*]] = rt.view %x_1[
// CHECK-NEXT:    [[T:%.*]] = rt.view %t_1[
// CHECK-NOT:     rt.alloc_bound
// CHECK:         rt.kernel group_ints
// CHECK:         rt.kernel group_reals([[X]],
// CHECK:         rt.kernel group_reals([[T]],
// CHECK-NOT:     rt.kernel take_ints
// CHECK:         rt.kernel take_reals([[X]],
// CHECK:         rt.kernel take_reals([[T]],
