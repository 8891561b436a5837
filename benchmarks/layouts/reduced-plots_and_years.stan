// Yields of plots in years: effects of both, crossed; an if of the data around it.
// expect: reduced rows
// data: N = 8000; P = 400; Y = 6; plot = index(N, P); year = index(N, Y); rain = normal(N); crop = normal(N); fit = 1
// other: if (fit) for (n in 1 : size(crop)) crop[n] ~ normal(mean_crop + of_year[year[n]] + of_rain[plot[n]] * rain[n] + of_plot[plot[n]], noise); of_plot ~ normal(0, 1); of_rain ~ normal(0, 0.3); of_year ~ std_normal();
data {
  int<lower=0> N;
  int<lower=1> P;
  int<lower=1> Y;
  array[N] int<lower=1, upper=P> plot;
  array[N] int<lower=1, upper=Y> year;
  vector[N] rain;
  vector[N] crop;
  int<lower=0, upper=1> fit;
}
parameters {
  real mean_crop;
  vector[P] of_plot;
  vector[P] of_rain;
  vector[Y] of_year;
  real<lower=0> noise;
}
model {
  of_plot ~ normal(0, 1);
  of_rain ~ normal(0, 0.3);
  of_year ~ std_normal();
  if (fit) {
    crop ~ normal(mean_crop + of_plot[plot] + of_rain[plot] .* rain + of_year[year], noise);
  }
}
