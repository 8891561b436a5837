// Results of teams of different sizes: the members' strengths are summed up, as a product with a sparse design.
// expect: reduced rows
// data: N = 8000; P = 24; size = rng.integers(1, 5, N); first = np.cumsum(np.append(1, size)); M = int(first[-1]) - 1; member = index(M, P); share = rng.uniform(0.5, 1, M); home = bits(N); score = normal(N)
// bind: P = 24
// other: for (n in 1 : N) { real mu = base + at_home * home[n]; for (k in first[n] : first[n + 1] - 1) mu += share[k] * strength[member[k]]; score[n] ~ normal(mu, noise); } base ~ normal(0, 5); at_home ~ std_normal(); strength ~ std_normal(); noise ~ exponential(1);
data {
  int<lower=0> N, P, M;
  array[N + 1] int<lower=1> first;
  array[M] int<lower=1, upper=P> member;
  vector[M] share;
  vector[N] home, score;
}
parameters {
  real base, at_home;
  vector[P] strength;
  real<lower=0> noise;
}
model {
  base ~ normal(0, 5);
  at_home ~ std_normal();
  strength ~ std_normal();
  noise ~ exponential(1);
  score ~ normal(base + at_home * home + csr_matrix_times_vector(N, P, share, member, first, strength), noise);
}
