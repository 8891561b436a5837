// posterior: bones_data-bones_model
// names of data: {"nChild": "C", "nInd": "D", "gamma": "cut", "delta": "slope", "ncat": "n_grades", "grade": "seen"}
data { int<lower=0> C; int<lower=0> D; array[D, 4] real cut; array[D] real slope; array[D] int<lower=0> n_grades; array[C, D] int seen; }
parameters { vector[C] t; }
model {
  for (c in 1:C) for (d in 1:D) {
    int g = seen[c, d];
    if (g != -1) {
      int K = n_grades[d];
      if (g == 1) target += log1m(inv_logit(slope[d] * (t[c] - cut[d, 1])));
      else if (g == K) target += log(inv_logit(slope[d] * (t[c] - cut[d, K - 1])));
      else target += log(inv_logit(slope[d] * (t[c] - cut[d, g - 1])) - inv_logit(slope[d] * (t[c] - cut[d, g])));
    }
  }
  t ~ normal(0, 36);
}
