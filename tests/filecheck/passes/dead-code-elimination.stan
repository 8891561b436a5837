// RUN: stan-opt --split-input-file -p dead-code-elimination --verify-each -t stan %s | filecheck %s

// What is not read goes, also where it only feeds itself; what the program puts out stays.
data {
  int N;
}
transformed data {
  int kept = N;
  {
    real self = 0;
    for (i in 1 : N) {
      self += i;
    }
  }
}
parameters {
  real p;
}
transformed parameters {
  real out = p;
}
model {
  p ~ normal(N, 1);
}
generated quantities {
  real also = p;
}
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    int kept = N;
// CHECK-NEXT:    {
// CHECK-NEXT:      real self;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK:         real out = p;
// CHECK:         real also = p;

// -----
// Errors, prints and draws stay, whether or not their value is used (R16, R17, R18).
functions {
  real loud(real x) {
    print(x);
    return x;
  }
  real quiet(real x) {
    return x;
  }
}
data {
  int n;
  matrix[2, 2] S;
  vector[2] v;
}
generated quantities {
  {
    real a = loud(1);
    real b = quiet(1);
    real c = normal_rng(0, 1);
    matrix[2, 2] d = cholesky_decompose(S);
    real e = v[n];
    int f = n %/% 0;
    if (v[n] > 1) {
      b = 2;
    }
  }
}
// CHECK-LABEL: real loud(real x) {
// CHECK:         generated quantities {
// CHECK:           real a = loud(1.0);
// CHECK:           real b;
// CHECK:           real c = normal_rng(0, 1);
// CHECK:           matrix[2, 2] d = cholesky_decompose(S);
// CHECK:           real e = v[n];
// CHECK:           int f = n %/% 0;
// CHECK:         if (v[n] > 1) {
// CHECK-NEXT:    }

// -----
// Branches and loops whose conditions are literals; what follows an arm that leaves is never reached.
functions {
  int f(int n) {
    if (1) {
      return n;
    }
    print("never");
    return 0;
  }
}
transformed data {
  if (1) {
    int local = 3;
    print(local);
  } else {
    print("no");
  }
  while (0) {
    print("no");
  }
  for (i in 5 : 2) {
    print(i);
  }
}
// CHECK-LABEL: functions {
// CHECK-NEXT:    int f(int n) {
// CHECK-NEXT:      return n;
// CHECK-NEXT:    }
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    {
// CHECK-NEXT:      int local = 3;
// CHECK-NEXT:      print(local);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// A loop that may not end stays; exits stay with what they leave.
data {
  int n;
}
transformed data {
  int k = 0;
  while (k < n) {
    k += 1;
  }
  for (i in 1 : n) {
    if (i > 3) {
      break;
    }
    print(i);
  }
  for (i in 1 : n) {
    if (i > 3) {
      break;
    }
  }
}
// CHECK-LABEL: transformed data {
// CHECK:         while (k < n) {
// CHECK-NEXT:      k = k + 1;
// CHECK:         for (i in 1:n) {
// CHECK-NEXT:      if (i > 3) {
// CHECK-NEXT:        break;
// CHECK:           print(i);
// CHECK-NEXT:    }
// CHECK-NEXT:  }

// -----
// An empty profile stays: it is in the report.
model {
  profile("empty") {
    real x = 3;
  }
}
// CHECK-LABEL: model {
// CHECK-NEXT:    profile("empty") {
// CHECK-NEXT:      real x;
// CHECK-NEXT:    }


// -----
// Elements of what is never read: they go where they surely are there.
data {
  int<lower=0> N;
  int i;
}
parameters {
  real p;
}
model {
  vector[3] v;
  v[2] = exp(p);
  vector[N] w;
  for (n in 1 : N) {
    w[n] = p;
  }
  matrix[2, N] M;
  M[i, 1] = p;
  v[4] = p;
}
// CHECK-LABEL: model {
// CHECK-NEXT:    vector[3] v;
// CHECK-NEXT:    vector[N] w;
// CHECK-NEXT:    matrix[2, N] M;
// CHECK-NEXT:    M[i, 1] = p;
// CHECK-NEXT:    v[4] = p;
// CHECK-NEXT:  }
