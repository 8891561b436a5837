// RUN: stan-opt -O3 --no-layouts --unit value_propto %s | filecheck %s

// Rows of seven columns, a number that is known: their elements come from a table that has the rows side by side.
data { int<lower=0> J; array[J, 7] real x; }
parameters { real a; }
model {
  for (j in 1:J) {
    real s = a;
    for (t in 1:7) {
      s = exp(-s * x[j, t]);
    }
    target += s;
  }
}
// CHECK: func.func @evaluate
// CHECK: [[TABLE:%.*]] = rt.bound 7 : !rt.buf<f64>
// CHECK: rt.load [[TABLE]]
// CHECK: #rt.loop<functions>
// CHECK: func.func @bind
// CHECK: rt.set_bound 7
