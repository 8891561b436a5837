// posterior: nes1996-nes
// names of data: {"N": "M", "partyid7": "party", "real_ideo": "ideology", "race_adj": "race"}
data { int<lower=0> M; vector[M] party; vector[M] ideology; vector[M] race; vector[M] educ1; vector[M] gender; vector[M] income; array[M] int age_discrete; }
parameters { vector[9] b; real<lower=0> s; }
model {
  for (i in 1:M) {
    real mu = b[1] + b[2] * ideology[i] + b[3] * race[i] + b[7] * educ1[i] + b[8] * gender[i] + b[9] * income[i];
    if (age_discrete[i] == 2) mu += b[4]; else if (age_discrete[i] == 3) mu += b[5]; else if (age_discrete[i] == 4) mu += b[6];
    party[i] ~ normal(mu, s);
  }
  s ~ exponential(1);
}
