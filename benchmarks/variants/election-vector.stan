// posterior: election88-election88_full
// names of data: {"N": "R", "n_age": "A", "n_edu": "E", "n_age_edu": "AE", "n_state": "S", "n_region_full": "Q", "v_prev_full": "before", "y": "vote"}
data {
  int<lower=0> R; int<lower=0> A; int<lower=0> AE; int<lower=0> E; int<lower=0> Q; int<lower=0> S;
  array[R] int<lower=0, upper=A> age; array[R] int<lower=0, upper=AE> age_edu; vector<lower=0, upper=1>[R] black;
  array[R] int<lower=0, upper=E> edu; vector<lower=0, upper=1>[R] female; array[R] int<lower=0, upper=Q> region_full;
  array[R] int<lower=0, upper=S> state; vector[R] before; array[R] int<lower=0, upper=1> vote;
}
parameters { real c; real cb; real cf; real cbf; real cv; vector[S] st; vector[Q] re; vector[A] ag; vector[E] ed; vector[AE] ae; vector<lower=0, upper=100>[5] sd; }
model {
  vote ~ bernoulli_logit(st[state] + re[region_full] + ag[age] + ed[edu] + ae[age_edu] + c + cb * black + cf * female + cbf * (black .* female) + cv * before);
  st ~ normal(0, sd[1]); re ~ normal(0, sd[2]); ag ~ normal(0, sd[3]); ed ~ normal(0, sd[4]); ae ~ normal(0, sd[5]);
  c ~ normal(0, 100); cb ~ normal(0, 100); cf ~ normal(0, 100); cbf ~ normal(0, 100); cv ~ normal(0, 100);
}
