// RUN: not stan-opt %s --split-input-file 2>&1 | filecheck %s

// Each piece has its own message, at its line of the file; pieces without an error are printed.
// CHECK: errors.mlir:6: error:
builtin.module {
  "stan.nonsense"() : () -> ()
}

// -----
// CHECK: errors.mlir:13: error:
builtin.module {
  %0 = arith.addf %1
}
