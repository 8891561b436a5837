// posterior: hmm_gaussian_simulated-hmm_gaussian
// names of data: {"T": "N", "K": "S", "y": "x"}
data { int<lower=1> N; int<lower=1> S; array[N] real x; }
parameters { simplex[S] first; array[S] simplex[S] move; ordered[S] centre; array[S] real<lower=0> width; }
model {
  vector[S] lp;
  vector[S] lp_next;
  array[S] row_vector[S] log_move_tr;
  for (i in 1:S) for (j in 1:S) log_move_tr[j, i] = log(move[i, j]);
  for (n in 1:N) {
    for (s in 1:S) {
      if (n == 1) lp_next[s] = log(first[s]); else lp_next[s] = log_sum_exp(to_vector(log_move_tr[s]) + lp);
      if (x[n] > -99) lp_next[s] = lp_next[s] + normal_lpdf(x[n] | centre[s], width[s]);
    }
    lp = lp_next;
  }
  target += log_sum_exp(lp);
}
