// RUN: stan-opt --split-input-file --verify-each -p lazy-code-motion -t stan %s | filecheck %s

// The documented example.
generated quantities {
  real x;
  real y;
  real z;
  for (i in 1:10) {
    x = sqrt(10);
    y = sqrt(i);
  }
  z = sqrt(10);
}
// CHECK:       real x;
// CHECK-NEXT:  real y;
// CHECK-NEXT:  real z;
// CHECK-NEXT:  {
// CHECK-NEXT:  /* data */ real lcm_sym1_;
// CHECK-NEXT:  lcm_sym1_ = sqrt(10);
// CHECK-NEXT:  for (i in 1:10) {
// CHECK-NEXT:    x = lcm_sym1_;
// CHECK-NEXT:    y = sqrt(i);
// CHECK-NEXT:  }
// CHECK-NEXT:  z = lcm_sym1_;
// CHECK-NEXT:  }

// -----
// As late as possible: not where nothing reads it. Computed on one path only: inserted on the other.
data { int c; }
parameters { real p; }
model {
  real x = 1;
  if (c > 0) {
    x = exp(p);
  } else if (c < -2) {
    x = 3;
  } else {
    x = 2;
  }
  target += exp(p) * x;
}
// CHECK:       real x = 1;
// CHECK-NEXT:  if (c > 0) {
// CHECK-NEXT:    lcm_sym1_ = exp(p);
// CHECK-NEXT:    x = lcm_sym1_;
// CHECK-NEXT:  } else {
// CHECK-NEXT:    if (c < -2) {
// CHECK-NEXT:      x = 3;
// CHECK-NEXT:    } else {
// CHECK-NEXT:      x = 2;
// CHECK-NEXT:    }
// CHECK-NEXT:    lcm_sym1_ = exp(p);
// CHECK-NEXT:  }
// CHECK-NEXT:  target += lcm_sym1_ * x;

// -----
// The largest common expression is stored; a part of it only if it is read beside it.
parameters { real p; }
model {
  target += square(exp(p) + 1);
  target += square(exp(p) + 1);
  target += sin(cos(p));
  target += sin(cos(p)) + cos(p);
}
// CHECK:       model {
// CHECK-NEXT:    real lcm_sym1_;
// CHECK-NEXT:    real lcm_sym2_;
// CHECK-NEXT:    real lcm_sym3_;
// CHECK-NEXT:    lcm_sym1_ = square(exp(p) + 1);
// CHECK-NEXT:    target += lcm_sym1_;
// CHECK-NEXT:    target += lcm_sym1_;
// CHECK-NEXT:    lcm_sym2_ = cos(p);
// CHECK-NEXT:    lcm_sym3_ = sin(lcm_sym2_);
// CHECK-NEXT:    target += lcm_sym3_;
// CHECK-NEXT:    target += lcm_sym3_ + lcm_sym2_;
// CHECK-NEXT:  }

// -----
// Assignments, whole or in part, change the value; so does the next iteration the loop variable.
data { int N; }
parameters { real p; vector[N] v; }
model {
  real q = p;
  vector[N] w = v;
  target += exp(q);
  q = 2 * p;
  target += exp(q);
  target += sum(w .* w .* w .* w .* w .* w .* w .* w);
  w[1] = 0;
  target += sum(w .* w .* w .* w .* w .* w .* w .* w);
  for (n in 1:N) {
    target += exp(n + p) + sqrt(exp(n + p));
  }
}
// CHECK:       real lcm_sym1_;
// CHECK-NEXT:  real q = p;
// CHECK-NEXT:  vector[N] w = v;
// CHECK-NEXT:  target += exp(q);
// CHECK-NEXT:  q = 2 * p;
// CHECK-NEXT:  target += exp(q);
// CHECK-NEXT:  target += sum(w .* w .* w .* w .* w .* w .* w .* w);
// CHECK-NEXT:  w[1] = 0;
// CHECK-NEXT:  target += sum(w .* w .* w .* w .* w .* w .* w .* w);
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    lcm_sym1_ = exp(n + p);
// CHECK-NEXT:    target += lcm_sym1_ + sqrt(lcm_sym1_);
// CHECK-NEXT:  }

// -----
// Nothing moves across the edges of a profile; inside it, all is as elsewhere.
parameters { real p; }
model {
  target += exp(p);
  profile("a") {
    target += exp(p);
    target += exp(p);
  }
  target += exp(p);
}
// CHECK:       real lcm_sym1_;
// CHECK-NEXT:  target += exp(p);
// CHECK-NEXT:  profile("a") {
// CHECK-NEXT:    lcm_sym1_ = exp(p);
// CHECK-NEXT:    target += lcm_sym1_;
// CHECK-NEXT:    target += lcm_sym1_;
// CHECK-NEXT:  }
// CHECK-NEXT:  target += exp(p);

// -----
// What may fail stays in a loop that may have no iteration; it leaves one that has iterations for certain, but not past
// a print. What cannot fail leaves both.
data { int N; matrix[N, N] A; }
parameters { vector[N] v; }
model {
  for (n in 1:N) {
    target += (A * v)[n];
  }
  for (n in 1:2) {
    target += (A' * v)[n];
  }
  for (n in 1:2) {
    print(n);
    target += (A .* A * v)[n];
  }
  for (n in 1:N) {
    target += sum(exp(v)) * n;
  }
}
// CHECK:       for (n in 1:N) {
// CHECK-NEXT:    target += (A * v)[n];
// CHECK-NEXT:  }
// CHECK-NEXT:  lcm_sym1_ = A' * v;
// CHECK-NEXT:  for (n in 1:2) {
// CHECK-NEXT:    target += lcm_sym1_[n];
// CHECK-NEXT:  }
// CHECK-NEXT:  for (n in 1:2) {
// CHECK-NEXT:    print(n);
// CHECK-NEXT:    target += (A .* A * v)[n];
// CHECK-NEXT:  }
// CHECK-NEXT:  lcm_sym2_ = sum(exp(v));
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    target += lcm_sym2_ * n;
// CHECK-NEXT:  }

// -----
// A repeated evaluation goes even across a print: it cannot fail any more.
data { int N; matrix[N, N] A; }
parameters { vector[N] v; }
model {
  target += (A * v)[1];
  print("between");
  target += (A * v)[2];
}
// CHECK:       lcm_sym1_ = A * v;
// CHECK-NEXT:  target += lcm_sym1_[1];
// CHECK-NEXT:  print("between");
// CHECK-NEXT:  target += lcm_sym1_[2];

// -----
// In a function errors keep their order and their place: `g(x)` may fail before `h(x)` does.
functions {
  real g(real x) {
    if (x < 0) {
      reject("g");
    }
    return x;
  }
  real h(real x) {
    if (x < 1) {
      reject("h");
    }
    return x;
  }
  real f(real x, int c) {
    real y = 0;
    if (c) {
      y = h(x);
    }
    y += g(x);
    return y + h(x);
  }
}
// CHECK:       real f(real x, int c) {
// CHECK-NEXT:    real y = 0;
// CHECK-NEXT:    if (c) {
// CHECK-NEXT:      y = h(x);
// CHECK-NEXT:    }
// CHECK-NEXT:    y = y + g(x);
// CHECK-NEXT:    return y + h(x);

// -----
// Lazy operands: a value from before is read in them; none is computed for the first time, nor moved out.
parameters { real p; }
model {
  target += exp(p);
  target += p > 1 ? exp(p) : sin(p);
  target += p > 2 || cos(p) > 0.5;
  target += sin(p) + cos(p) + sin(p);
}
// CHECK:       lcm_sym1_ = exp(p);
// CHECK-NEXT:  target += lcm_sym1_;
// CHECK-NEXT:  target += p > 1 ? lcm_sym1_ : sin(p);
// CHECK-NEXT:  target += p > 2 || cos(p) > 0.5;
// CHECK-NEXT:  lcm_sym2_ = sin(p);
// CHECK-NEXT:  target += lcm_sym2_ + cos(p) + lcm_sym2_;

// -----
// Variables of the same name in sibling scopes are different variables (R21).
parameters { real p; }
model {
  {
    real a = p;
    target += exp(a);
  }
  {
    int a = 2;
    target += exp(a);
  }
  {
    real a = 2 * p;
    target += exp(a) + exp(a);
  }
}
// CHECK:       target += exp(a);
// CHECK:       target += exp(a_2);
// CHECK:       lcm_sym1_ = exp(a_3);
// CHECK-NEXT:  target += lcm_sym1_ + lcm_sym1_;

// -----
// Loops that are left early, and conditions of `while`.
data { int N; vector[N] z; }
parameters { real p; }
model {
  for (n in 1:N) {
    if (z[n] > 0) {
      break;
    }
    target += exp(p);
    if (z[n] < -1) {
      continue;
    }
    target += exp(p) * 2;
  }
  int i = 0;
  while (cos(p) * i < 0.3) {
    i += 1;
  }
}
// CHECK:       for (n in 1:N) {
// CHECK-NEXT:    if (z[n] > 0) {
// CHECK-NEXT:      break;
// CHECK-NEXT:    }
// CHECK-NEXT:    lcm_sym1_ = exp(p);
// CHECK-NEXT:    target += lcm_sym1_;
// CHECK-NEXT:    if (z[n] < -1) {
// CHECK-NEXT:      continue;
// CHECK-NEXT:    }
// CHECK-NEXT:    target += lcm_sym1_ * 2;
// CHECK-NEXT:  }
// CHECK-NEXT:  int i = 0;
// CHECK-NEXT:  lcm_sym2_ = cos(p);
// CHECK-NEXT:  while (lcm_sym2_ * i < 0.3) {

// -----
// Draws are never shared (R12), nor is what reads the target.
generated quantities {
  real a = exp(normal_rng(0, 1));
  real b = exp(normal_rng(0, 1));
}
// CHECK:       real a = exp(normal_rng(0, 1));
// CHECK-NEXT:  real b = exp(normal_rng(0, 1));

// -----
// What is put together in memory costs something, though its parts do not.
data { int N; matrix[N, 3] X; row_vector[3] z; vector[N] y; }
parameters { real a; vector[3] b; }
model {
  target += append_col(1, z) * append_row(a, b);
  for (n in 1:N) y[n] ~ normal(append_col(1, X[n]) * append_row(a, b), 1);
}
// CHECK:       lcm_sym1_ = append_row(a, b);
// CHECK-NEXT:  target += append_col(1, z) * lcm_sym1_;
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    y[n] ~ normal(append_col(1, X[n]) * lcm_sym1_, 1);
