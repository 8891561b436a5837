/* Hidden Markov models with finitely many states. Stan Functions Reference, "Hidden Markov models". Column n of
 * log_omegas has the log density of observation n in each state; Gamma[i, j] is the probability to go from i to j; rho
 * is the distribution of the first state. */

/* log of the probability of all observations: the forward algorithm, rescaled by the largest term of each column. */
real hmm_marginal(matrix log_omegas, matrix Gamma, vector rho) {
  hmm_check(log_omegas, Gamma, rho);
  real high = max(log_omegas[, 1]);
  vector[rows(log_omegas)] alpha = rho .* exp(log_omegas[, 1] - high);
  real log_scale = high;
  for (n in 2:cols(log_omegas)) {
    high = max(log_omegas[, n]);
    vector[rows(log_omegas)] next = (Gamma' * alpha) .* exp(log_omegas[, n] - high);
    real scale = max(next);
    alpha = next / scale;
    log_scale += high + log(scale);
  }
  return log_scale + log(sum(alpha));
}

void hmm_check(matrix log_omegas, matrix Gamma, vector rho) {
  require_same_size(num_elements(rho), rows(log_omegas));
  require_simplex(rho);
  require_same_size(cols(Gamma), rows(Gamma));
  require_same_size(rows(Gamma), rows(log_omegas));
  for (i in 1:rows(Gamma)) require_simplex(Gamma[i]);
}

/* Column n: the distribution of state n, given all observations; forward and backward passes. */
matrix hmm_hidden_state_prob(matrix log_omegas, matrix Gamma, vector rho) {
  hmm_check(log_omegas, Gamma, rho);
  int K = rows(log_omegas);
  int N = cols(log_omegas);
  matrix[K, N] omegas;
  matrix[K, N] result;
  for (n in 1:N) omegas[, n] = exp(log_omegas[, n] - max(log_omegas[, n]));
  result[, 1] = rho .* omegas[, 1];
  for (n in 2:N) {
    vector[K] next = (Gamma' * result[, n - 1]) .* omegas[, n];
    result[, n] = next / max(next);
  }
  vector[K] beta = rep_vector(1, K);
  result[, N] /= sum(result[, N]);
  for (i in 1:(N - 1)) {
    int n = N - i;
    beta = Gamma * (omegas[, n + 1] .* beta);
    beta /= max(beta);
    result[, n] = result[, n] .* beta / dot_product(result[, n], beta);
  }
  return result;
}

/* Hidden states drawn given all observations: the last from the filtered distribution, then backwards. */
array[] int hmm_latent_rng(matrix log_omegas, matrix Gamma, vector rho) {
  hmm_check(log_omegas, Gamma, rho);
  int K = rows(log_omegas);
  int N = cols(log_omegas);
  matrix[K, N] filtered;
  filtered[, 1] = rho .* exp(log_omegas[, 1] - max(log_omegas[, 1]));
  filtered[, 1] /= sum(filtered[, 1]);
  for (n in 2:N) {
    vector[K] next = (Gamma' * filtered[, n - 1]) .* exp(log_omegas[, n] - max(log_omegas[, n]));
    filtered[, n] = next / sum(next);
  }
  array[N] int states;
  states[N] = categorical_rng(filtered[, N]);
  for (i in 1:(N - 1)) {
    int n = N - i;
    vector[K] weights = filtered[, n] .* Gamma[, states[n + 1]];
    states[n] = categorical_rng(weights / sum(weights));
  }
  return states;
}
