// Equal loops and branches of a long unit become one function, which is called where they were.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse,thread-target,dce,share-parts{above=20 least=8 relocated=true}' | filecheck %s

data {
  int N;
  int kind;
  vector[N] x;
  vector[N] y;
}
parameters {
  vector[2] a;
  real<lower=0> s;
}
model {
  if (kind >= 1) {
    for (n in 1:N) target += -abs(x[n] - a[1]) / s - log(s);
  }
  if (kind >= 2) {
    for (n in 1:N) target += -abs(y[n] - a[2]) / s - log(s);
  }
}

// CHECK: func.func @evaluate(
// CHECK: func.call @evaluate.shared
// CHECK: func.call @evaluate.shared
// CHECK: func.func private @evaluate.shared{{.*}}({{.*}}) attributes {rt.part = #rt.part} {
// CHECK: scf.for
// CHECK: func.return
