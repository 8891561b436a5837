// Positions of several joints at each time, with means in the columns of a matrix that a loop fills.
// expect: reduced rows
// data: T = 3000; J = 5; D = 2; speed = normal(T, D); angle = normal(T, J) + 1
// bind: J = 5
// other: a ~ normal(0, 1); to_vector(B) ~ normal(0, 1); spread ~ exponential(1); for (t in 1 : T) for (j in 1 : J) angle[t, j] ~ normal(a[j] + B[j] * speed[t], spread[j]);
data {
  int T, J, D;
  array[T] vector[D] speed;
  array[T] vector[J] angle;
}
parameters {
  vector[J] a;
  matrix[J, D] B;
  vector<lower=0>[J] spread;
}
model {
  matrix[J, T] mu;
  for (t in 1 : T) mu[ , t] = a + B * speed[t];
  a ~ normal(0, 1);
  to_vector(B) ~ normal(0, 1);
  spread ~ exponential(1);
  for (t in 1 : T) angle[t] ~ normal(mu[ , t], spread);
}
