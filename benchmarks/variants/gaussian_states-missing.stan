// posterior: hmm_gaussian_simulated-hmm_gaussian
// names of data: {"T": "N", "K": "S", "y": "x"}
data { int<lower=1> N; int<lower=1> S; array[N] real x; }
parameters { simplex[S] first; array[S] simplex[S] move; ordered[S] centre; array[S] real<lower=0> width; }
model {
  vector[S] lp;
  vector[S] lp_next;
  for (s in 1:S) lp[s] = log(first[s]) + normal_lpdf(x[1] | centre[s], width[s]);
  for (n in 2:N) {
    for (s in 1:S) {
      vector[S] w;
      for (r in 1:S) w[r] = lp[r] + log(move[r][s]);
      lp_next[s] = log_sum_exp(w);
      if (x[n] > -99) lp_next[s] += normal_lpdf(x[n] | centre[s], width[s]);
    }
    lp = lp_next;
  }
  target += log_sum_exp(lp);
}
