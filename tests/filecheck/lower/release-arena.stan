// An iteration gives back the memory it took; loops that only sum are marked, so are those that cannot be widened.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,hoist-data,lighten-loops,reverse-mode,thread-target{reassociate=true},dce,release-arena,loop-hints' | filecheck %s

data {
  int N;
  int K;
  array[N] vector[K] x;
}
parameters {
  vector[K] beta;
}
model {
  for (n in 1:N) {
    vector[K] z;
    for (k in 1:K) z[k] = x[n, k] * beta[k];
    target += max(z) * sum(z);
  }
}

// CHECK: scf.for
// CHECK: %[[MARK:.*]] = rt.mark_arena
// CHECK: rt.alloc
// CHECK: {rt.loop = #rt.loop<serial>}
// CHECK: {rt.loop = #rt.loop<interleave 4>}
// CHECK: rt.release %[[MARK]]
