// RUN: stan-opt -p linear-layouts,verify-dominance --split-input-file %s | filecheck %s

// A branch has the reduced rows, by the kernel where numbers cancel, or the loop; rows are handed over by data alone.
// CHECK-LABEL: @evaluate
// CHECK:      [[SIZE:%.*]] = rt.math abs(%s)
// CHECK:      [[FINITE:%.*]] = arith.cmpf olt, [[SIZE]]
// CHECK:      [[OK:%.*]] = arith.andi {{.*}}, [[FINITE]]
// CHECK-NEXT: scf.if [[OK]] {
// CHECK-NEXT: scf.if
// CHECK:      rt.kernel reduced_squares
// CHECK:      ad.target_add
// CHECK:      } else {
// CHECK-NOT:  scf.for
// CHECK:      ad.target_add
// CHECK-NOT:  ad.target_add
// CHECK:      } else {
// CHECK-NEXT: scf.for
// CHECK-NOT:  rt.loop<cold>
// CHECK-LABEL: @bind
// CHECK-NOT:  scf.for
// CHECK:      rt.kernel design_begin
// CHECK:      scf.for {{.*}} %i0 to %n
// CHECK:        [[HELD:%[0-9]+]] = rt.load [[STATE:%[0-9]+]]
// CHECK:        rt.store {{.*}}[[[HELD]]] : i64
// CHECK-NEXT:   [[NOW:%[0-9]+]] = arith.addi [[HELD]], {{.*}}
// CHECK-NEXT:   rt.store [[NOW]], [[STATE]]
// CHECK-NEXT:   [[FULL:%[0-9]+]] = arith.cmpi eq, [[NOW]]
// CHECK-NEXT:   scf.if [[FULL]] {
// CHECK-NEXT:     rt.kernel design_rows
// CHECK:      rt.kernel design_turn
// CHECK:      rt.layout "reduced rows" slot 3 outcome {{.*}} figures ["rows", "groups", "coefficients", "bytes"]
// CHECK:      rt.kernel design_tables
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %b = rt.load %theta[%i0] : f64
    %s = rt.load %theta[%i1] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %u = rt.load %x[%i] : f64
      %m = arith.mulf %b, %u : f64
      %r = arith.subf %v, %m : f64
      %z = arith.mulf %r, %s : f64
      %q = rt.math square(%z) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Weighted squares are those of rows times the root of the weight; what else is weighted is multiplied by a sum of data.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK-NOT:  scf.for
// CHECK:      arith.mulf {{%.*}}, %c : f64
// CHECK:      } else {
// CHECK-NOT:  rt.loop<cold>
// CHECK:      func.func @bind
// CHECK:      rt.math sqrt
// CHECK:      rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %w = rt.bound 3 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %b = rt.load %theta[%i0] : f64
    %c = rt.load %theta[%i1] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %u = rt.load %x[%i] : f64
      %e = rt.load %w[%i] : f64
      %m = arith.mulf %b, %u : f64
      %r = arith.subf %v, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      %t = arith.subf %c, %q : f64
      %p = arith.mulf %t, %e : f64
      ad.target_add %p
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// What is squared is not linear: nothing happens.
// CHECK-LABEL: @evaluate
// CHECK-NOT: rt.kernel
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %b = rt.load %theta[%i0] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %u = rt.load %x[%i] : f64
      %m = arith.mulf %b, %u : f64
      %e = rt.math exp(%m) : (f64) -> f64
      %q = rt.math square(%e) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Each row reads a segment of data, by a view of its own.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK:      func.func @bind
// CHECK:      rt.view
// CHECK:      rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %k to %n step %i1 : i64 {
      %begin = arith.subi %i, %k : i64
      %part = rt.view %y[%begin] : !rt.buf<f64>
      %m = scf.for %j = %i0 to %k step %i1 iter_args(%sum = %zero) -> (f64) : i64 {
        %b = rt.load %theta[%j] : f64
        %v = rt.load %part[%j] : f64
        %p = arith.mulf %b, %v : f64
        %t = arith.addf %sum, %p fastmath<reassoc> : f64
        scf.yield %t : f64
      }
      %u = rt.load %y[%i] : f64
      %r = arith.subf %u, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// A segment of parameters is another one in each row: nothing.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  scf.if
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %k to %n step %i1 : i64 {
      %begin = arith.subi %i, %k : i64
      %part = rt.view %theta[%begin] : !rt.buf<f64>
      %m = scf.for %j = %i0 to %k step %i1 iter_args(%sum = %zero) -> (f64) : i64 {
        %b = rt.load %part[%j] : f64
        %v = rt.load %y[%j] : f64
        %p = arith.mulf %b, %v : f64
        %t = arith.addf %sum, %p fastmath<reassoc> : f64
        scf.yield %t : f64
      }
      %u = rt.load %y[%i] : f64
      %r = arith.subf %u, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// A coefficient that data choose has a column that is 0 where they do not; what the arm reads is read there alone.
// CHECK-LABEL: @evaluate
// CHECK:      func.func @bind
// CHECK:      scf.if {{.*}} -> (f64) {
// CHECK:        rt.load
// CHECK:        arith.constant 1.000000e+00 : f64
// CHECK-NEXT:   arith.mulf
// CHECK-NEXT:   scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT:   arith.constant 0.000000e+00 : f64
// CHECK-NEXT:   scf.yield
// CHECK:      rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %seen = rt.bound 3 : !rt.buf<i32>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %none = arith.constant 0 : i32
    %a = rt.load %theta[%i0] : f64
    %b = rt.load %theta[%i1] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %f = rt.load %seen[%i] : i32
      %c = arith.cmpi ne, %f, %none : i32
      %m = scf.if %c -> (f64) {
        %u = rt.load %x[%i] : f64
        %p = arith.mulf %b, %u : f64
        %t = arith.addf %a, %p : f64
        scf.yield %t : f64
      } else {
        scf.yield %a : f64
      }
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// What parameters choose is not linear.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %a = rt.load %theta[%i0] : f64
    %b = rt.load %theta[%i1] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %c = arith.cmpf olt, %a, %v : f64
      %m = scf.if %c -> (f64) {
        scf.yield %b : f64
      } else {
        scf.yield %a : f64
      }
      %r = arith.subf %v, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Coefficients of groups: loops that hand them to the kernel are not widened, that over reduced rows may be.
// CHECK-LABEL: @evaluate
// CHECK:      rt.bound
// CHECK:      scf.for
// CHECK:      scf.if
// CHECK:      scf.for
// CHECK:      } {rt.loop = #rt.loop<cold>}
// CHECK:      rt.kernel reduced_squares
// CHECK:      } else {
// CHECK:      scf.for
// CHECK-NOT:  rt.loop<cold>
// CHECK:      func.func @bind
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %g = rt.bound 2 : !rt.buf<i32>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %narrow = rt.load %g[%i] : i32
      %group = arith.extsi %narrow : i32 to i64
      %u = rt.load %theta[%group] : f64
      %r = arith.subf %v, %u : f64
      %q = arith.mulf %r, %r : f64
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// A coefficient of a group that only some rows read, in a branch of data: the index of others is not looked at.
// CHECK-LABEL: @evaluate
// CHECK:      func.func @bind
// CHECK:      [[KEY:%[0-9a-z_]+]] = scf.if {{.*}} -> (i64) {
// CHECK:        rt.load
// CHECK:        scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT:   arith.constant -9223372036854775808 : i64
// CHECK-NEXT:   scf.yield
// CHECK:      rt.store [[KEY]], [[KEYS:%[0-9a-z_]+]][
// CHECK:      rt.kernel design_rows({{.*}}, [[KEYS]])
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %group = rt.bound 1 : !rt.buf<i32>
    %y = rt.bound 2 : !rt.buf<f64>
    %seen = rt.bound 3 : !rt.buf<i32>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %none = arith.constant 0 : i32
    %a = rt.load %theta[%i0] : f64
    %u = rt.view %theta[%i1] : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %f = rt.load %seen[%i] : i32
      %c = arith.cmpi ne, %f, %none : i32
      %m = scf.if %c -> (f64) {
        %g = rt.load %group[%i] : i32
        %k = arith.extsi %g : i32 to i64
        %of = rt.load %u[%k] : f64
        %t = arith.addf %a, %of : f64
        scf.yield %t : f64
      } else {
        scf.yield %a : f64
      }
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Rows in a nest, with a coefficient by the number of the inner loop: rows with the same number come one behind the other.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK:      func.func @bind
// CHECK:      rt.kernel design_begin
// CHECK:      scf.for [[I:%[0-9]+]] = %zero to %people
// CHECK-NEXT:   [[ONE:%[0-9]+]] = arith.constant 1
// CHECK-NEXT:   scf.for [[T:%[0-9]+]] = %zero to %times
// CHECK:          [[FIRST:%[0-9]+]] = arith.muli [[T]], %people
// CHECK-NEXT:     [[AT:%[0-9]+]] = arith.addi [[FIRST]], [[I]]
// CHECK-NEXT:     rt.load %y[[[AT]]]
// CHECK:          rt.store [[I]]
// CHECK:          rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %times = rt.bound 0 : i64
    %people = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    scf.for %t = %zero to %times step %one : i64 {
      scf.for %i = %zero to %people step %one : i64 {
        %first = arith.muli %t, %people : i64
        %at = arith.addi %first, %i : i64
        %v = rt.load %y[%at] : f64
        %a = rt.load %theta[%i] : f64
        %r = arith.subf %v, %a : f64
        %q = rt.math square(%r) : (f64) -> f64
        ad.target_add %q
      }
    }
    %none = arith.constant 0.0 : f64
    func.return %none : f64
  }
}

// -----

// Something else reads the means, too: what fills them stays, and the loop as it was has a copy of its own.
// CHECK-LABEL: @evaluate
// CHECK:      %mu = rt.alloc %n
// CHECK:      rt.store {{.*}}, %mu[%i]
// CHECK:      scf.if
// CHECK-NOT:  %mu[
// CHECK:      } else {
// CHECK:        [[OWN:%mu_[0-9]+]] = rt.alloc %n
// CHECK:        rt.store {{.*}}, [[OWN]]
// CHECK:        rt.load [[OWN]][%j]
// CHECK:      rt.load %mu[%k]
// CHECK-NEXT: rt.math exp
// CHECK-LABEL: @bind
// CHECK:      rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %b = rt.load %theta[%i0] : f64
    %mu = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %u = rt.load %x[%i] : f64
      %m = arith.mulf %b, %u : f64
      rt.store %m, %mu[%i] : f64
    }
    scf.for %j = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%j] : f64
      %m = rt.load %mu[%j] : f64
      %r = arith.subf %v, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    scf.for %k = %i0 to %n step %i1 : i64 {
      %m = rt.load %mu[%k] : f64
      %e = rt.math exp(%m) : (f64) -> f64
      ad.target_add %e
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Rows that a branch of data leaves out have no data, whose number is that of all rows; what is checked of the others
// holds. What an arm reads is read where it is taken.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %nothing = arith.constant 0 : i32
    %most = arith.constant 0x7ff0000000000000 : f64
    %rows = rt.bound 0 : i64
    %seen = rt.bound 1 : !rt.buf<i32>
    %y = rt.bound 2 : !rt.buf<f64>
    %b = rt.load %theta[%zero] : f64
    %flag = scf.for %i = %zero to %rows step %one iter_args(%f = %zero) -> (i64) : i64 {
      %s = rt.load %seen[%i] : i32
      %is = arith.cmpi ne, %s, %nothing : i32
      %holds = scf.if %is -> (i1) {
        %v = rt.load %y[%i] : f64
        %r = arith.subf %v, %b : f64
        %q = rt.math square(%r) : (f64) -> f64
        ad.target_add %q
        %c = arith.cmpf olt, %b, %most : f64
        scf.yield %c : i1
      } else {
        %all = arith.constant true
        scf.yield %all : i1
      }
      %true = arith.constant true
      %not = arith.xori %holds, %true : i1
      %e = arith.extui %not : i1 to i64
      %g = arith.ori %f, %e : i64
      scf.yield %g : i64
    }
    %fine = arith.cmpi eq, %flag, %zero : i64
    rt.check %fine site -1 status 3
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK:           ad.target_add
// CHECK:         } else {
// CHECK:           scf.for {{.*}} = %zero to %rows
// CHECK:             scf.if
// CHECK:         rt.check
// CHECK-LABEL: func.func @bind
// CHECK:         scf.for
// CHECK:           scf.if {{.*}} -> (f64) {
// CHECK-NEXT:        rt.load

// -----

// Rows with as many entries as data say, in columns that data of each entry choose: these are shared by all rows.
// CHECK-LABEL: @evaluate
// CHECK:      rt.kernel reduced_squares
// CHECK:      } else {
// CHECK-NEXT: scf.for
// CHECK-LABEL: @bind
// CHECK:      [[SEVERAL:%[0-9]+]] = arith.constant -1 : i64
// CHECK:      rt.store [[SEVERAL]], [[KNOWN:%[0-9]+]][{{.*}}] : i64
// CHECK:      scf.for {{.*}} %i0 to %n
// CHECK:        scf.for
// CHECK:          rt.kernel design_key([[KNOWN]]
// CHECK:      rt.kernel design_groups([[KNOWN]]
// CHECK:      rt.kernel design_begin
// CHECK:      scf.for {{.*}} %i0 to %n
// CHECK:        scf.for [[ENTRY:%[0-9]+]] =
// CHECK-NEXT:     rt.load %v[[[ENTRY]]] : i64
// CHECK:          [[BEFORE:%[0-9]+]] = rt.load [[BLOCK:%[0-9]+]][[[PLACE:%[0-9]+]]] : f64
// CHECK-NEXT:     [[X:%[0-9]+]] = rt.load %w[[[ENTRY]]] : f64
// CHECK-NEXT:     [[SUM:%[0-9]+]] = arith.addf [[BEFORE]], [[X]]
// CHECK-NEXT:     rt.store [[SUM]], [[BLOCK]][[[PLACE]]] : f64
// CHECK:      rt.layout "reduced rows"
builtin.module attributes {rt.slots = #rt.slots<6>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %ends = rt.bound 1 : !rt.buf<i64>
    %w = rt.bound 2 : !rt.buf<f64>
    %v = rt.bound 3 : !rt.buf<i64>
    %y = rt.bound 4 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %next = arith.addi %i, %i1 : i64
      %begin = rt.load %ends[%i] : i64
      %end = rt.load %ends[%next] : i64
      %m = scf.for %k = %begin to %end step %i1 iter_args(%s = %zero) -> (f64) : i64 {
        %key = rt.load %v[%k] : i64
        %b = rt.load %theta[%key] : f64
        %x = rt.load %w[%k] : f64
        %product = arith.mulf %x, %b : f64
        %t = arith.addf %s, %product : f64
        scf.yield %t : f64
      }
      %u = rt.load %y[%i] : f64
      %r = arith.subf %u, %m : f64
      %q = rt.math square(%r) : (f64) -> f64
      ad.target_add %q
    }
    func.return %zero : f64
  }
}

// -----

// Squares in an arm of a branch in an arm: data are 0 in the rows of all other arms.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK-LABEL: @bind
// CHECK:      rt.kernel design_begin
// CHECK:      scf.for {{.*}} %i0 to %n
// CHECK:        scf.if {{%[0-9]+}} -> (f64) {
// CHECK-NEXT:     arith.constant 0.0
// CHECK-NEXT:     scf.yield
// CHECK-NEXT:   } else {
// CHECK:          scf.if {{%[0-9]+}} -> (f64) {
// CHECK:        rt.kernel design_rows
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %b = rt.load %theta[%i0] : f64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %u = rt.load %x[%i] : f64
      %low = arith.cmpf olt, %v, %zero : f64
      %high = arith.cmpf ogt, %v, %u : f64
      scf.if %low {
      } else {
        scf.if %high {
        } else {
          %m = arith.mulf %b, %u : f64
          %r = arith.subf %v, %m : f64
          %q = rt.math square(%r) : (f64) -> f64
          ad.target_add %q
        }
      }
    }
    func.return %zero : f64
  }
}
