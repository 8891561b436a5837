// Long arms of branches become functions of their own, and what is then still too long is cut; loops stay whole.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse,thread-target,dce,split-functions{above=20 most=30 least=8}' | filecheck %s

data {
  int N;
  int kind;
  vector[N] y;
}
parameters {
  real a;
  real<lower=0> s;
}
model {
  if (kind == 1) {
    for (n in 1:N) target += -abs(y[n] - a) / s - log(s);
  } else if (kind == 2) {
    y ~ normal(a, s);
  } else {
    y ~ cauchy(a, s);
  }
}

// CHECK: func.func @evaluate(
// CHECK: scf.if
// CHECK: func.call @evaluate.part
// CHECK: func.func private @evaluate.part{{.*}}({{.*}}) attributes {rt.part = #rt.part} {
// CHECK: arith.constant
// CHECK: scf.for
// CHECK: func.return
