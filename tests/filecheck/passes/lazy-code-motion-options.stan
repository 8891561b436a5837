// RUN: stan-opt -p 'lazy-code-motion{least-cost=1}' -t stan %s | filecheck %s --check-prefix=CHEAP
// RUN: stan-opt -p 'lazy-code-motion{preserve-numerics=true}' -t stan %s | filecheck %s --check-prefix=EXACT
// RUN: stan-opt -p 'one-step-loop-unrolling,lazy-code-motion' -t stan %s | filecheck %s --check-prefix=PEELED

data {
  int m;
  matrix[m, m] A;
}
transformed data {
  int k = (m + 1) * (m + 1);
}
parameters {
  vector[m] v;
}
model {
  for (n in 1:m) {
    target += (A * v)[n];
  }
  for (n in 1:2) {
    target += normal_lpdf(v | 0, 1);
  }
}

// Cheap expressions are shared if asked for. Sizes and bounds of variables that others see stay as they are.
// CHEAP:       int k;
// CHEAP-NEXT:  {
// CHEAP-NEXT:  /* data */ int lcm_sym1_;
// CHEAP-NEXT:  lcm_sym1_ = m + 1;
// CHEAP-NEXT:  k = lcm_sym1_ * lcm_sym1_;

// Densities are added to the target summand by summand, which a stored value would not be.
// EXACT:       for (n in 1:2) {
// EXACT-NEXT:    target += normal_lpdf(v | 0, 1);

// The first iteration computes what may fail, the others read it.
// PEELED:      if (m >= 1) {
// PEELED:        lcm_sym1_ = A * v;
// PEELED-NEXT:   target += lcm_sym1_[1];
// PEELED-NEXT:   for (n in {{.*}}:m) {
// PEELED-NEXT:     target += lcm_sym1_[n];
