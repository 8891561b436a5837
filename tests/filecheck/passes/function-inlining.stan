// RUN: stan-opt --split-input-file -p function-inlining --verify-each -t stan %s | filecheck %s

// The documented example: the body of the call, without a one-trip loop. The function stays.
functions {
  int incr(int x) {
    int y = 1;
    return x + y;
  }
}
transformed data {
  int a = 2;
  int b = incr(a);
}
// CHECK-LABEL: functions {
// CHECK-NEXT:    int incr(int x) {
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    int a = 2;
// CHECK-NEXT:    int b;
// CHECK-NEXT:    {
// CHECK-NEXT:      int inline_incr_return_sym1_;
// CHECK-NEXT:      int inline_incr_y_sym2_ = 1;
// CHECK-NEXT:      inline_incr_return_sym1_ = a + inline_incr_y_sym2_;
// CHECK-NEXT:      b = inline_incr_return_sym1_;
// CHECK-NEXT:    }

// -----
// By value: an argument is evaluated once, before the body, used or not (the reference's R1, R2). Literals, loop
// variables and variables that nothing assigns meanwhile need no variable of their own.
functions {
  real sq(real x, int n, real unused) {
    return x * x + n * n;
  }
}
data {
  real d;
}
generated quantities {
  for (i in 1 : 3) {
    print(sq(normal_rng(0, 1), i, normal_rng(0, 2)));
  }
  print(sq(d, 2, 1));
}
// CHECK-LABEL: generated quantities {
// CHECK-NEXT:    for (i in 1:3) {
// CHECK-NEXT:      real t = normal_rng(0, 1);
// CHECK-NEXT:      real t_2 = normal_rng(0, 2);
// CHECK-NEXT:      real inline_sq_return_sym1_;
// CHECK-NEXT:      real inline_sq_x_sym2_ = t;
// CHECK-NEXT:      inline_sq_return_sym1_ = inline_sq_x_sym2_ * inline_sq_x_sym2_ + i * i;
// CHECK-NEXT:      print(inline_sq_return_sym1_);
// CHECK-NEXT:    }
// CHECK:           real inline_sq_return_sym3_ = d * d + 2 * 2;
// CHECK-NEXT:      print(inline_sq_return_sym3_);

// -----
// In the place of the call: before every test of a `while`, which `continue` does not pass by (R5), and in the operand
// of `&&`.
functions {
  int f(int i) {
    print(i);
    return i < 2;
  }
}
data {
  int n;
}
generated quantities {
  int i = 0;
  while (f(i)) {
    i += 1;
    if (i == 2) {
      continue;
    }
  }
  int both = n > 1 && f(n);
}
// CHECK-LABEL: generated quantities {
// CHECK-NEXT:    int i = 0;
// CHECK-NEXT:    while (1) {
// CHECK-NEXT:      int inline_f_return_sym1_;
// CHECK-NEXT:      print(i);
// CHECK-NEXT:      inline_f_return_sym1_ = i < 2;
// CHECK-NEXT:      if (!inline_f_return_sym1_) {
// CHECK-NEXT:        break;
// CHECK-NEXT:      }
// CHECK-NEXT:      i = i + 1;
// CHECK-NEXT:      if (i == 2) {
// CHECK-NEXT:        continue;
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK:         v = 0;
// CHECK-NEXT:    if (n > 1) {
// CHECK-NEXT:      int inline_f_return_sym2_;
// CHECK-NEXT:      print(n);
// CHECK-NEXT:      inline_f_return_sym2_ = n < 2;
// CHECK-NEXT:      v = inline_f_return_sym2_;
// CHECK-NEXT:    }
// CHECK-NEXT:    int both = v;

// -----
// Early returns: flags tell whether the loop goes on and whether what follows it runs (R4, R23).
functions {
  real first(vector v, real low) {
    for (i in 1 : 3) {
      real x = v[i];
      if (x > low) {
        return x;
      }
    }
    return low;
  }
  void tell(int n) {
    if (n > 2) {
      return;
    }
    print(n);
  }
}
data {
  vector[3] v;
  int n;
}
transformed data {
  {
    real a = first(v, 0.5);
    tell(n);
  }
}
// CHECK-LABEL: transformed data {
// CHECK:           real inline_first_return_sym1_;
// CHECK-NEXT:      int inline_first_running_sym2_ = 1;
// CHECK:           while (inline_first_running_sym4_) {
// CHECK-NEXT:        int i = inline_first_i_sym3_;
// CHECK-NEXT:        real inline_first_x_sym5_ = v[i];
// CHECK-NEXT:        if (inline_first_x_sym5_ > 0.5) {
// CHECK:               inline_first_running_sym4_ = 0;
// CHECK-NEXT:          inline_first_return_sym1_ = t_2;
// CHECK-NEXT:          inline_first_running_sym2_ = 0;
// CHECK-NEXT:        } else {
// CHECK:           if (inline_first_running_sym2_) {
// CHECK-NEXT:        inline_first_return_sym1_ = 0.5;
// CHECK:           a = inline_first_return_sym1_;
// CHECK:           if (n > 2) {
// CHECK-NEXT:      } else {
// CHECK-NEXT:        print(n);

// -----
// Functions that call functions; what two calls declare does not meet. An argument that is evaluated before a variable
// changes is not read again.
functions {
  vector twice(vector v) {
    vector[2] w = v;
    w[1] = 2 * w[1];
    return w;
  }
  vector four(vector v) {
    return twice(twice(v));
  }
}
parameters {
  vector[2] p;
}
model {
  vector[2] q = four(p);
  q = twice(q);
}
// CHECK-LABEL: model {
// The sizes of `q` are checked where it is declared.
// CHECK-NEXT:    vector[2] q;
// CHECK-NEXT:    vector[2] inline_twice_w_sym3_ = p;
// CHECK-NEXT:    inline_twice_w_sym3_[1] = 2 * inline_twice_w_sym3_[1];
// CHECK-NEXT:    vector[num_elements(inline_twice_w_sym3_)] inline_twice_return_sym2_ = inline_twice_w_sym3_;
// CHECK-NEXT:    vector[2] inline_twice_w_sym5_ = inline_twice_return_sym2_;
// CHECK-NEXT:    inline_twice_w_sym5_[1] = 2 * inline_twice_w_sym5_[1];
// CHECK-NEXT:    vector[num_elements(inline_twice_w_sym5_)] inline_twice_return_sym4_ = inline_twice_w_sym5_;
// CHECK-NEXT:    vector[num_elements(inline_twice_return_sym4_)] inline_four_return_sym1_ = inline_twice_return_sym4_;
// CHECK-NEXT:    q = inline_four_return_sym1_;
// CHECK-NEXT:    vector[2] inline_twice_w_sym7_ = q;
// CHECK-NEXT:    inline_twice_w_sym7_[1] = 2 * inline_twice_w_sym7_[1];
// CHECK-NEXT:    vector[num_elements(inline_twice_w_sym7_)] inline_twice_return_sym6_ = inline_twice_w_sym7_;
// CHECK-NEXT:    q = inline_twice_return_sym6_;

// -----
// Constants are dropped where the call drops them. An overload is its own function.
functions {
  real d_lpdf(real y, real m) {
    return normal_lupdf(y | m, 1);
  }
  real f(int x) {
    return 1;
  }
  real f(real x) {
    return x;
  }
}
parameters {
  real a;
}
model {
  a ~ d(f(1));
  target += d_lpdf(a | f(1.5));
}
// CHECK-LABEL: model {
// CHECK-NEXT:    real inline_f_return_sym1_ = 1;
// CHECK-NEXT:    real inline_d_lpdf_return_sym2_ = normal_lupdf(a | inline_f_return_sym1_, 1);
// CHECK-NEXT:    target += inline_d_lpdf_return_sym2_;
// CHECK-NEXT:    real inline_f_return_sym3_ = 1.5;
// CHECK-NEXT:    real inline_d_lpdf_return_sym4_ = normal_lpdf(a | inline_f_return_sym3_, 1);
// CHECK-NEXT:    target += inline_d_lpdf_return_sym4_;
