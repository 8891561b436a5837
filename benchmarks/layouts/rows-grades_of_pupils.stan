// Probabilities of ordered grades, written by hand; the other form declares their vector ahead of the loop, as manuals do.
// expect: unique rows
// data: N = 4000; K = 5; grade = index(N, K); hours = rng.integers(0, 5, N); aided = bits(N)
// other: vector[K] theta; for (n in 1 : N) { real eta = of_hours * hours[n] + of_aid * aided[n]; theta[1] = 1 - inv_logit(eta - cut[1]); for (k in 2 : (K - 1)) theta[k] = inv_logit(eta - cut[k - 1]) - inv_logit(eta - cut[k]); theta[K] = inv_logit(eta - cut[K - 1]); grade[n] ~ categorical(theta); } cut ~ normal(0, 2);
data {
  int<lower=0> N;
  int<lower=2> K;
  array[N] int<lower=1, upper=K> grade;
  array[N] int hours, aided;
}
parameters {
  ordered[K - 1] cut;
  real of_hours, of_aid;
}
model {
  cut ~ normal(0, 2);
  for (n in 1 : N) {
    vector[K] theta;
    real eta = of_hours * hours[n] + of_aid * aided[n];
    theta[1] = 1 - inv_logit(eta - cut[1]);
    for (k in 2 : (K - 1)) {
      theta[k] = inv_logit(eta - cut[k - 1]) - inv_logit(eta - cut[k]);
    }
    theta[K] = inv_logit(eta - cut[K - 1]);
    grade[n] ~ categorical(theta);
  }
}
