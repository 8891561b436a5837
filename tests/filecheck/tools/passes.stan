// RUN: stan-opt %s -p structure-exits,promote-variables --verify-each --print-ir-after-all -o /dev/null 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: stan-opt %s -p structure-exits,promote-variables --print-pipeline | filecheck %s --check-prefix=PIPELINE
// RUN: not stan-opt %s -p promote-variable 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not stan-opt %s -p 'static-loop-unrolling{limit=-1}' 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not stan-opt %s -p 'repeat{passes="expression-propagation{budget=-1}"}' 2>&1 | filecheck %s --check-prefix=INNER
// RUN: stan-opt %s | stan-opt --verify-each | filecheck %s --check-prefix=AGAIN

// DUMP: // -----// IR Dump After structure-exits //----- //
// DUMP: stan.assign
// DUMP: // -----// IR Dump After promote-variables //----- //
// DUMP-NOT: stan.assign

// PIPELINE: structure-exits,promote-variables

// UNKNOWN: stan-opt: error: unknown pass 'promote-variable'; did you mean 'promote-variables'?

// NEGATIVE: stan-opt: error: wrong options for pass 'static-loop-unrolling': limit is -1, but must not be negative
// INNER: wrong options for pass 'expression-propagation': budget is -1, but must not be negative

// AGAIN: stan.assign
parameters {
  real x;
}
model {
  real y = 2 * x;
  y ~ normal(0, 1);
}
