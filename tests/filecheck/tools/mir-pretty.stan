// RUN: stan-opt --debug-transformed-mir-pretty %s | filecheck %s
functions {
  real twice(data real x, array[,] int n) {
    return 2 * x;
  }
}
data {
  int<lower=0> N;
  vector[N] v;
  array[N] matrix[2, 3] am;
}
transformed data {
  array[2, N] int k = {{1}, {2}};
  {
    int j = N;
    print("j", j);
  }
}
parameters {
  real<lower=0, upper=N> s;
  simplex[3] th;
  cholesky_factor_corr[4] L;
}
transformed parameters {
  row_vector<upper=1>[2] q = [s, 1.0 / 2];
}
model {
  v ~ normal(0, s);
  target += normal_lpdf(v | 1.5, 2);
  if (s > 1 && !(N < 2) || N == 3) {
    reject("a", -s, am[1]');
  } else if (N == 5) {
    fatal_error("b");
  } else {
    print(N ? 1 : s);
  }
  matrix[2, 3] b = am[1];
  b[1, 2 : 3] = b[1, : 2];
  b[ : , 1] += b[1 : , 1];
  while (s ^ 2 > 2) {
    break;
  }
  tuple(real, array[2] int) t = (1, {1, 2});
  profile("z") {
    b[t.2, 1] = v[1 : 2];
  }
}
generated quantities {
  real g = normal_rng(twice(1, k), 1);
}
// CHECK:      functions {
// CHECK-NEXT:   real twice(data real x, array[,] int n) {
// CHECK-NEXT:     return (2 * x);
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: input_vars {
// CHECK-NEXT:   int N;
// CHECK-NEXT:   vector[N] v;
// CHECK-NEXT:   array[matrix[2, 3], N] am;
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: prepare_data {
// CHECK-NEXT:   data int N = FnReadData__("N")[1];
// CHECK-NEXT:   FnCheck__("N", N, lower=0);
// CHECK-NEXT:   data vector[N] v = FnReadData__("v");
// CHECK-NEXT:   data array[matrix[2, 3], N] am = FnReadData__("am");
// CHECK-NEXT:   data array[array[int, N], 2] k = FnMakeArray__(FnMakeArray__(1), FnMakeArray__(2));
// CHECK-NEXT:   {
// CHECK-NEXT:     data int j = N;
// CHECK-NEXT:     FnPrint__("j", j);
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: log_prob {
// CHECK-NEXT:   real s = FnReadParam__("s", lower=0, upper=N);
// CHECK-NEXT:   vector[3] th = FnReadParam__("th", simplex);
// CHECK-NEXT:   matrix[4, 4] L = FnReadParam__("L", cholesky_factor_corr);
// CHECK-NEXT:   row_vector[2] q = FnMakeRowVec__(s, (1.0 / 2));
// CHECK-NEXT:   FnCheck__("q", q, upper=1);
// CHECK-NEXT:   target += normal_lupdf(v, 0, s);
// CHECK-NEXT:   target += normal_lpdf(v, 1.5, 2);
// CHECK-NEXT:   if((((s > 1) && PNot__((N < 2))) || (N == 3))) {
// CHECK-NEXT:     FnReject__("a", PMinus__(s), Transpose__(am[1]));
// CHECK-NEXT:   } else if((N == 5)) {
// CHECK-NEXT:     FnFatalError__("b");
// CHECK-NEXT:   } else {
// CHECK-NEXT:     FnPrint__((N ? 1 : s));
// CHECK-NEXT:   }
// CHECK-NEXT:   matrix[2, 3] b = am[1];
// CHECK-NEXT:   b[1, 2:3] = b[1, 1:2];
// CHECK-NEXT:   b[:, 1] = (b[:, 1] + b[1:, 1]);
// CHECK-NEXT:   while(((s ^ 2) > 2)) {
// CHECK-NEXT:     break;
// CHECK-NEXT:   }
// CHECK-NEXT:   real t.1;
// CHECK-NEXT:   array[int, 2] t.2;
// CHECK:        t.1 = 1;
// CHECK-NEXT:   t.2 = {{.*}};
// CHECK-NEXT:   profile("z") {
// CHECK-NEXT:     b[t.2, 1] = v[1:2];
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: generate_quantities {
// CHECK-NEXT:   data real g = normal_rng(twice(1.0, k), 1);
// CHECK-NEXT: }
