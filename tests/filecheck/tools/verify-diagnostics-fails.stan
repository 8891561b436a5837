// RUN: not stan-opt %s --verify-diagnostics 2>&1 | filecheck %s

// CHECK: verify-diagnostics-fails.stan:6: error: expected error "never said" was not produced
// CHECK: verify-diagnostics-fails.stan:6: error: unexpected error:
model {
  y = 1;  // expected-error {{never said}}
}
