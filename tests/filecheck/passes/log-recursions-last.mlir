// RUN: stan-opt -p log-recursions,dce,verify-dominance %s | filecheck %s

// Nobody reads a row but the last one: the kernel gives that one alone, if there is one, without the others' logarithms.
// CHECK-LABEL: @last
// CHECK:      rt.kernel log_recursion({{[^:]*}}, [[ROW:%[0-9]+]], {{%[0-9]+}}, {{%[0-9]+}}, {{%[0-9]+}}, {{%[0-9]+}}) :
// CHECK-NEXT: arith.subi
// CHECK-NEXT: arith.select
// CHECK-NEXT: scf.for
// CHECK-NEXT:   arith.muli
// CHECK-NEXT:   arith.addi
// CHECK-NEXT:   rt.load [[ROW]][
// CHECK-NEXT:   rt.store
// CHECK-NEXT: }
func.func @last(%size : i64, %times : i64, %states : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %i1 to %times step %i1 : i64 {
    %t_before = arith.subi %t, %i1 : i64
    %row_before = arith.muli %t_before, %states : i64
    %g_before = rt.view %g[%row_before] : !rt.buf<f64>
    %row = arith.muli %t, %states : i64
    scf.for %k = %i0 to %states step %i1 : i64 {
      %y = rt.load %e[%t] : f64
      %into = arith.muli %k, %states : i64
      %w_into = rt.view %w[%into] : !rt.buf<f64>
      %s = scf.for %j = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
        %x = rt.load %g_before[%j] : f64
        %move = rt.load %w_into[%j] : f64
        %term = arith.addf %x, %move : f64
        %shifted = arith.subf %term, %y : f64
        %power = rt.math exp(%shifted) : (f64) -> f64
        %with = arith.addf %so_far, %power : f64
        scf.yield %with : f64
      }
      %log = rt.math log(%s) : (f64) -> f64
      %element = arith.addf %y, %log : f64
      %at = arith.addi %row, %k : i64
      rt.store %element, %g[%at] : f64
    }
  }
  %back = arith.constant 1 : i64
  %t_read = arith.subi %times, %back : i64
  %begin = arith.muli %t_read, %states : i64
  %g_read = rt.view %g[%begin] : !rt.buf<f64>
  %sum = scf.for %i = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
    %x = rt.load %g_read[%i] : f64
    %with = arith.addf %so_far, %x : f64
    scf.yield %with : f64
  }
  func.return %sum : f64
}

// A recursion that runs under a condition, as where the first iteration has been written out.
// CHECK-LABEL: @last_in_a_branch
// CHECK:      scf.if %some
// CHECK:        rt.kernel log_recursion({{[^:]*}}, [[ROW:%[0-9]+]], {{%[0-9]+}}, {{%[0-9]+}}, {{%[0-9]+}}, {{%[0-9]+}}) :
// CHECK-NOT:    rt.copy
// CHECK:        rt.load [[ROW]][
func.func @last_in_a_branch(%size : i64, %times : i64, %states : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  %some = arith.cmpi sgt, %times, %i0 : i64
  scf.if %some {
    scf.for %t = %i1 to %times step %i1 : i64 {
      %t_before = arith.subi %t, %i1 : i64
      %row_before = arith.muli %t_before, %states : i64
      %g_before = rt.view %g[%row_before] : !rt.buf<f64>
      %row = arith.muli %t, %states : i64
      scf.for %k = %i0 to %states step %i1 : i64 {
        %y = rt.load %e[%t] : f64
        %into = arith.muli %k, %states : i64
        %w_into = rt.view %w[%into] : !rt.buf<f64>
        %s = scf.for %j = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
          %x = rt.load %g_before[%j] : f64
          %move = rt.load %w_into[%j] : f64
          %term = arith.addf %x, %move : f64
          %shifted = arith.subf %term, %y : f64
          %power = rt.math exp(%shifted) : (f64) -> f64
          %with = arith.addf %so_far, %power : f64
          scf.yield %with : f64
        }
        %log = rt.math log(%s) : (f64) -> f64
        %element = arith.addf %y, %log : f64
        %at = arith.addi %row, %k : i64
        rt.store %element, %g[%at] : f64
      }
    }
  }
  %back = arith.constant 1 : i64
  %t_read = arith.subi %times, %back : i64
  %begin = arith.muli %t_read, %states : i64
  %g_read = rt.view %g[%begin] : !rt.buf<f64>
  %sum = scf.for %i = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
    %x = rt.load %g_read[%i] : f64
    %with = arith.addf %so_far, %x : f64
    scf.yield %with : f64
  }
  func.return %sum : f64
}

// Rows before it are read, too.
// CHECK-LABEL: @row_before_the_last
// CHECK:      rt.kernel log_recursion(
// CHECK:      rt.copy
func.func @row_before_the_last(%size : i64, %times : i64, %states : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %i1 to %times step %i1 : i64 {
    %t_before = arith.subi %t, %i1 : i64
    %row_before = arith.muli %t_before, %states : i64
    %g_before = rt.view %g[%row_before] : !rt.buf<f64>
    %row = arith.muli %t, %states : i64
    scf.for %k = %i0 to %states step %i1 : i64 {
      %y = rt.load %e[%t] : f64
      %into = arith.muli %k, %states : i64
      %w_into = rt.view %w[%into] : !rt.buf<f64>
      %s = scf.for %j = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
        %x = rt.load %g_before[%j] : f64
        %move = rt.load %w_into[%j] : f64
        %term = arith.addf %x, %move : f64
        %shifted = arith.subf %term, %y : f64
        %power = rt.math exp(%shifted) : (f64) -> f64
        %with = arith.addf %so_far, %power : f64
        scf.yield %with : f64
      }
      %log = rt.math log(%s) : (f64) -> f64
      %element = arith.addf %y, %log : f64
      %at = arith.addi %row, %k : i64
      rt.store %element, %g[%at] : f64
    }
  }
  %back = arith.constant 2 : i64
  %t_read = arith.subi %times, %back : i64
  %begin = arith.muli %t_read, %states : i64
  %g_read = rt.view %g[%begin] : !rt.buf<f64>
  %sum = scf.for %i = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
    %x = rt.load %g_read[%i] : f64
    %with = arith.addf %so_far, %x : f64
    scf.yield %with : f64
  }
  func.return %sum : f64
}

// What is read ends elsewhere.
// CHECK-LABEL: @more_than_a_row
// CHECK:      rt.kernel log_recursion(
// CHECK:      rt.copy
func.func @more_than_a_row(%size : i64, %times : i64, %states : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %i1 to %times step %i1 : i64 {
    %t_before = arith.subi %t, %i1 : i64
    %row_before = arith.muli %t_before, %states : i64
    %g_before = rt.view %g[%row_before] : !rt.buf<f64>
    %row = arith.muli %t, %states : i64
    scf.for %k = %i0 to %states step %i1 : i64 {
      %y = rt.load %e[%t] : f64
      %into = arith.muli %k, %states : i64
      %w_into = rt.view %w[%into] : !rt.buf<f64>
      %s = scf.for %j = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
        %x = rt.load %g_before[%j] : f64
        %move = rt.load %w_into[%j] : f64
        %term = arith.addf %x, %move : f64
        %shifted = arith.subf %term, %y : f64
        %power = rt.math exp(%shifted) : (f64) -> f64
        %with = arith.addf %so_far, %power : f64
        scf.yield %with : f64
      }
      %log = rt.math log(%s) : (f64) -> f64
      %element = arith.addf %y, %log : f64
      %at = arith.addi %row, %k : i64
      rt.store %element, %g[%at] : f64
    }
  }
  %back = arith.constant 1 : i64
  %t_read = arith.subi %times, %back : i64
  %begin = arith.muli %t_read, %states : i64
  %g_read = rt.view %g[%begin] : !rt.buf<f64>
  %sum = scf.for %i = %i0 to %size step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
    %x = rt.load %g_read[%i] : f64
    %with = arith.addf %so_far, %x : f64
    scf.yield %with : f64
  }
  func.return %sum : f64
}

// What is taken away from sums and from their terms: tables have it with its sign.
// CHECK-LABEL: @taken_away
// CHECK:      scf.for
// CHECK:        [[M:%.*]] = arith.negf {{%.*}}
// CHECK:        rt.store [[M]]
// CHECK:      rt.kernel log_recursion
func.func @taken_away(%size : i64, %times : i64, %states : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %i1 to %times step %i1 : i64 {
    %t_before = arith.subi %t, %i1 : i64
    %row_before = arith.muli %t_before, %states : i64
    %g_before = rt.view %g[%row_before] : !rt.buf<f64>
    %row = arith.muli %t, %states : i64
    scf.for %k = %i0 to %states step %i1 : i64 {
      %y = rt.load %e[%t] : f64
      %into = arith.muli %k, %states : i64
      %w_into = rt.view %w[%into] : !rt.buf<f64>
      %s = scf.for %j = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
        %x = rt.load %g_before[%j] : f64
        %move = rt.load %w_into[%j] : f64
        %term = arith.subf %x, %move : f64
        %shifted = arith.subf %term, %y : f64
        %power = rt.math exp(%shifted) : (f64) -> f64
        %with = arith.addf %so_far, %power : f64
        scf.yield %with : f64
      }
      %log = rt.math log(%s) : (f64) -> f64
      %whole = arith.addf %y, %log : f64
      %element = arith.subf %whole, %y : f64
      %at = arith.addi %row, %k : i64
      rt.store %element, %g[%at] : f64
    }
  }
  func.return %zero : f64
}
