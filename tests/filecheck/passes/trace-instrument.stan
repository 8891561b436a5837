// RUN: stan-opt -p 'trace-instrument{function=half}' %s | filecheck %s

// The function records the blocks that it runs, and their values.
// CHECK: trace.block 1
// CHECK: trace.value
// CHECK: trace.sites
functions {
  real half(real x) {
    return x / 2;
  }
}
