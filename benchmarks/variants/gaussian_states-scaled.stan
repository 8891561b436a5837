// posterior: hmm_gaussian_simulated-hmm_gaussian
// names of data: {"T": "N", "K": "S", "y": "x"}
data { int<lower=1> N; int<lower=1> S; array[N] real x; }
parameters { simplex[S] first; array[S] simplex[S] move; ordered[S] centre; array[S] real<lower=0> width; }
model {
  vector[S] f;
  vector[S] g;
  for (s in 1:S) f[s] = log(first[s]) + normal_lpdf(x[1] | centre, width);
  for (n in 2:N) {
    for (to in 1:S) {
      vector[S] w;
      for (from in 1:S) w[from] = f[from] + log(move[from, to]);
      g[to] = log_sum_exp(w) + normal_lpdf(x[n] | centre[to], width[to]);
    }
    f = g;
  }
  target += log_sum_exp(f);
}
