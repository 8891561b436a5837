// posterior: radon_mn-radon_hierarchical_intercept_centered
// names of data: {"J": "G", "N": "M", "county_idx": "of", "log_uppm": "uranium", "floor_measure": "storey", "log_radon": "level"}
data { int<lower=0> G; int<lower=0> M; array[M] int<lower=1, upper=G> of; vector[M] uranium; vector[M] storey; vector[M] level; }
parameters { real m; real<lower=0> s; real<lower=0> noise; vector[G] a; real u; real f; }
model {
  level ~ normal(a[of] + u * uranium + storey * f, noise);
  for (g in 1:G) a[g] ~ normal(m, s);
  u ~ normal(0, 10); f ~ normal(0, 10); m ~ normal(0, 10); s ~ normal(0, 1); noise ~ normal(0, 1);
}
