// posterior: hmm_gaussian_simulated-hmm_gaussian
// names of data: {"T": "N", "K": "S", "y": "x"}
data { int<lower=1> N; int<lower=1> S; array[N] real x; }
transformed data { array[N] int id; for (n in 1:N) id[n] = 1 + (n - 1) %/% 100; }
parameters { simplex[S] first; array[S] simplex[S] move; ordered[S] centre; array[S] real<lower=0> width; }
model {
  vector[S] lp;
  vector[S] lp_next;
  array[S] vector[S] log_move_tr;
  for (i in 1:S) for (j in 1:S) log_move_tr[j, i] = log(move[i, j]);
  for (n in 1:N) {
    if (n == 1 || id[n] != id[n - 1]) lp = log(first);
    for (s in 1:S) {
      lp_next[s] = log_sum_exp(log_move_tr[s] + lp);
      if (x[n] > -99) lp_next[s] = lp_next[s] + normal_lpdf(x[n] | centre[s], width[s]);
    }
    lp = lp_next;
    if (n == N || id[n + 1] != id[n]) target += log_sum_exp(lp);
  }
}
