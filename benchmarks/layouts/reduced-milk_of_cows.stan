// What cows gave each day, cow by cow, by what they gave the day before: the first day of a cow has none.
// expect: reduced rows
// data: N = 15000; C = 60; cow = np.sort(index(N, C)); last = np.cumsum(np.bincount(cow - 1, minlength=C)); first = np.concatenate([[1], last[:-1] + 1]); warm = normal(N); milk = normal(N) + 20
// bind: C = max(1, N // 100)
// other: of_cow ~ normal(20, spread); spread ~ exponential(1); noise ~ exponential(1); for (c in 1 : C) for (n in first[c] + 1 : last[c]) milk[n] ~ normal(of_cow[c] + carried * milk[n - 1] + by_warmth * warm[n], noise);
data {
  int<lower=0> N, C;
  array[N] int<lower=1, upper=C> cow;
  array[C] int first, last;
  vector[N] warm, milk;
}
parameters {
  vector[C] of_cow;
  real carried, by_warmth;
  real<lower=0> spread, noise;
}
model {
  of_cow ~ normal(20, spread);
  spread ~ exponential(1);
  noise ~ exponential(1);
  for (n in 2 : N) {
    if (cow[n] == cow[n - 1]) {
      milk[n] ~ normal(of_cow[cow[n]] + carried * milk[n - 1] + by_warmth * warm[n], noise);
    }
  }
}
