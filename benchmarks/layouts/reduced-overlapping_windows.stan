// Windows that overlap: there are many more pairs of window and time than times; they are reduced as the nest has them.
// expect: reduced rows
// data: T = 2000; W = 200; first = np.minimum(index(W, T), T - 100); X = normal(T, 3); level = normal(T)
data {
  int<lower=0> T, W;
  array[W] int<lower=1> first;
  matrix[T, 3] X;
  vector[T] level;
}
parameters {
  vector[W] of_window;
  vector[3] beta;
  real<lower=0> noise;
}
model {
  of_window ~ std_normal();
  beta ~ std_normal();
  noise ~ exponential(1);
  for (w in 1 : W) {
    level[first[w] : first[w] + 99] ~ normal(of_window[w] + X[first[w] : first[w] + 99] * beta, noise);
  }
}
