// Hours of work, which are 0 for many: a censored mean, written as one loop with a branch.
// expect: reduced rows
// data: N = 8000; age = normal(N); schooling = normal(N); hours = np.maximum(0, 4 + age + schooling + normal(N))
// other: vector[N] fit = base + by_age * age + by_school * schooling; hours[some] ~ normal(fit[some], noise); target += normal_lcdf(rep_vector(0, zeros) | fit[none], noise); base ~ normal(0, 5); noise ~ exponential(1);
data {
  int<lower=0> N;
  vector[N] age, schooling;
  vector<lower=0>[N] hours;
}
transformed data {
  int zeros = 0;
  for (n in 1 : N) zeros += hours[n] == 0;
  array[zeros] int none;
  array[N - zeros] int some;
  {
    array[2] int at = {1, 1};
    for (n in 1 : N) {
      if (hours[n] == 0) {
        none[at[1]] = n;
        at[1] += 1;
      } else {
        some[at[2]] = n;
        at[2] += 1;
      }
    }
  }
}
parameters {
  real base, by_age, by_school;
  real<lower=0> noise;
}
model {
  base ~ normal(0, 5);
  noise ~ exponential(1);
  for (n in 1 : N) {
    real mu = base + by_age * age[n] + by_school * schooling[n];
    if (hours[n] > 0) hours[n] ~ normal(mu, noise);
    else target += normal_lcdf(0 | mu, noise);
  }
}
