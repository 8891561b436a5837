// Heavy tails around a price and with a scale of each market; quotes come market by market.
// expect: rows by index
// data: Q = 24000; K = 40; market = np.sort(index(Q, K)); volume = normal(Q); quote = normal(Q)
// other: for (q in 1 : Q) target += cauchy_lpdf(quote[q] | price[market[q]] + impact * volume[q], scale[market[q]]); price ~ normal(0, 2); scale ~ lognormal(0, 1);
// bind: K = max(1, Q // 600)
data {
  int K;
  int Q;
  array[Q] int<lower=1, upper=K> market;
  vector[Q] volume;
  vector[Q] quote;
}
parameters {
  vector[K] price;
  vector<lower=0>[K] scale;
  real impact;
}
model {
  price ~ normal(0, 2);
  scale ~ lognormal(0, 1);
  quote ~ cauchy(price[market] + impact * volume, scale[market]);
}
