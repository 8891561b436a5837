// RUN: stan-opt -O0 --verify-each --debug-optimized-mir-pretty %s | filecheck %s --check-prefix=O0
// RUN: stan-opt -O1 --verify-each --debug-optimized-mir-pretty %s | filecheck %s --check-prefix=O1
// RUN: stan-opt -O2 --verify-each --debug-optimized-mir-pretty %s | filecheck %s --check-prefix=O2
// RUN: stan-opt -O3 --verify-each --debug-optimized-mir-pretty %s | filecheck %s --check-prefix=O3
// RUN: stan-opt -O4 --data '{"N": 2, "x": [1, 2], "y": [0, 1]}' --verify-each --debug-optimized-mir-pretty %s | filecheck %s --check-prefix=O4

// One program at all levels. Level 1 removes what is dead and finds out what needs no gradient; level 2 inlines,
// propagates and decides, but keeps every bit; level 3 rewrites expressions and loops; level 4 knows the data.
functions {
  real half(real x) {
    return x / 2;
  }
}
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real<lower=0, upper=1> p;
  real b;
}
model {
  int degree = 1;
  real unused = b * degree;
  real shift = x[1] / 2;
  real a = log(1 - half(p));
  if (degree > 1) {
    print("never");
  }
  for (n in 1 : N) {
    y[n] ~ normal(a + b * x[n], exp(shift));
  }
}
// O0-LABEL: log_prob {
// O0:         int degree = 1;
// O0-NEXT:    real unused = (b * degree);
// O0-NEXT:    real shift = (x[1] / 2);
// O0-NEXT:    real a = log((1 - half(p)));
// O0-NEXT:    if((degree > 1)) {
// O0:         for(n in 1:N) {
// O0-NEXT:      target += normal_lupdf(y[n], (a + (b * x[n])), exp(shift));
// O0-NEXT:    }
// O0-NEXT:  }

// O1-LABEL: log_prob {
// O1:         data int degree = 1;
// O1-NEXT:    data real unused;
// O1-NEXT:    data real shift = (x[1] / 2);
// O1-NEXT:    real a = log((1 - half(p)));
// O1-NEXT:    if((degree > 1)) {
// O1:         for(n in 1:N) {
// O1-NEXT:      target += normal_lupdf(y[n], (a + (b * x[n])), exp(shift));

// O2-LABEL: log_prob {
// O2:         data real [[E:lcm_sym\d+__]];
// O2:         data real shift = (x[1] / 2);
// O2-NOT:     half(
// O2:         [[H:inline_half_\w+__]] = (p / 2);
// O2-NEXT:    a = log((1 - [[H]]));
// O2-NEXT:    [[E]] = exp(shift);
// O2-NEXT:    for(n in 1:N) {
// O2-NEXT:      target += normal_lupdf(y[n], (a + (b * x[n])), [[E]]);
// O2-NEXT:    }
// O2-NEXT:  }

// O3-LABEL: log_prob {
// O3:         data real shift = (x[1] / 2);
// O3-NEXT:    real a = log1m((p / 2));
// O3-NEXT:    if((N >= 1)) {
// O3-NEXT:      target += normal_lupdf(y, fma(b, x, a), exp({{.*}}));
// O3-NEXT:    }
// O3-NEXT:  }

// O4-LABEL: log_prob {
// O4:         real a = log1m((p / 2));
// O4-NEXT:    target += normal_lupdf(y, fma(b, x, a), exp(0.5));
// O4-NEXT:  }
