// RUN: stan-opt -p log-recursions,dce,verify-dominance %s | filecheck %s

// A row is a sum over all of the row before: a kernel has rows, and what is added is computed ahead.
// CHECK-LABEL: @forward
// CHECK:      [[FIRST:%[0-9]+]] = rt.alloc
// CHECK:      [[TERMS:%[0-9]+]] = rt.alloc
// CHECK:      [[MOVES:%[0-9]+]] = rt.alloc
// CHECK-NOT:  rt.math
// CHECK:      rt.kernel log_recursion([[FIRST]], [[TERMS]], [[MOVES]],
// CHECK:      rt.copy
// CHECK-NOT:  scf.for
func.func @forward(%size : i64, %times : i64, %states : i64, %few : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %back = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %back to %times step %i1 : i64 {
    %t_before = arith.subi %t, %back : i64
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
  %last = rt.load %g[%few] : f64
  func.return %last : f64
}

// The row before is not the one that is read.
// CHECK-LABEL: @two_back
// CHECK-NOT:  rt.kernel
// CHECK:      rt.math exp
func.func @two_back(%size : i64, %times : i64, %states : i64, %few : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %back = arith.constant 2 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %back to %times step %i1 : i64 {
    %t_before = arith.subi %t, %back : i64
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
  %last = rt.load %g[%few] : f64
  func.return %last : f64
}

// It is a sum over a part of the row.
// CHECK-LABEL: @few
// CHECK-NOT:  rt.kernel
// CHECK:      rt.math exp
func.func @few(%size : i64, %times : i64, %states : i64, %few : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %back = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %back to %times step %i1 : i64 {
    %t_before = arith.subi %t, %back : i64
    %row_before = arith.muli %t_before, %states : i64
    %g_before = rt.view %g[%row_before] : !rt.buf<f64>
    %row = arith.muli %t, %states : i64
    scf.for %k = %i0 to %states step %i1 : i64 {
      %y = rt.load %e[%t] : f64
      %into = arith.muli %k, %states : i64
      %w_into = rt.view %w[%into] : !rt.buf<f64>
      %s = scf.for %j = %i0 to %few step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
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
  %last = rt.load %g[%few] : f64
  func.return %last : f64
}

// Rows are read for something else, too.
// CHECK-LABEL: @target
// CHECK-NOT:  rt.kernel
// CHECK:      rt.math exp
func.func @target(%size : i64, %times : i64, %states : i64, %few : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %w = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %back = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %size : !rt.buf<f64>
  rt.fill %g, %zero, %size : f64
  scf.for %t = %back to %times step %i1 : i64 {
    %t_before = arith.subi %t, %back : i64
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
    %other = rt.load %g[%row] : f64
    ad.target_add %other
  }
  %last = rt.load %g[%few] : f64
  func.return %last : f64
}

// A row that is written to memory of its own, and copied.
// CHECK-LABEL: @handed_on
// CHECK:      rt.kernel log_recursion(
// CHECK:      rt.copy
// CHECK-NOT:  scf.for
// CHECK-NOT:  rt.copy
func.func @handed_on(%times : i64, %states : i64) -> f64 {
  %e = rt.bound 0 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %states : !rt.buf<f64>
  rt.fill %g, %zero, %states : f64
  scf.for %t = %i0 to %times step %i1 : i64 {
    %next = rt.alloc variable %states : !rt.buf<f64>
    scf.for %k = %i0 to %states step %i1 : i64 {
      %y = rt.load %e[%t] : f64
      %s = scf.for %j = %i0 to %states step %i1 iter_args(%so_far = %zero) -> (f64) : i64 {
        %x = rt.load %g[%j] : f64
        %shifted = arith.subf %x, %y : f64
        %power = rt.math exp(%shifted) : (f64) -> f64
        %with = arith.addf %so_far, %power : f64
        scf.yield %with : f64
      }
      %log = rt.math log(%s) : (f64) -> f64
      %element = arith.addf %y, %log : f64
      rt.store %element, %next[%k] : f64
    }
    rt.copy %next to %g, %states : !rt.buf<f64>
  }
  %last = rt.load %g[%i0] : f64
  func.return %last : f64
}
