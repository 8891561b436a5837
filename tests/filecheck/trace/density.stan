// A model as a function: transforms with their adjustments, then transformed parameters, then the model. `~` is one op
// for readers: the value of the density is kept, and the target after it. Without the adjustments there is no jacobian.
// RUN: stan-opt %s -p 'trace-instrument{root=log_prob}' | filecheck %s
// RUN: stan-opt %s -p 'trace-instrument{root=log_prob jacobian=false}' | filecheck %s --check-prefix PLAIN
// CHECK-LABEL: stan.func @log_prob.model.traced(data N %N: !stan.int, data y %y: !stan.vector, data up %up: !stan.real,
// CHECK-SAME:  s %s: !stan.real, v %v: !stan.vector) -> (!stan.real) stan_name log_prob
// CHECK-NEXT:    [[RECORD:%.*]] = trace.block
// CHECK:         [[ADDED:%.*]] = trace.jacobian s %s bounds lower(%{{.*}} : !stan.real) upper(%up : !stan.real)
// CHECK-NEXT:    trace.value [[RECORD]][0] = [[ADDED]]
// CHECK-NEXT:    [[TARGET:%.*]] = stan.target
// CHECK-NEXT:    trace.value [[RECORD]][1] = [[TARGET]]
// CHECK:         [[S:%.*]] = trace.constrain s %s bounds lower(%{{.*}} : !stan.real) upper(%up : !stan.real)
// CHECK-NOT:     trace.jacobian
// CHECK:         [[V:%.*]] = trace.constrain v %v[%N] declared !stan.vector
// CHECK:         [[T:%.*]] = stan.declare t
// CHECK:         stan.assign [[T]] = %{{.*}}
// CHECK:         stan.read [[T]]
// CHECK:         stan.check
// CHECK:         [[READ:%.*]] = stan.read [[T]]
// CHECK:         trace.guard [[RECORD]] progress
// CHECK-NEXT:    [[DENSITY:%.*]] = stan.call
// CHECK-NEXT:    trace.value [[RECORD]][[[SLOT:.*]]] = [[DENSITY]]
// CHECK-NEXT:    stan.target_add tilde [[DENSITY]]
// CHECK-NEXT:    [[AFTER:%.*]] = stan.target
// CHECK-NEXT:    trace.value [[RECORD]][{{.*}}] = [[AFTER]]
// CHECK-NEXT:    [[SUM:%.*]] = trace.sum [[V]]
// CHECK-NEXT:    stan.target_add [[SUM]]
// CHECK-NEXT:    trace.value [[RECORD]][{{.*}}] = [[SUM]]
// CHECK-NEXT:    stan.target
// CHECK-NEXT:    trace.value
// CHECK-NEXT:    [[RESULT:%.*]] = stan.target
// CHECK:         stan.return [[RESULT]]
// PLAIN-LABEL: stan.func @log_prob.model.traced(
// PLAIN-NOT:   trace.jacobian
// PLAIN:       trace.constrain s %s
data { int N; vector[N] y; }
transformed data { real up = 2; }
parameters { real<lower=0, upper=up> s; vector[N] v; }
transformed parameters { real<lower=0> t = s + 1; }
model {
  y ~ normal(v, t);
  target += v;
}
