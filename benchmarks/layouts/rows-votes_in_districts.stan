// expect: unique rows
// data: J = 200; n = rng.poisson(90, J); N = int(n.sum()); last = np.cumsum(n); first = last - n + 1; district = np.repeat(np.arange(1, J + 1), n); vote = bits(N); party = index(N, 3)
// other: for (k in 1 : N) vote[k] ~ bernoulli_logit(mood[district[k]] + line[party[k]]); mood ~ normal(0, 1); line ~ normal(0, 1);
data {
  int J;
  array[J] int n;
  int N;
  array[J] int last;
  array[J] int first;
  array[N] int district;
  array[N] int<lower=0, upper=1> vote;
  array[N] int<lower=1, upper=3> party;
}
parameters {
  vector[J] mood;
  vector[3] line;
}
model {
  for (j in 1 : J) vote[first[j] : last[j]] ~ bernoulli_logit(mood[j] + line[party[first[j] : last[j]]]);
  mood ~ normal(0, 1);
  line ~ normal(0, 1);
}
