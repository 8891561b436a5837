// RUN: stan-opt -p strip-profiles -t stan %s | filecheck %s
// RUN: stan-opt -p 'strip-profiles,loop-vectorization' -t stan %s | filecheck %s --check-prefix=LOOP

// Statements of a profile stand where it stood, so nothing keeps passes from what they do without it.
functions {
  real f(real x) {
    profile("early") {
      if (x > 0) {
        return x;
      }
    }
    profile("last") {
      return -x;
    }
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real m;
  real<lower=0> s;
}
model {
  profile("declares") {
    real z = m + 1;
    profile("inner") {
      z ~ normal(0, 1);
    }
  }
  for (n in 1:N) {
    profile("iteration") {
      y[n] ~ normal(m, s);
    }
  }
  while (f(m) > 0) {
    profile("leaves") {
      print("once");
      break;
    }
  }
}

// CHECK-NOT: profile
// CHECK:      real f(real x) {
// CHECK-NEXT:   if (x > 0) {
// CHECK-NEXT:     return x;
// CHECK-NEXT:   }
// CHECK-NEXT:   return -x;
// CHECK-NEXT: }
// CHECK:      model {
// CHECK-NEXT:   real z = m + 1;
// CHECK-NEXT:   z ~ normal(0, 1);
// CHECK-NEXT:   for (n in 1:N) {
// CHECK-NEXT:     y[n] ~ normal(m, s);
// CHECK-NEXT:   }
// CHECK-NEXT:   while (f(m) > 0) {
// CHECK-NEXT:     print("once");
// CHECK-NEXT:     break;
// CHECK-NEXT:   }

// LOOP: y ~ normal(m, s);
