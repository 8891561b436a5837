// posterior: timssAusTwn_irt-gpcm_latent_reg_irt
functions {
  real credit(int y, real ability, vector steps) {
    vector[num_elements(steps) + 1] level;
    level[1] = 0;
    for (k in 1:num_elements(steps)) level[k + 1] = level[k] + ability - steps[k];
    return level[y + 1] - log_sum_exp(level);
  }
}
data {
  int<lower=1> I;
  int<lower=1> J;
  int<lower=1> N;
  array[N] int<lower=1, upper=I> ii;
  array[N] int<lower=1, upper=J> jj;
  array[N] int<lower=0> y;
}
transformed data {
  array[I] int m = rep_array(0, I);
  array[I] int pos;
  for (n in 1:N) m[ii[n]] = max(m[ii[n]], y[n]);
  pos[1] = 1;
  for (i in 2:I) pos[i] = m[i - 1] + pos[i - 1];
}
parameters {
  vector<lower=0>[I] alpha;
  vector[sum(m)] beta;
  vector[J] theta;
}
model {
  for (n in 1:N)
    target += credit(y[n], alpha[ii[n]] * theta[jj[n]], segment(beta, pos[ii[n]], m[ii[n]]));
  theta ~ std_normal();
  beta ~ normal(0, 3);
  alpha ~ lognormal(1, 1);
}
