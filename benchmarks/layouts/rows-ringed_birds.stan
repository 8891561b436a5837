// Birds from the occasion on which they were ringed to the last on which they were seen: survival and recapture by it.
// expect: unique rows
// data: B = 3000; T = 8; ringed = index(B, 4); last = np.minimum(ringed + rng.integers(0, 5, B), T); seen = bits(B * T).reshape(B, T)
// other: survives ~ beta(2, 2); found ~ beta(2, 2); for (b in 1 : B) { target += sum(log(survives[ringed[b] : last[b] - 1])); seen[b, ringed[b] + 1 : last[b]] ~ bernoulli(found[ringed[b] + 1 : last[b]]); }
data {
  int<lower=0> B;
  int<lower=1> T;
  array[B] int<lower=1, upper=T> ringed, last;
  array[B, T] int<lower=0, upper=1> seen;
}
parameters {
  vector<lower=0, upper=1>[T] survives, found;
}
model {
  survives ~ beta(2, 2);
  found ~ beta(2, 2);
  for (b in 1 : B) {
    if (last[b] > ringed[b]) {
      for (t in ringed[b] + 1 : last[b]) {
        1 ~ bernoulli(survives[t - 1]);
        seen[b, t] ~ bernoulli(found[t]);
      }
    }
  }
}
