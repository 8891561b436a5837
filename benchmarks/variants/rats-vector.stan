// posterior: rats_data-rats_model
// names of data: {"N": "R", "Npts": "M", "rat": "who", "x": "day", "y": "grams", "xbar": "mid"}
data { int<lower=0> R; int<lower=0> M; array[M] int<lower=0> who; array[M] real day; array[M] real grams; real mid; }
transformed data { vector[M] d = to_vector(day) - mid; }
parameters { vector[R] a; vector[R] b; real ma; real mb; real<lower=0> sy; real<lower=0> sa; real<lower=0> sb; }
model {
  vector[M] mean_grams = a[who] + b[who] .* d;
  grams ~ normal(mean_grams, sy);
  a ~ normal(ma, sa); b ~ normal(mb, sb); ma ~ normal(0, 100); mb ~ normal(0, 100);
}
