// posterior: timssAusTwn_irt-gpcm_latent_reg_irt
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
  alpha ~ lognormal(1, 1);
  beta ~ normal(0, 3);
  theta ~ std_normal();
  for (n in 1:N) {
    int k = m[ii[n]];
    y[n] + 1 ~ categorical_logit(cumulative_sum(append_row(0, theta[jj[n]] * alpha[ii[n]] - beta[pos[ii[n]]:pos[ii[n]] + k - 1])));
  }
}
