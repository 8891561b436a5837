// posterior: bball_drive_event_0-hmm_drive_0
data { int K; int N; array[N] real u; array[N] real v; matrix[K, K] alpha; }
parameters { simplex[K] theta1; simplex[K] theta2; positive_ordered[K] phi; positive_ordered[K] lambda; }
transformed parameters { matrix[K, K] lt; lt[1] = log(theta1)'; lt[2] = log(theta2)'; }
model { theta1 ~ dirichlet(alpha[1]'); theta2 ~ dirichlet(alpha[2]'); phi[1] ~ std_normal(); phi[2] ~ normal(3, 1); lambda[1] ~ std_normal(); lambda[2] ~ normal(3, 1);
 vector[K] g = log(phi) - phi * u[1] + log(lambda) - lambda * v[1]; for (t in 2:N) { vector[K] h; for (k in 1:K) h[k] = log_sum_exp(g + lt[, k]); g = h + log(phi) - phi * u[t] + log(lambda) - lambda * v[t]; } target += log_sum_exp(g); }
