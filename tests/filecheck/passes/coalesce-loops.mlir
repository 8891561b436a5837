// RUN: stan-opt --split-input-file --verify-each -p coalesce-loops,fold,cse,dce,verify-dominance %s | filecheck %s

// Rows of groups of different sizes: beside the nest stands one loop over all of them.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %groups = rt.bound 0 : i64
    %first = rt.bound 1 : !rt.buf<i32>
    %last = rt.bound 2 : !rt.buf<i32>
    %y = rt.bound 3 : !rt.buf<f64>
    scf.for %j = %zero to %groups step %one : i64 {
      %f = rt.load %first[%j] : i32
      %l = rt.load %last[%j] : i32
      %begin = arith.extsi %f : i32 to i64
      %end = arith.extsi %l : i32 to i64
      %a = rt.load %theta[%j] : f64
      scf.for %k = %begin to %end step %one : i64 {
        %x = rt.load %y[%k] : f64
        %p = arith.mulf %x, %a : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-DAG:     %y = rt.bound 3
// CHECK-DAG:     [[ONE:%[0-9]+]] = rt.bound 5 {rt.coalesced = #rt.coalesced<5>} : i1
// CHECK-DAG:     [[ROWS:%[0-9]+]] = rt.bound 6 {rt.coalesced = #rt.coalesced<5>} : i64
// CHECK:         scf.if [[ONE]] {
// CHECK-NEXT:      scf.for [[R:%[0-9]+]] = %zero to [[ROWS]]
// CHECK-NEXT:        [[J32:%[0-9]+]] = rt.load {{%[0-9]+}}[[[R]]] : i32
// CHECK-NEXT:        [[J:%[0-9]+]] = arith.extsi [[J32]]
// CHECK-NEXT:        [[A:%[0-9a-z]+]] = rt.load %theta[[[J]]] : f64
// CHECK-NEXT:        [[X:%[0-9a-z]+]] = rt.load {{%[0-9]+}}[[[R]]] : f64
// CHECK-NEXT:        {{.*}} = arith.mulf [[X]], [[A]]
// CHECK-NEXT:        {{.*}} = rt.math exp
// CHECK-NEXT:        ad.target_add
// CHECK-NEXT:      }
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.for %j = %zero to %groups
// CHECK:             scf.for %k = %begin to %end
// CHECK-LABEL: func.func @bind
// CHECK:         rt.store
// CHECK:         arith.cmpi sle
// CHECK:         rt.set_bound 5, {{%[0-9]+}} : i1
// CHECK-NEXT:    rt.set_bound 6, {{%[0-9]+}} : i64

// -----

// What else a group adds has a loop of its own; its flag is set where that of a row is.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %groups = rt.bound 0 : i64
    %last = rt.bound 2 : !rt.buf<i32>
    %y = rt.bound 3 : !rt.buf<f64>
    %flag = scf.for %j = %zero to %groups step %one iter_args(%all = %zero) -> (i64) : i64 {
      %l = rt.load %last[%j] : i32
      %end = arith.extsi %l : i32 to i64
      %a = rt.load %theta[%j] : f64
      %prior = rt.math square(%a) : (f64) -> f64
      ad.target_add %prior
      %found = scf.for %k = %zero to %end step %one iter_args(%some = %zero) -> (i64) : i64 {
        %x = rt.load %y[%k] : f64
        %p = arith.mulf %x, %a : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
        %fine = arith.cmpf ord, %p, %p : f64
        %bad = arith.xori %fine, %true : i1
        %wide = arith.extui %bad : i1 to i64
        %or = arith.ori %some, %wide : i64
        scf.yield %or : i64
      }
      %ok = arith.cmpi eq, %found, %zero : i64
      %not = arith.xori %ok, %true : i1
      %number = arith.extui %not : i1 to i64
      %both = arith.ori %all, %number : i64
      scf.yield %both : i64
    }
    %holds = arith.cmpi eq, %flag, %zero : i64
    rt.check %holds site -1 status 3 {rt.harmless = #rt.harmless}
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if {{%[0-9]+}} -> (i64) {
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        rt.load %theta
// CHECK-NEXT:        rt.math square
// CHECK-NEXT:        ad.target_add
// CHECK-NEXT:        scf.yield %all
// CHECK-NEXT:      }
// CHECK-NEXT:      [[FLAG:%[0-9]+]] = scf.for
// CHECK-NOT:         rt.math square
// CHECK:             rt.math exp
// CHECK:           [[BOTH:%[0-9]+]] = arith.ori {{.*}}, [[FLAG]] : i64
// CHECK-NEXT:      scf.yield [[BOTH]] : i64

// -----

// A factor of what a group adds up that is data, finite when data are bound, is one of its rows.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %groups = rt.bound 0 : i64
    %w = rt.bound 1 : !rt.buf<f64>
    %last = rt.bound 2 : !rt.buf<i32>
    %y = rt.bound 3 : !rt.buf<f64>
    scf.for %j = %zero to %groups step %one : i64 {
      %l = rt.load %last[%j] : i32
      %end = arith.extsi %l : i32 to i64
      %a = rt.load %theta[%j] : f64
      %sum = scf.for %k = %zero to %end step %one iter_args(%s = %none) -> (f64) : i64 {
        %x = rt.load %y[%k] : f64
        %p = arith.mulf %x, %a : f64
        %term = rt.math exp(%p) : (f64) -> f64
        %more = arith.addf %s, %term fastmath<reassoc> : f64
        scf.yield %more : f64
      }
      %weight = rt.load %w[%j] : f64
      %weighted = arith.mulf %weight, %sum : f64
      ad.target_add %weighted
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK-NEXT:      scf.for
// CHECK:             [[E:%.*]] = rt.math exp
// CHECK-NEXT:        [[P:%.*]] = arith.mulf {{.*}}, [[E]]
// CHECK-NEXT:        ad.target_add [[P]]
// CHECK-NEXT:      }
// CHECK-NEXT:    } else {
// CHECK-LABEL: func.func @bind
// CHECK:         arith.cmpf uno

// -----

// A parameter of each element of the data, a size that is a parameter's, memory that the nest writes, a row that reads what the one
// before computed: nests stay alone.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %groups = rt.bound 0 : i64
    %last = rt.bound 2 : !rt.buf<i32>
    %y = rt.bound 3 : !rt.buf<f64>
    %memory = rt.alloc %groups : !rt.buf<f64>
    scf.for %j = %zero to %groups step %one : i64 {
      %l = rt.load %last[%j] : i32
      %end = arith.extsi %l : i32 to i64
      scf.for %k = %zero to %end step %one : i64 {
        %x = rt.load %theta[%k] : f64
        %v = rt.load %y[%k] : f64
        %p = arith.mulf %x, %v : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
      }
    }
    scf.for %j = %zero to %groups step %one : i64 {
      %a = rt.load %theta[%j] : f64
      rt.store %a, %memory[%j] : f64
      %l = rt.load %last[%j] : i32
      %end = arith.extsi %l : i32 to i64
      scf.for %k = %zero to %end step %one : i64 {
        %x = rt.load %y[%k] : f64
        %m = rt.load %memory[%j] : f64
        %p = arith.mulf %x, %m : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
      }
    }
    scf.for %j = %zero to %groups step %one : i64 {
      %l = rt.load %last[%j] : i32
      %end = arith.extsi %l : i32 to i64
      %a = rt.load %theta[%j] : f64
      %state = scf.for %k = %zero to %end step %one iter_args(%s = %a) -> (f64) : i64 {
        %x = rt.load %y[%k] : f64
        %p = arith.mulf %x, %s : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
        scf.yield %term : f64
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     scf.if

// -----

// Outcomes in a matrix: iterations of the outer loop have as many rows each, which read coefficients by their number.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %rows = rt.bound 0 : i64
    %columns = rt.bound 1 : i64
    %y = rt.bound 3 : !rt.buf<f64>
    scf.for %i = %zero to %rows step %one : i64 {
      scf.for %t = %zero to %columns step %one : i64 {
        %begin = arith.muli %t, %rows : i64
        %place = arith.addi %begin, %i : i64
        %x = rt.load %y[%place] : f64
        %d = rt.load %theta[%t] : f64
        %p = arith.mulf %x, %d : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK-NEXT:      scf.for [[R:%[0-9]+]] = %zero to
// CHECK:             [[T32:%[0-9]+]] = rt.load {{%[0-9]+}}[[[R]]] : i32
// CHECK-NEXT:        [[T:%[0-9]+]] = arith.extsi [[T32]]
// CHECK:             {{.*}} = rt.load %theta[[[T]]] : f64
// CHECK:             rt.math exp
// CHECK:         } else {
// CHECK-NEXT:      scf.for %i = %zero to %rows
// CHECK-NEXT:        scf.for %t = %zero to %columns

// -----

// Rows of different groups that read coefficients by a number that is computed of theirs.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %rows = rt.bound 0 : i64
    %columns = rt.bound 1 : i64
    %first = rt.bound 2 : !rt.buf<i64>
    %y = rt.bound 3 : !rt.buf<f64>
    scf.for %i = %zero to %rows step %one : i64 {
      %begin = rt.load %first[%i] : i64
      scf.for %t = %begin to %columns step %one : i64 {
        %column = arith.muli %t, %rows : i64
        %place = arith.addi %column, %i : i64
        %x = rt.load %y[%place] : f64
        %before = arith.subi %t, %one : i64
        %d = rt.load %theta[%before] : f64
        %p = arith.mulf %x, %d : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK-NEXT:      scf.for [[R:%[0-9]+]] = %zero to
// CHECK:             [[T32:%[0-9]+]] = rt.load {{%[0-9]+}}[[[R]]] : i32
// CHECK-NEXT:        [[T:%[0-9]+]] = arith.extsi [[T32]]
// CHECK:             [[B:%.*]] = arith.subi [[T]], %one
// CHECK-NEXT:        {{.*}} = rt.load %theta[[[B]]] : f64
// CHECK:         } else {

// -----

// A parameter of each outcome: no two rows are equal.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %rows = rt.bound 0 : i64
    %columns = rt.bound 1 : i64
    %y = rt.bound 3 : !rt.buf<f64>
    scf.for %i = %zero to %rows step %one : i64 {
      scf.for %t = %zero to %columns step %one : i64 {
        %begin = arith.muli %t, %rows : i64
        %place = arith.addi %begin, %i : i64
        %x = rt.load %y[%place] : f64
        %d = rt.load %theta[%place] : f64
        %p = arith.mulf %x, %d : f64
        %term = rt.math exp(%p) : (f64) -> f64
        ad.target_add %term
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     scf.if

// -----

// Products of a matrix and a vector are computed strip by strip in the nest, and row by row in the one loop.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %half = arith.constant -0.5 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %size = arith.constant 256 : i64
    %less = arith.constant 255 : i64
    %eight = arith.constant 8 : i64
    %groups = rt.bound 0 : i64
    %last = rt.bound 2 : !rt.buf<i32>
    %y = rt.bound 3 : !rt.buf<f64>
    %x = rt.bound 4 : !rt.buf<f64>
    %columns = rt.bound 1 : i64
    scf.for %j = %zero to %groups step %one : i64 {
      %l = rt.load %last[%j] : i32
      %rows = arith.extsi %l : i32 to i64
      %more = arith.addi %rows, %less : i64
      %strips = arith.shrsi %more, %eight : i64
      scf.for %s = %zero to %strips step %one : i64 {
        %begin = arith.muli %s, %size : i64
        %full = arith.addi %begin, %size : i64
        %end = arith.minsi %full, %rows : i64
        %eta = rt.alloc zero %size : !rt.buf<f64>
        scf.for %k = %zero to %columns step %one : i64 {
          %b = rt.load %theta[%k] : f64
          %column = arith.muli %k, %groups : i64
          scf.for %n = %begin to %end step %one : i64 {
            %at = arith.subi %n, %begin : i64
            %place = arith.addi %column, %n : i64
            %v = rt.load %x[%place] : f64
            %p = arith.mulf %v, %b : f64
            ad.accumulate %eta[%at], %p
          }
        }
        scf.for %n = %begin to %end step %one : i64 {
          %at = arith.subi %n, %begin : i64
          %m = rt.load %eta[%at] : f64
          %v = rt.load %y[%n] : f64
          %r = arith.subf %v, %m : f64
          %q = rt.math square(%r) : (f64) -> f64
          %t = arith.mulf %half, %q : f64
          ad.target_add %t
        }
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK-NEXT:      scf.for [[R:%[0-9]+]] = %zero to
// CHECK:             [[SUM:%[0-9a-z]+]] = scf.for {{.*}} iter_args([[SO:%[0-9]+]] = %none) -> (f64) : i64 {
// CHECK:               [[NEXT:%[0-9]+]] = arith.addf [[SO]], {{.*}} fastmath<reassoc> : f64
// CHECK-NEXT:          scf.yield [[NEXT]]
// CHECK:             arith.subf {{.*}}, [[SUM]]
// CHECK-NEXT:        rt.math square
// CHECK:         } else {
// CHECK:             rt.alloc zero %size

// -----

// Memory that a nest fills for rows: where each element is filled, and rows have a layout, each row fills its own.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %people = rt.bound 0 : i64
    %times = rt.bound 1 : i64
    %all = rt.bound 2 : i64
    %y = rt.bound 3 : !rt.buf<f64>
    %x = rt.bound 4 : !rt.buf<f64>
    %mu = rt.alloc %all : !rt.buf<f64>
    scf.for %i = %zero to %people step %one : i64 {
      %a = rt.load %theta[%i] : f64
      scf.for %t = %zero to %times step %one : i64 {
        %begin = arith.muli %t, %people : i64
        %place = arith.addi %begin, %i : i64
        %v = rt.load %x[%place] : f64
        %m = arith.addf %a, %v : f64
        rt.store %m, %mu[%place] : f64
      }
    }
    scf.for %r = %zero to %all step %one : i64 {
      %m = rt.load %mu[%r] : f64
      %v = rt.load %y[%r] : f64
      %d = arith.subf %v, %m : f64
      %q = rt.math square(%d) : (f64) -> f64
      ad.target_add %q
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.if
// CHECK-NEXT:      [[MU:%[0-9a-z]+]] = rt.alloc [[ROWS:%[0-9]+]] : !rt.buf<f64>
// CHECK-NEXT:      scf.for [[R:%[0-9]+]] = %zero to [[ROWS]]
// CHECK:             rt.load %theta
// CHECK:             rt.store {{.*}}, [[MU]][[[R]]] initial : f64
// CHECK:           scf.for %r = %zero to [[ROWS]]
// CHECK-NEXT:        rt.load [[MU]][%r]
// CHECK:         } else {
// CHECK-NEXT:      %mu = rt.alloc %all
// CHECK-NEXT:      scf.for %i
// CHECK:           scf.for {{%[a-z0-9_]+}} = %zero to %all
// CHECK-LABEL: func.func @bind
// CHECK:         arith.cmpi eq
// CHECK:         rt.set_bound 5, {{%[0-9]+}} : i1

// -----

// An element that needs another one of the same memory is not filled by its row.
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %people = rt.bound 0 : i64
    %times = rt.bound 1 : i64
    %all = rt.bound 2 : i64
    %mu = rt.alloc zero %all : !rt.buf<f64>
    scf.for %i = %zero to %people step %one : i64 {
      scf.for %t = %one to %times step %one : i64 {
        %before = arith.subi %t, %one : i64
        %m = rt.load %mu[%before] : f64
        %e = rt.math exp(%m) : (f64) -> f64
        rt.store %e, %mu[%t] : f64
      }
    }
    scf.for %r = %zero to %all step %one : i64 {
      %m = rt.load %mu[%r] : f64
      %q = rt.math exp(%m) : (f64) -> f64
      ad.target_add %q
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     scf.if

// -----

// What a loop inside of a row reads of its data has an element for each row of the first column, then of the next.
// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK-NEXT:   scf.for [[R:%[0-9]+]] = %i0 to [[COUNT:%[0-9]+]] step
// CHECK:          scf.for %c =
// CHECK-NEXT:       [[FIRST:%[0-9]+]] = arith.muli %c, [[COUNT]]
// CHECK-NEXT:       [[PLACE:%[0-9]+]] = arith.addi [[FIRST]], [[R]]
// CHECK-NEXT:       rt.load {{%[0-9]+}}{{\[}}[[PLACE]]{{\]}}
builtin.module attributes {rt.slots = #rt.slots<6>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %groups = rt.bound 0 : i64
    %first = rt.bound 1 : !rt.buf<i64>
    %y = rt.bound 2 : !rt.buf<f64>
    %x = rt.bound 3 : !rt.buf<f64>
    %columns = rt.bound 4 : i64
    %rows = rt.bound 5 : i64
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    scf.for %j = %i0 to %groups step %i1 : i64 {
      %next = arith.addi %j, %i1 : i64
      %begin = rt.load %first[%j] : i64
      %end = rt.load %first[%next] : i64
      %a = rt.load %theta[%j] : f64
      scf.for %k = %begin to %end step %i1 : i64 {
        %m = scf.for %c = %i0 to %columns step %i1 iter_args(%s = %a) -> (f64) : i64 {
          %column = arith.muli %c, %rows : i64
          %place = arith.addi %column, %k : i64
          %v = rt.load %x[%place] : f64
          %b = rt.load %theta[%c] : f64
          %p = arith.mulf %v, %b : f64
          %t = arith.addf %s, %p fastmath<reassoc> : f64
          scf.yield %t : f64
        }
        %o = rt.load %y[%k] : f64
        %e = rt.math log1p_exp(%m) : (f64) -> f64
        %d = arith.mulf %e, %o : f64
        ad.target_add %d
      }
    }
    func.return %none : f64
  }
}

// -----

// Rows of squares have a nest of their own, whose rows are reduced as they are, with their flags; what else the outer loop
// adds stays.
builtin.module attributes {rt.slots = #rt.slots<3>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %true = arith.constant true
    %most = arith.constant 0x7ff0000000000000 : f64
    %times = rt.bound 0 : i64
    %people = rt.bound 1 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %flag = scf.for %t = %zero to %times step %one iter_args(%all = %zero) -> (i64) : i64 {
      %first = arith.muli %t, %people : i64
      %effect = rt.load %theta[%t] : f64
      %prior = rt.math exp(%effect) : (f64) -> f64
      ad.target_add %prior
      %found = scf.for %i = %zero to %people step %one iter_args(%some = %zero) -> (i64) : i64 {
        %at = arith.addi %first, %i : i64
        %v = rt.load %y[%at] : f64
        %a = rt.load %theta[%i] : f64
        %r = arith.subf %v, %a : f64
        %q = rt.math square(%r) : (f64) -> f64
        ad.target_add %q
        %fine = arith.cmpf olt, %a, %most : f64
        %bad = arith.xori %fine, %true : i1
        %wide = arith.extui %bad : i1 to i64
        %or = arith.ori %some, %wide : i64
        scf.yield %or : i64
      }
      %both = arith.ori %all, %found : i64
      scf.yield %both : i64
    }
    %fine = arith.cmpi eq, %flag, %zero : i64
    rt.check %fine site -1 status 3
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT:     scf.if
// CHECK:         [[FLAG:%[0-9]+]] = scf.for [[T:%[0-9]+]] = %zero to %times
// CHECK:           scf.for [[I:%[0-9]+]] = %zero to %people
// CHECK:             rt.load %theta[[[I]]]
// CHECK:             [[SQUARE:%[0-9a-z_]+]] = rt.math square
// CHECK:             ad.target_add [[SQUARE]]
// CHECK:         scf.for
// CHECK-NOT:       square
// CHECK:           rt.math exp
// CHECK-NEXT:      ad.target_add
// CHECK:         rt.check
// CHECK-NOT:   func.func @bind

// -----

// Rows of squares in a branch on data have a nest of their own, too: without an iteration where it is not taken.
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %none = arith.constant 0.0 : f64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %groups = rt.bound 0 : i64
    %first = rt.bound 1 : !rt.buf<i32>
    %last = rt.bound 2 : !rt.buf<i32>
    %y = rt.bound 3 : !rt.buf<f64>
    scf.for %j = %zero to %groups step %one : i64 {
      %b = rt.load %first[%j] : i32
      %e = rt.load %last[%j] : i32
      %some = arith.cmpi slt, %b, %e : i32
      %from = arith.extsi %b : i32 to i64
      %to = arith.extsi %e : i32 to i64
      scf.if %some {
        %a = rt.load %theta[%j] : f64
        ad.target_add %a
      } else {
        %a = rt.load %theta[%j] : f64
        scf.for %k = %to to %from step %one : i64 {
          %v = rt.load %y[%k] : f64
          %r = arith.subf %v, %a : f64
          %q = rt.math square(%r) : (f64) -> f64
          ad.target_add %q
        }
      }
    }
    func.return %none : f64
  }
}
// CHECK-LABEL: func.func @evaluate
// CHECK:         scf.for
// CHECK:           [[SOME:%.*]] = arith.cmpi slt
// CHECK:           [[END:%.*]] = arith.select [[SOME]], [[TO:%.*]], [[FROM:%.*]] : i64
// CHECK-NEXT:      scf.for {{.*}} = [[TO]] to [[END]]
// CHECK:             rt.math square
// CHECK:         scf.for
// CHECK-NOT:       square
// CHECK:         func.return
// CHECK-NOT:   func.func @bind
