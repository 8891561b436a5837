// RUN: stan-opt --split-input-file -p one-step-loop-unrolling --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p 'one-step-loop-unrolling{when=useful}' --verify-each -t stan %s | filecheck %s --check-prefix=USEFUL
// RUN: stan-opt --split-input-file -p 'one-step-loop-unrolling{budget=30}' --explain %s | filecheck %s --check-prefix=EXPLAIN
// RUN: stan-opt --split-input-file -p one-step-loop-unrolling,one-step-loop-unrolling --verify-each -t stan %s | filecheck %s

// A while loop.
transformed data {
  int x = 0;
  while (x < 3) {
    int y = x;
    x = y + 1;
  }
}
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    int x = 0;
// CHECK-NEXT:    if (x < 3) {
// CHECK-NEXT:      int y = x;
// CHECK-NEXT:      x = y + 1;
// CHECK-NEXT:      while (x < 3) {
// CHECK-NEXT:        int y_2 = x;
// CHECK-NEXT:        x = y_2 + 1;
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// The bounds are evaluated once, whatever the body assigns. A lower bound that is not known may be the largest int.
transformed data {
  int k = 2;
  int m = 9;
  for (i in k : m) {
    k = 0;
    m += i;
  }
}
// CHECK-LABEL: transformed data {
// CHECK:         int t = k;
// CHECK-NEXT:    int t_2 = m;
// CHECK-NEXT:    if (t_2 >= t) {
// CHECK-NEXT:      k = 0;
// CHECK-NEXT:      m = m + t;
// CHECK-NEXT:      if (t_2 > t) {
// CHECK-NEXT:        for (i in t + 1:t_2) {
// CHECK-NEXT:          k = 0;
// CHECK-NEXT:          m = m + i;

// -----
// A loop that begins at the largest int has no second iteration.
data {
  int n;
}
model {
  for (i in 2147483647 : n) {
    print(i);
  }
}
// CHECK-LABEL: model {
// CHECK-NEXT:    if (n >= 2147483647) {
// CHECK-NEXT:      print(2147483647);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// The bounds of inner loops first; what compares with the lower bound is decided.
data {
  int n;
}
model {
  for (i in 1 : n) {
    if (i > 1) {
      print("rest");
    }
    for (j in 2 : n) {
      print(j, i == 1);
    }
  }
}
// CHECK-LABEL: model {
// CHECK-NEXT:    if (n >= 1) {
// CHECK-NEXT:      if (0) {
// CHECK-NEXT:        print("rest");
// CHECK-NEXT:      }
// CHECK-NEXT:      if (n >= 2) {
// CHECK-NEXT:        print(2, 1);
// CHECK-NEXT:        for (j in 2 + 1:n) {
// CHECK-NEXT:          print(j, 1);
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:      for (i in 1 + 1:n) {
// CHECK-NEXT:        if (1) {
// CHECK-NEXT:          print("rest");
// CHECK-NEXT:        }
// CHECK-NEXT:        if (n >= 2) {
// CHECK-NEXT:          print(2, 0);
// CHECK-NEXT:          for (j in 2 + 1:n) {
// CHECK-NEXT:            print(j, 0);

// -----
// Not where the body leaves the loop or always returns.
functions {
  int f(int n) {
    for (i in 1 : n) {
      if (n > 3) {
        break;
      }
      print(i);
    }
    while (n > 1) {
      if (n > 5) {
        continue;
      }
      print(n);
    }
    for (i in 1 : n) {
      return i;
    }
    return 0;
  }
}
// CHECK-LABEL: int f(int n) {
// CHECK-NEXT:      for (i in 1:n) {
// CHECK:           while (n > 1) {
// CHECK:           for (i in 1:n) {
// EXPLAIN:         not done  one-step-loop-unrolling: its body has a break or continue
// EXPLAIN:       while loop
// EXPLAIN-NEXT:    not done  one-step-loop-unrolling: its body has a break or continue
// EXPLAIN:         not done  one-step-loop-unrolling: its body always returns

// -----
// What is useful: an expression that may fail and is the same in each iteration, or a comparison with the lower bound.
data {
  int n;
  matrix[n, n] S;
}
model {
  for (i in 1 : n) {
    target += cholesky_decompose(S)[i, i];
  }
  for (i in 1 : n) {
    target += i <= 1 ? 0.5 : 1.5;
  }
  for (i in 1 : n) {
    target += i * sqrt(n) + exponential_lpdf(0.5 | n);
  }
  for (i in 1 : n) {
    if (S[i, i] > 0) {
      target += cholesky_decompose(S)[i, i];
    }
  }
}
// USEFUL-LABEL: matrix[n, n] S;
// USEFUL-NEXT:  }
// USEFUL-NEXT:  model {
// USEFUL-NEXT:    if (n >= 1) {
// USEFUL-NEXT:      target += cholesky_decompose(S)[1, 1];
// USEFUL-NEXT:      for (i in 1 + 1:n) {
// USEFUL:         if (n >= 1) {
// USEFUL-NEXT:      target += 1 ? 0.5 : 1.5;
// USEFUL-NEXT:      for (i in 1 + 1:n) {
// USEFUL-NEXT:        target += 0 ? 0.5 : 1.5;
// USEFUL:         for (i in 1:n) {
// USEFUL-NEXT:      target += i * sqrt(n) + exponential_lpdf(0.5 | n);
// USEFUL-NEXT:    }
// USEFUL-NEXT:    for (i in 1:n) {
// USEFUL-NEXT:      if (S[i, i] > 0) {

// -----
// The budget ends the growth of nests, outermost loops going without.
model {
  for (i in 1 : 9) {
    for (j in 1 : 9) {
      for (k in 1 : 9) {
        print(i, j, k);
      }
    }
  }
}
// EXPLAIN:         not done  one-step-loop-unrolling: {{[0-9]+}} more ops, but only {{[0-9]+}} are left of the budget
// EXPLAIN:       loop over k
// EXPLAIN-NEXT:    done      one-step-loop-unrolling: first iteration written out
