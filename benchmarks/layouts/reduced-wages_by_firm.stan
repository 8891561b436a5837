// Wages by what is known of a person, with an intercept and a slope per firm; one statement per person.
// expect: reduced rows
// data: N = 20000; F = 150; firm = index(N, F); years = np.abs(normal(N)); degree = bits(N) * 1.0; wage = normal(N)
// other: wage ~ normal(base[firm] + raise[firm] .* years + premium * to_vector(degree) - 0.1 * premium * square(years), noise); base_raw ~ std_normal(); raise ~ normal(0, 0.5); noise ~ exponential(1);
data {
  int<lower=0> N;
  int<lower=1> F;
  array[N] int<lower=1, upper=F> firm;
  vector[N] years;
  vector[N] degree;
  array[N] real wage;
}
parameters {
  vector[F] base_raw;
  vector[F] raise;
  real centre;
  real<lower=0> spread;
  real premium;
  real<lower=0> noise;
}
transformed parameters {
  vector[F] base = centre + spread * base_raw;
}
model {
  base_raw ~ std_normal();
  raise ~ normal(0, 0.5);
  for (n in 1 : N) {
    real expected = base[firm[n]] + raise[firm[n]] * years[n];
    expected += premium * degree[n] - 0.1 * premium * square(years[n]);
    wage[n] ~ normal(expected, noise);
  }
  noise ~ exponential(1);
}
