// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,fuse-loops{before_reverse_mode=true},reverse-mode,cse,dce' | filecheck %s

// Two loops became one. It carries a sum whose partial results are used: its reverse runs from the last iteration to
// the first. The sum of the second loop, of which only the end is used, would not require that.
data { int N; }
parameters { vector[N] v; }
model {
  vector[N] w = cumulative_sum(v);
  real t = 0;
  for (i in 1:N) t += square(w[i]) * w[i];
  target += t;
}
// CHECK:      %[[TRIPS:[0-9]+]] = arith.maxsi
// CHECK-NEXT: %[[KEPT:[0-9]+]] = rt.alloc %[[TRIPS]] : !rt.buf<f64>
// CHECK:      scf.for
// CHECK:        ad.keep %[[KEPT]]
// CHECK:      scf.for %[[STEP:[0-9]+]] =
// CHECK-NEXT:   %[[LAST:.*]] = arith.subi %[[TRIPS]], %{{.*}} : i64
// CHECK-NEXT:   %[[AT:.*]] = arith.subi %[[LAST]], %[[STEP]] : i64
// CHECK:        ad.kept %[[KEPT]][%[[AT]]]
