// RUN: stan-opt --split-input-file -p ad-level-optimization,ad-level-optimization --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p ad-level-optimization --explain %s | filecheck %s --check-prefix=EXPLAIN

// From parameters through variables, whole or in part, also against the order of the text; ints carry nothing.
data {
  real d;
}
transformed data {
  real td = d;
}
parameters {
  real p;
  array[2] vector[3] a;
}
transformed parameters {
  real tp = p;
  real tq = td;
  vector[2] e;
  e[1] = d;
  e[2] = tp;
}
model {
  real x = tq + 1;
  array[2] real c;
  c[1] = d;
  c[2] = tp;
  real last;
  real next = 0;
  for (v in a) {
    last = next;
    next = v[1];
  }
  int sign = p > 0;
  real size = num_elements(a);
  real z = p > 0 ? x : d;
  real w = p > 0 ? x : p;
  tuple(real, real) t = (p, d);
  real second = t.2;
  real field = (p, d).2;
}
generated quantities {
  real g = p;
}
// CHECK-LABEL: transformed data {
// CHECK-NEXT:    real td = d;
// CHECK-LABEL: transformed parameters {
// CHECK-NEXT:    real tp = p;
// CHECK-NEXT:    /* data */ real tq = td;
// CHECK-NEXT:    vector[2] e;
// CHECK-LABEL: model {
// CHECK-NEXT:    /* data */ real x = tq + 1;
// CHECK-NEXT:    array[2] real c;
// CHECK:       {{^}}  real last;
// CHECK-NEXT:    real next = 0;
// CHECK:         /* data */ int sign = p > 0;
// CHECK-NEXT:    /* data */ real size = num_elements(a);
// CHECK-NEXT:    /* data */ real z = p > 0 ? x : d;
// CHECK-NEXT:    real w = p > 0 ? x : p;
// CHECK-NEXT:    real t_1;
// CHECK-NEXT:    /* data */ real t_2;
// CHECK:         t_1 = p;
// CHECK:         /* data */ real second = t_2;
// CHECK:         /* data */ real field = d;
// CHECK-NEXT:  }
// CHECK-LABEL: generated quantities {
// CHECK-NEXT:    real g = p;
// EXPLAIN:       variable tq
// EXPLAIN-NEXT:    done      ad-level-optimization: needs no gradient
// EXPLAIN:       variable e
// EXPLAIN-NEXT:    not done  ad-level-optimization: line 20 assigns a value that depends on p
// EXPLAIN:       variable last
// EXPLAIN-NEXT:    not done  ad-level-optimization: line 30 assigns a value that depends on a

// -----
// In functions from the formals; what the target was so far depends on parameters.
functions {
  real f(real a, data real b, int c) {
    real u = b * c;
    real v = u + a;
    return v;
  }
  real g_lp(data real b) {
    real u = b + target();
    return u;
  }
}
data {
  real d;
}
model {
  real x = g_lp(d);
  real y = f(d, d, 1);
}
// CHECK-LABEL: real f(
// CHECK-NEXT:      /* data */ real u = b * c;
// CHECK-NEXT:      real v = u + a;
// CHECK-LABEL: real g_lp(
// CHECK-NEXT:      real u = b + target();
// CHECK-LABEL: model {
// CHECK-NEXT:    real x = g_lp(d);
// CHECK-NEXT:    /* data */ real y = f(d, d, 1);
// EXPLAIN:       variable u
// EXPLAIN:       variable u
// EXPLAIN-NEXT:    not done  ad-level-optimization: line {{[0-9]+}} assigns a value that depends on the target
