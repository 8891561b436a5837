// RUN: stan-opt --split-input-file -p static-loop-unrolling --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p 'static-loop-unrolling{when=useful}' --verify-each -t stan %s | filecheck %s --check-prefix=USEFUL
// RUN: stan-opt --split-input-file -p 'static-loop-unrolling{limit=4 budget=40}' --verify-each -t stan %s | filecheck %s --check-prefix=SMALL
// RUN: stan-opt --split-input-file -p 'static-loop-unrolling{limit=4 budget=40}' --explain %s | filecheck %s --check-prefix=EXPLAIN

// The bounds may be arithmetic of literals; an empty range leaves nothing.
transformed data {
  int x = 0;
  for (i in -1 : 3 - 2) {
    x += i;
  }
  for (i in 2 : 1) {
    print("never");
  }
  print(x);
}
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    int x = 0;
// CHECK-NEXT:    x = x + -1;
// CHECK-NEXT:    x = x + 0;
// CHECK-NEXT:    x = x + 1;
// CHECK-NEXT:    print(x);
// CHECK-NEXT:  }
// EXPLAIN:       loop over i
// EXPLAIN-NEXT:    done      static-loop-unrolling: 3 iterations written out
// EXPLAIN:       loop over i
// EXPLAIN-NEXT:    done      static-loop-unrolling: it has no iteration

// -----
// Each copy declares its own variables; an inner loop whose bounds hang on the outer one becomes static with it.
generated quantities {
  for (i in 1 : 2) {
    real q = i;
    for (j in i : 2) {
      print(q, j);
    }
  }
}
// CHECK-LABEL: generated quantities {
// CHECK-NEXT:    {
// CHECK-NEXT:      real q = 1;
// CHECK-NEXT:      print(q, 1);
// CHECK-NEXT:      print(q, 2);
// CHECK-NEXT:    }
// CHECK-NEXT:    {
// CHECK-NEXT:      real q = 2;
// CHECK-NEXT:      print(q, 2);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// An early return may stay in the copies; a body that always returns, or is left by break or continue, is kept.
functions {
  int first(array[] int x) {
    for (i in 1 : 3) {
      if (x[i] > 0) {
        return i;
      }
    }
    for (i in 1 : 3) {
      if (x[i] < 0) {
        return i;
      } else {
        return 0;
      }
    }
    for (i in 1 : 3) {
      for (j in 1 : 2) {
        if (x[j] > i) {
          break;
        }
      }
      if (x[i] == 5) {
        continue;
      }
      print(i);
    }
    return 0;
  }
}
// CHECK-LABEL: int first(
// CHECK-NEXT:      if (x[1] > 0) {
// CHECK-NEXT:        return 1;
// CHECK-NEXT:      }
// CHECK-NEXT:      if (x[2] > 0) {
// CHECK-NEXT:        return 2;
// CHECK-NEXT:      }
// CHECK-NEXT:      if (x[3] > 0) {
// CHECK-NEXT:        return 3;
// CHECK-NEXT:      }
// CHECK-NEXT:      for (i in 1:3) {
// CHECK:           for (i in 1:3) {
// CHECK-NEXT:        for (j in 1:2) {
// EXPLAIN:         not done  static-loop-unrolling: its body always returns
// EXPLAIN:         not done  static-loop-unrolling: its body has a break or continue

// -----
// Bounds that are not literals; too many iterations; a body that is too large for the budget.
data {
  int n;
}
model {
  for (i in 1 : n) {
    print(i);
  }
  for (i in 1 : 33) {
    print(i);
  }
  for (i in 1 : 4) {
    print(i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
  }
}
// CHECK-LABEL: model {
// CHECK-NEXT:    for (i in 1:n) {
// CHECK-NEXT:      print(i);
// CHECK-NEXT:    }
// CHECK-NEXT:    for (i in 1:33) {
// CHECK-NEXT:      print(i);
// CHECK-NEXT:    }
// CHECK-NEXT:    print(1,
// SMALL-LABEL: data {
// SMALL:         for (i in 1:4) {
// EXPLAIN:       not done  static-loop-unrolling: its bounds are not literals
// EXPLAIN:       not done  static-loop-unrolling: it has 33 iterations, more than 4
// EXPLAIN:       not done  static-loop-unrolling: {{[0-9]+}} more ops, but only {{[0-9]+}} are left of the budget

// -----
// What is useful: a condition is decided, an element of a literal chosen, an exponent known; or there is little to do.
parameters {
  vector[6] th;
}
model {
  for (i in 1 : 6) {
    if (i % 2 == 0) {
      target += th[i];
    }
  }
  for (i in 1 : 6) {
    target += {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}[i];
  }
  for (i in 1 : 6) {
    target += th[1] ^ i;
  }
  for (i in 1 : 2) {
    target += square(th[i]);
  }
  for (i in 1 : 6) {
    target += square(th[i]);
  }
  for (i in 1 : 2) {
    th[i] ~ normal(0, 1);
  }
}
// USEFUL-LABEL: parameters {
// USEFUL-NEXT:    vector[6] th;
// USEFUL-NEXT:  }
// USEFUL-NEXT:  model {
// USEFUL-NEXT:    if (1 % 2 == 0) {
// USEFUL:         target += {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}[1];
// USEFUL:         target += th[1]^6;
// USEFUL-NEXT:    target += square(th[1]);
// USEFUL-NEXT:    target += square(th[2]);
// USEFUL-NEXT:    for (i in 1:6) {
// USEFUL-NEXT:      target += square(th[i]);
// USEFUL-NEXT:    }
// USEFUL-NEXT:    for (i in 1:2) {
// USEFUL-NEXT:      th[i] ~ normal(0, 1);
// USEFUL-NEXT:    }
