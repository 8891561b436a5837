// RUN: stan-opt --split-input-file --verify-each -p private-rows,cse,dce,verify-dominance %s | filecheck %s

// A matrix that one loop fills and another one reads, a row each: an iteration has its row alone.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %nm = arith.muli %n, %m : i64
    %g = rt.alloc variable %nm : !rt.buf<f64>
    rt.fill %g, %zero, %nm initial : f64
    scf.for %i = %0 to %n step %1 : i64 {
      scf.for %k = %0 to %m step %1 : i64 {
        %row = arith.muli %i, %m : i64
        %at = arith.addi %row, %k : i64
        %a = rt.load %x[%at] : f64
        %e = rt.math exp(%a) : (f64) -> f64
        rt.store %e, %g[%at] : f64
      }
    }
    scf.for %j = %0 to %n step %1 : i64 {
      %begin = arith.muli %j, %m : i64
      %part = rt.view %g[%begin] : !rt.buf<f64>
      %s = scf.for %l = %0 to %m step %1 iter_args(%t = %zero) -> (f64) : i64 {
        %b = rt.load %part[%l] : f64
        %u = arith.addf %t, %b fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      %v = rt.math log(%s) : (f64) -> f64
      ad.target_add %v
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.alloc
// CHECK:         scf.for %i = %0 to %n
// CHECK:           [[P:%.*]] = rt.alloc variable
// CHECK-NEXT:      rt.fill [[P]], %zero
// CHECK-NEXT:      scf.for %k = %0 to %m
// CHECK:             rt.store %e, [[P]][%k]
// CHECK:           scf.for %l = %0 to %m
// CHECK-NEXT:        rt.load [[P]][%l]
// CHECK:           ad.target_add
// CHECK-NOT:     scf.for

// -----

// A matrix that lies column by column, two columns written out.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %zero = arith.constant 0.0 : f64
    %nm = arith.muli %n, %two : i64
    %g = rt.alloc variable %nm : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %a = rt.load %x[%i] : f64
      rt.store %a, %g[%i] : f64
      %next = arith.addi %n, %i : i64
      %e = rt.math exp(%a) : (f64) -> f64
      rt.store %e, %g[%next] : f64
    }
    scf.for %j = %0 to %n step %1 : i64 {
      %b = rt.load %g[%j] : f64
      %second = arith.addi %n, %j : i64
      %c = rt.load %g[%second] : f64
      %d = arith.mulf %b, %c : f64
      ad.target_add %d
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         scf.for %i
// CHECK-NEXT:      [[P:%.*]] = rt.alloc variable %two
// CHECK:           rt.store {{.*}}, [[P]][%0]
// CHECK:           rt.store {{.*}}, [[P]][%1]
// CHECK:           ad.target_add
// CHECK-NOT:     scf.for

// -----

// The next row, or a row that data choose: iterations share memory.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %zero = arith.constant 0.0 : f64
    %nm = arith.muli %n, %two : i64
    %g = rt.alloc variable %nm : !rt.buf<f64>
    %h = rt.alloc variable %nm : !rt.buf<f64>
    %which = rt.bound 0 : !rt.buf<i64>
    scf.for %i = %1 to %n step %1 : i64 {
      %a = rt.load %x[%i] : f64
      %e = rt.math exp(%a) : (f64) -> f64
      rt.store %e, %g[%i] : f64
      rt.store %e, %h[%i] : f64
    }
    scf.for %j = %1 to %n step %1 : i64 {
      %next = arith.addi %j, %1 : i64
      %b = rt.load %g[%next] : f64
      ad.target_add %b
    }
    scf.for %k = %1 to %n step %1 : i64 {
      %l = rt.load %which[%k] : i64
      %c = rt.load %h[%l] : f64
      ad.target_add %c
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK-COUNT-2: rt.alloc
// CHECK-COUNT-3: scf.for

// -----

// Indices of 32 bits: exact, since the last element of each row is stored, where the next one begins.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %I: i32, %T: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %one = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f64
    %size32 = arith.muli %I, %T : i32
    %size = arith.extsi %size32 : i32 to i64
    %rows = arith.extsi %I : i32 to i64
    %end = arith.addi %rows, %1 : i64
    %columns = arith.extsi %T : i32 to i64
    %g = rt.alloc variable %size : !rt.buf<f64>
    scf.for %i = %1 to %end step %1 : i64 {
      %i32 = arith.trunci %i : i64 to i32
      %before = arith.subi %i32, %one : i32
      %row32 = arith.muli %before, %T : i32
      %row = arith.extsi %row32 : i32 to i64
      scf.for %k = %0 to %columns step %1 : i64 {
        %at = arith.addi %row, %k : i64
        %a = rt.load %x[%k] : f64
        rt.store %a, %g[%at] : f64
      }
    }
    scf.for %j = %1 to %end step %1 : i64 {
      %j32 = arith.trunci %j : i64 to i32
      %stop32 = arith.muli %j32, %T : i32
      %jbefore = arith.subi %j32, %one : i32
      %start32 = arith.muli %jbefore, %T : i32
      %stop = arith.extsi %stop32 : i32 to i64
      %start = arith.extsi %start32 : i32 to i64
      %many = arith.subi %stop, %start : i64
      %count = arith.maxsi %many, %0 : i64
      %part = rt.view %g[%start] : !rt.buf<f64>
      %s = scf.for %l = %0 to %count step %1 iter_args(%t = %zero) -> (f64) : i64 {
        %b = rt.load %part[%l] : f64
        %c = rt.math exp(%b) : (f64) -> f64
        %u = arith.addf %t, %c fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      %v = rt.math log(%s) : (f64) -> f64
      ad.target_add %v
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT:     rt.alloc
// CHECK:         scf.for %i
// CHECK:           [[P:%.*]] = rt.alloc variable
// CHECK:           scf.for %k = %0 to [[T:%.*]] step
// CHECK:             rt.store %a, [[P]][%k]
// CHECK:           scf.for %l = %0 to [[T]] step
// CHECK-NEXT:        rt.load [[P]][%l]
// CHECK:           ad.target_add
// CHECK-NOT:     scf.for

// -----

// Of which only the first element of each row is stored: the product may wrap.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %I: i32, %T: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %1 = arith.constant 1 : i64
    %one = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f64
    %size32 = arith.muli %I, %T : i32
    %size = arith.extsi %size32 : i32 to i64
    %rows = arith.extsi %I : i32 to i64
    %end = arith.addi %rows, %1 : i64
    %g = rt.alloc variable %size : !rt.buf<f64>
    scf.for %i = %1 to %end step %1 : i64 {
      %i32 = arith.trunci %i : i64 to i32
      %before = arith.subi %i32, %one : i32
      %row32 = arith.muli %before, %T : i32
      %row = arith.extsi %row32 : i32 to i64
      %a = rt.load %x[%i] : f64
      rt.store %a, %g[%row] : f64
    }
    scf.for %j = %1 to %end step %1 : i64 {
      %j32 = arith.trunci %j : i64 to i32
      %jbefore = arith.subi %j32, %one : i32
      %start32 = arith.muli %jbefore, %T : i32
      %start = arith.extsi %start32 : i32 to i64
      %b = rt.load %g[%start] : f64
      ad.target_add %b
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         rt.alloc
// CHECK-COUNT-2: scf.for

// -----

// Elements that one loop begins with and the next one adds to are carried by one loop; what then only adds to the target
// follows in it, functions or not.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for [[N:%.*]] =
// CHECK-NEXT:   [[X:%.*]] = rt.load
// CHECK-NEXT:   scf.for {{.*}} iter_args(%{{.*}} = [[X]])
// CHECK:        rt.math log1p_exp
// CHECK-NEXT:   ad.target_add
// CHECK-NEXT: }
// CHECK-NOT:  scf.for
func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %mu = rt.alloc %rows : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %x = rt.load %theta[%n] : f64
    rt.store %x, %mu[%n] : f64
  }
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %first = rt.load %mu[%n] : f64
    %sum = scf.for %k = %i0 to %rows step %i1 iter_args(%s = %first) -> (f64) : i64 {
      %x = rt.load %theta[%k] : f64
      %more = arith.addf %s, %x : f64
      scf.yield %more : f64
    }
    rt.store %sum, %mu[%n] : f64
  }
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %m = rt.load %mu[%n] : f64
    %l = rt.math log1p_exp(%m) : (f64) -> f64
    ad.target_add %l
  }
  func.return %zero : f64
}

// -----

// Rows that iterations hand on: what one takes for itself is none of those that it was handed, so both loops are one.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %last = scf.for %i = %0 to %n step %1 iter_args(%row = %x) -> (!rt.buf<f64>) : i64 {
      %h = rt.alloc variable %m : !rt.buf<f64>
      scf.for %k = %0 to %m step %1 : i64 {
        %s = scf.for %l = %0 to %m step %1 iter_args(%t = %zero) -> (f64) : i64 {
          %b = rt.load %row[%l] : f64
          %u = arith.addf %t, %b fastmath<reassoc> : f64
          scf.yield %u : f64
        }
        %e = rt.math exp(%s) : (f64) -> f64
        rt.store %e, %h[%k] : f64
      }
      %next = rt.alloc %m : !rt.buf<f64>
      scf.for %k = %0 to %m step %1 : i64 {
        %c = rt.load %h[%k] : f64
        %d = arith.addf %c, %c : f64
        rt.store %d, %next[%k] initial : f64
      }
      scf.yield %next : !rt.buf<f64>
    }
    %v = rt.load %last[%0] : f64
    ad.target_add %v
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK:         scf.for %i
// CHECK:           scf.for %k
// CHECK:             scf.for %l
// CHECK:             [[E:%.*]] = rt.math exp
// CHECK-NOT:       scf.for
// CHECK:             rt.store {{%.*}}, %next[%k]

// -----

// Means that branches of two loops change: all that fill them are one loop with the one that reads them.
builtin.module {
  func.func @evaluate(%a: f64, %b: f64, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %kind = rt.bound 0 : !rt.buf<i1>
    %side = rt.bound 1 : !rt.buf<i1>
    %mu = rt.alloc variable %n : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      rt.store %a, %mu[%i] : f64
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %is = rt.load %kind[%i] : i1
      scf.if %is {
        %m = rt.load %mu[%i] : f64
        %s = arith.addf %m, %b : f64
        rt.store %s, %mu[%i] : f64
      }
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %is = rt.load %side[%i] : i1
      scf.if %is {
        %m = rt.load %mu[%i] : f64
        %s = arith.mulf %m, %b : f64
        rt.store %s, %mu[%i] : f64
      }
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %m = rt.load %mu[%i] : f64
      ad.target_add %m
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL: @evaluate
// CHECK-COUNT-1: scf.for
// CHECK:         [[P:%.*]] = rt.alloc variable
// CHECK:         rt.load %kind
// CHECK:         rt.load %side
// CHECK:         ad.target_add
// CHECK-NOT:     scf.for

// -----

// A copy that loops change is a loop as these are, and one with them.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %b: f64, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %kind = rt.bound 0 : !rt.buf<i1>
    %mu = rt.alloc variable %n : !rt.buf<f64>
    rt.copy %x to %mu, %n : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %is = rt.load %kind[%i] : i1
      scf.if %is {
        %m = rt.load %mu[%i] : f64
        %s = arith.addf %m, %b : f64
        rt.store %s, %mu[%i] : f64
      }
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %m = rt.load %mu[%i] : f64
      ad.target_add %m
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL:   @evaluate
// CHECK-NOT:     rt.copy
// CHECK:         scf.for [[I:%.*]] =
// CHECK:           rt.load %x[[[I]]]
// CHECK:           scf.if
// CHECK:           ad.target_add
// CHECK-NOT:     scf.for

// -----

// A copy that is only read, and a part of the memory.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %b: f64, %n: i64, %m: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %mu = rt.alloc variable %n : !rt.buf<f64>
    %nu = rt.alloc variable %n : !rt.buf<f64>
    rt.copy %x to %mu, %n : !rt.buf<f64>
    rt.copy %x to %nu, %m : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %s = rt.load %nu[%i] : f64
      %t = arith.addf %s, %b : f64
      rt.store %t, %nu[%i] : f64
      %u = rt.load %mu[%i] : f64
      ad.target_add %u
      ad.target_add %t
    }
    func.return %zero : f64
  }
}
// CHECK-LABEL:   @evaluate
// CHECK-COUNT-2: rt.copy
