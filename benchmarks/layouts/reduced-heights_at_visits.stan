// Heights of children at visits in a matrix, each with a level of the child; the loop over visits stands outside.
// expect: reduced rows
// data: rows = 16000; visits = 40; children = rows // visits; height = normal(children, visits); age = normal(children, visits)
// other: for (c in 1 : children) height[c] ~ normal(mean_height + level[c] + growth * age[c], noise); level ~ normal(0, spread); spread ~ exponential(1); noise ~ exponential(1);
data {
  int<lower=0> rows, children, visits;
  matrix[children, visits] height, age;
}
parameters {
  real mean_height, growth;
  vector[children] level;
  real<lower=0> spread, noise;
}
model {
  spread ~ exponential(1);
  noise ~ exponential(1);
  level ~ normal(0, spread);
  for (v in 1 : visits) {
    for (c in 1 : children) {
      height[c, v] ~ normal(mean_height + level[c] + growth * age[c, v], noise);
    }
  }
}
