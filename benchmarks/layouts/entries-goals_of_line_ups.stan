// Goals of line-ups of different sizes: strengths of players, weighted by their minutes, as a product with a sparse matrix.
// expect: listed entries
// data: N = 8000; P = 300; size = rng.integers(1, 6, N); first = np.cumsum(np.append(1, size)); M = int(first[-1]) - 1; player = index(M, P); minutes = rng.uniform(0.2, 1, M); home = normal(N); goals = counts(N, 2)
// other: for (n in 1 : N) { real eta = base + at_home * home[n]; for (k in first[n] : first[n + 1] - 1) eta += strength[player[k]] * minutes[k]; goals[n] ~ poisson_log(eta); } base ~ std_normal(); at_home ~ std_normal(); strength ~ std_normal();
data {
  int<lower=0> N, P, M;
  array[N + 1] int<lower=1> first;
  array[M] int<lower=1, upper=P> player;
  vector[M] minutes;
  vector[N] home;
  array[N] int<lower=0> goals;
}
parameters {
  real base, at_home;
  vector[P] strength;
}
model {
  base ~ std_normal();
  at_home ~ std_normal();
  strength ~ std_normal();
  goals ~ poisson_log(base + at_home * home + csr_matrix_times_vector(N, P, minutes, player, first, strength));
}
