// Daily readings, station after station: a mean, a slope and a precision of each.
// expect: reduced rows
// data: S = 80; days = rng.poisson(150, S); N = int(days.sum()); wind = normal(N); reading = 0.3 * wind + normal(N)
// other: { int done = 1; for (s in 1 : S) { segment(reading, done, days[s]) ~ normal(base[s] + effect[s] * segment(wind, done, days[s]), inv_sqrt(precision[s])); done += days[s]; } } base ~ normal(0, 5); effect ~ std_normal(); precision ~ gamma(2, 2);
data {
  int S;
  array[S] int days;
  int N;
  vector[N] wind;
  vector[N] reading;
}
transformed data {
  array[N] int station;
  {
    int n = 1;
    for (s in 1 : S)
      for (day in 1 : days[s]) {
        station[n] = s;
        n += 1;
      }
  }
}
parameters {
  vector[S] base;
  vector[S] effect;
  vector<lower=0>[S] precision;
}
model {
  base ~ normal(0, 5);
  effect ~ std_normal();
  precision ~ gamma(2, 2);
  reading ~ normal(base[station] + effect[station] .* wind, 1 ./ sqrt(precision[station]));
}
