// A model as a function: transforms with their adjustments, then transformed parameters, then the model. `~` is one op
// for readers: the value of the density is kept, and the target after it. Without the adjustments there is no jacobian.
// RUN: stan-opt %s -p 'trace-instrument{root=log_prob}' | filecheck %s
// RUN: stan-opt %s -p 'trace-instrument{root=log_prob jacobian=false}' | filecheck %s --check-prefix PLAIN
// CHECK-LABEL: sym_name = "log_prob.model.traced", stan_name = "log_prob"
// CHECK-SAME:  argument_names = ["N", "y", "up", "s", "v"], data_only = array<i8: 1, 1, 1, 0, 0>
// CHECK-NEXT:  ^{{.*}}(%N: !stan.int, %y: !stan.vector, %up: !stan.real, %s: !stan.real, %v: !stan.vector):
// CHECK-NEXT:    [[RECORD:%.*]] = "trace.block"()
// CHECK:         [[ADDED:%.*]] = "trace.jacobian"(%s, %{{.*}}, %up) <{var_name = "s", constraint = "bounds"
// CHECK-NEXT:    "trace.value"([[RECORD]], [[ADDED]]) <{slot = 0 : i64}>
// CHECK-NEXT:    [[TARGET:%.*]] = "stan.target"()
// CHECK-NEXT:    "trace.value"([[RECORD]], [[TARGET]]) <{slot = 1 : i64}>
// CHECK:         [[S:%.*]] = "trace.constrain"(%s, %{{.*}}, %up) <{var_name = "s"
// CHECK-NOT:     "trace.jacobian"
// CHECK:         [[V:%.*]] = "trace.constrain"(%v, %N) <{var_name = "v", constraint = "none", declared = !stan.vector
// CHECK:         [[T:%.*]] = "stan.declare"() <{var_name = "t"
// CHECK:         "stan.assign"([[T]], %{{.*}})
// CHECK:         "stan.read"([[T]])
// CHECK:         "stan.check"
// CHECK:         [[READ:%.*]] = "stan.read"([[T]])
// CHECK:         "trace.guard"([[RECORD]])
// CHECK-NEXT:    [[DENSITY:%.*]] = "stan.call"(%y, [[V]], [[READ]])
// CHECK-NEXT:    "trace.value"([[RECORD]], [[DENSITY]]) <{slot = [[SLOT:.*]] : i64}>
// CHECK-NEXT:    "stan.target_add"([[DENSITY]]) <{tilde}>
// CHECK-NEXT:    [[AFTER:%.*]] = "stan.target"()
// CHECK-NEXT:    "trace.value"([[RECORD]], [[AFTER]])
// CHECK-NEXT:    [[SUM:%.*]] = "trace.sum"([[V]])
// CHECK-NEXT:    "stan.target_add"([[SUM]])
// CHECK-NEXT:    "trace.value"([[RECORD]], [[SUM]])
// CHECK-NEXT:    "stan.target"()
// CHECK-NEXT:    "trace.value"
// CHECK-NEXT:    [[RESULT:%.*]] = "stan.target"()
// CHECK:         "stan.return"([[RESULT]])
// PLAIN-LABEL: sym_name = "log_prob.model.traced"
// PLAIN-NOT:   "trace.jacobian"
// PLAIN:       "trace.constrain"(%s
data { int N; vector[N] y; }
transformed data { real up = 2; }
parameters { real<lower=0, upper=up> s; vector[N] v; }
transformed parameters { real<lower=0> t = s + 1; }
model {
  y ~ normal(v, t);
  target += v;
}
