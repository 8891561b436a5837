// All elements of a matrix of outcomes at once, with means that are a product and a mean of each column.
// expect: reduced rows
// data: N = 3000; J = 6; P = 2; ability = normal(N, P); score = ability @ normal(P, J) + normal(N, J)
// bind: J = 6
// other: to_vector(load) ~ normal(0, 1); mean_of ~ normal(0, 5); noise ~ exponential(1); for (j in 1 : J) score[ , j] ~ normal(mean_of[j] + ability * load[j]', noise);
data {
  int N, J, P;
  matrix[N, P] ability;
  matrix[N, J] score;
}
parameters {
  matrix[J, P] load;
  vector[J] mean_of;
  real<lower=0> noise;
}
model {
  to_vector(load) ~ normal(0, 1);
  mean_of ~ normal(0, 5);
  noise ~ exponential(1);
  to_vector(score) ~ normal(to_vector(ability * load' + rep_matrix(mean_of', N)), noise);
}
