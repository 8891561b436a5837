// Calls in the order of agents; in some weeks, all of an agent, they are coached, by one of the coaches.
// expect: rows by index
// data: N = 18000; A = 90; C = 12; agent = np.repeat(np.arange(1, A + 1), N // A); coached = np.repeat(bits(A), N // A); coach = np.where(coached, np.repeat(index(A, C), N // A), 0); hour = normal(N); sold = bits(N)
// bind: A = N // 50
// other: of_agent ~ normal(0, 1); of_coach ~ normal(0, 1); sold ~ bernoulli_logit(base + by_hour * hour + of_agent[agent] + append_row(0, of_coach)[kind]);
data {
  int<lower=0> N, A, C;
  array[N] int<lower=1, upper=A> agent;
  array[N] int<lower=0, upper=1> coached;
  array[N] int<lower=0, upper=C> coach;
  vector[N] hour;
  array[N] int<lower=0, upper=1> sold;
}
transformed data {
  array[N] int kind;
  for (n in 1 : N) kind[n] = coach[n] + 1;
}
parameters {
  real base, by_hour;
  vector[A] of_agent;
  vector[C] of_coach;
}
model {
  of_agent ~ normal(0, 1);
  of_coach ~ normal(0, 1);
  for (n in 1 : N) {
    real eta = base + by_hour * hour[n] + of_agent[agent[n]];
    if (coached[n]) eta += of_coach[coach[n]];
    sold[n] ~ bernoulli_logit(eta);
  }
}
