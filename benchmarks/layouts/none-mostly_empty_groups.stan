// Ten groups for each row, most of them without any: groups of rows are of one.
// expect: none
// data: N = 3000; J = 10 * N; id = index(N, J); y = normal(N); x = normal(N)
data {
  int N;
  int J;
  array[N] int<lower=1, upper=J> id;
  vector[N] y;
  vector[N] x;
}
parameters {
  vector[J] u;
  real b;
  real<lower=0> s;
}
model {
  u ~ std_normal();
  s ~ exponential(1);
  for (n in 1 : N) {
    target += student_t_lpdf(y[n] | 4, u[id[n]] + b * x[n], s);
  }
}
