// RUN: stan-opt --split-input-file -p constant-propagation --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p 'constant-propagation{preserve-numerics=true}' --verify-each -t stan %s | filecheck %s --check-prefix=INTS

// An arm that is never taken does not spoil a constant; one that may be taken does.
data {
  int d;
}
transformed data {
  int k = 2;
  int m = 2;
  if (k > 3) {
    m = 7;
  }
  int j = 1;
  if (d > 0) {
    j = 2;
  }
  int same = 1;
  if (d > 0) {
    same = 3;
  } else {
    same = 3;
  }
  print(m, j, same);
}
// CHECK-LABEL: transformed data {
// CHECK:         if (2 > 3) {
// CHECK:         print(2, j, 3);

// -----
// Around a loop: what the body changes is not known, what it sets to the same value is.
transformed data {
  int sum = 0;
  int same = 4;
  for (i in 1 : 3) {
    sum += i;
    same = 4;
  }
  print(sum, same);
}
// CHECK-LABEL: transformed data {
// CHECK:           sum = sum + i;
// CHECK:         print(sum, 4);

// -----
// Constants reach later blocks. Reals only where numbers may change.
transformed data {
  int K = 3;
  real scale = 2.5;
}
parameters {
  vector[K] b;
}
model {
  b ~ normal(K, scale);
}
// CHECK-LABEL: parameters {
// CHECK-NEXT:    vector[3] b;
// CHECK:         b ~ normal(3, 2.5);
// INTS-LABEL:  parameters {
// INTS-NEXT:     vector[3] b;
// INTS:          b ~ normal(3, scale);

// -----
// Ints wrap, as they do in the running program; division by zero and what is not finite is left to it.
transformed data {
  int big = 2147483647;
  int wraps = big + 1;
  int zero = 0;
  int one = 1;
  int never = one ? 5 : one %/% zero;
  real tiny = 0;
  real inf = 1 / tiny;
  print(wraps, never, inf);
}
// CHECK-LABEL: transformed data {
// CHECK:         print(-2147483647 - 1, 5, inf);

// -----
// Loops that end early, and a `while` whose condition is known.
transformed data {
  int found = 0;
  int stays = 1;
  for (i in 1 : 9) {
    if (i > 5) {
      found = i;
      break;
    }
    continue;
    stays = 2;
  }
  while (stays > 1) {
    stays = 0;
  }
  print(found, stays);
}
// CHECK-LABEL: transformed data {
// CHECK:         while (1 > 1) {
// CHECK:         print(found, 1);

// -----
// A function's formals are not known, its own constants are.
functions {
  int f(int n) {
    int c = 2;
    if (n > c) {
      return c;
    }
    return n;
  }
}
// CHECK-LABEL: functions {
// CHECK:         if (n > 2) {
// CHECK-NEXT:      return 2;
// CHECK:         return n;
