// RUN: stan-opt --split-input-file -p copy-propagation --verify-each -t stan %s | filecheck %s

// Until either side changes (the reference's R8).
data {
  real d;
}
generated quantities {
  real g = d;
  real x;
  real y = 1;
  x = g;
  g = y;
  y = y + x;
  print(y, g);
}
// CHECK-LABEL: generated quantities {
// CHECK:         x = d;
// CHECK-NEXT:    g = y;
// CHECK-NEXT:    y = y + x;
// CHECK-NEXT:    print(y, g);

// -----
// Copies of copies, loop variables and formals; not out of the scope of what was copied.
functions {
  int f(int n) {
    int a = n;
    int b = a;
    return b;
  }
}
transformed data {
  int last = 0;
  for (i in 1 : 3) {
    int j = i;
    int k = j;
    print(k);
    last = k;
  }
  print(last);
}
// CHECK-LABEL: functions {
// CHECK:         return n;
// CHECK-LABEL: transformed data {
// CHECK:           print(i);
// CHECK-NEXT:      last = i;
// CHECK:         print(last);

// -----
// On one path only: not. A part that is assigned ends the copy.
data {
  int c;
  vector[3] v;
}
transformed data {
  vector[3] w = v;
  real a = 1;
  real b = 2;
  if (c) {
    b = a;
  }
  print(w, b);
  w[2] = 3;
  print(w);
}
// CHECK-LABEL: transformed data {
// CHECK:         print(v, b);
// CHECK:         print(w);

// -----
// From one block to another.
data {
  real d;
}
transformed data {
  real t = d;
}
parameters {
  real p;
}
model {
  p ~ normal(t, 1);
}
// CHECK-LABEL: model {
// CHECK-NEXT:    p ~ normal(d, 1);

// -----
// The loop variable is another one in the next iteration.
transformed data {
  int k = 0;
  for (i in 1 : 3) {
    print(k);
    k = i;
  }
}
// CHECK-LABEL: transformed data {
// CHECK:           print(k);

// -----
// Not a variable that only its own block sees.
transformed data {
  real t;
  {
    real inner = 2;
    t = inner;
  }
}
generated quantities {
  real u = t;
}
// CHECK-LABEL: transformed data {
// CHECK:         t = inner;
// CHECK-LABEL: generated quantities {
// CHECK-NEXT:    real u = t;


// -----
// A chain of copies, in one run.
data {
  int n;
}
generated quantities {
  int i = n;
  int j = i;
  int k = j;
  print(k);
}
// CHECK-LABEL: generated quantities {
// CHECK-NEXT:    int i = n;
// CHECK-NEXT:    int j = n;
// CHECK-NEXT:    int k = n;
// CHECK-NEXT:    print(n);
