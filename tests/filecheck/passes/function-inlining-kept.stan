// RUN: stan-opt --split-input-file -p 'function-inlining{limit=8 budget=30}' --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p 'function-inlining{limit=8 budget=30}' --explain %s | filecheck %s --check-prefix=WHY

// What stays a call, and why. Recursive functions, direct or mutual; calls in them are inlined.
functions {
  int odd(int n) {
    return n == 0 ? 0 : even(n - one());
  }
  int even(int n) {
    return n == 0 ? 1 : odd(n - 1);
  }
  int one() {
    return 1;
  }
}
transformed data {
  int e = even(one());
}
// CHECK-LABEL: functions {
// CHECK:           int inline_one_return_sym1_ = 1;
// CHECK-NEXT:      v = even(n - inline_one_return_sym1_);
// CHECK-LABEL: transformed data {
// CHECK:           int inline_one_return_sym1_ = 1;
// CHECK-NEXT:      e = even(inline_one_return_sym1_);
// WHY: call of even
// WHY-NEXT: not done function-inlining: the function calls itself, directly or through others

// -----
// Where there are no statements, and where sizes come from.
functions {
  int f(int n) {
    return n + 1;
  }
}
data {
  int n;
  array[f(n)] int x;
}
transformed data {
  int m = f(1);
  vector[m] v;
  int k = f(n);
}
parameters {
  vector[f(n)] p;
}
// CHECK-LABEL: data {
// CHECK:         array[f(n)] int x;
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    int m = f(1);
// CHECK:           k = inline_f_return_sym1_;
// CHECK-LABEL: parameters {
// CHECK-NEXT:    vector[f(n)] p;
// WHY: call of f
// WHY-NEXT: not done function-inlining: there are no statements in this block
// WHY: call of f
// WHY-NEXT: not done function-inlining: its value decides the size of an output variable

// -----
// A body of more ops than `limit` is inlined if there is but one call. What it calls may be inlined in it.
functions {
  real large(real x) {
    return small(x) + small(x + 1) + x * x;
  }
  real once(real x) {
    return 1 + x + 2 * x + x * x;
  }
  real small(real x) {
    return x;
  }
}
data {
  real d;
}
transformed data {
  real a = large(d);
  real b = large(1) + once(d);
}
// CHECK:         real large(real x) {
// CHECK-NEXT:      real inline_small_return_sym1_ = x;
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    real a = large(d);
// CHECK:           real inline_once_return_sym1_ = 1 + d + 2 * d + d * d;
// WHY: call of large
// WHY-NEXT: not done function-inlining: its body of {{[0-9]+}} ops is called from 2 places (limit: 8 ops)

// -----
// Beyond the budget.
functions {
  real f(real x) {
    return x + x + x;
  }
}
data {
  real d;
}
generated quantities {
  for (i in 1 : 2) {
    print(f(d), f(d), f(d), f(d), f(d), f(d), f(d), f(d), f(d), f(d), f(d));
  }
}
// CHECK-LABEL: generated quantities {
// CHECK:           print({{.*}}, inline_f_return_sym10_, f(d));
// WHY: done function-inlining: its body, 3 ops, stands in place of the call
// WHY: not done function-inlining: the program would grow by more than the budget (3 ops, 0 are left)

// -----
// In the body of a function that is passed on, what the calls know of autodiff arguments must stay the same: a vector
// that `f` assigns in part would count as depending on all formals of `rhs`.
functions {
  real f(real x) {
    vector[1] v;
    v[1] = x;
    return normal_lpdf(v[1] | 0, 1);
  }
  vector rhs(real t, vector y, real a, real b) {
    return [a * f(b) * y[1]]';
  }
}
parameters {
  real p;
}
model {
  target += sum(ode_rk45(rhs, [1]', 0, {1.0}, p, 0.5)[1]);
}
// CHECK:           return [a * f(b) * y[1]]';
// WHY: calls in rhs
// WHY-NEXT: not done function-inlining: it would change which arguments depend on the function's autodiff arguments
