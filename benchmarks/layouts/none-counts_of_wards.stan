// Counts by ward and day in an array, of which no two rows are equal; each ward has an effect of its own.
// expect: none
// data: wards = 300; days = 60; admitted = rng.poisson(2, (wards, days)); load = normal(wards, days)
data {
  int<lower=0> wards, days;
  array[wards, days] int<lower=0> admitted;
  matrix[wards, days] load;
}
parameters {
  vector[wards] of_ward;
  real of_load;
}
model {
  of_ward ~ std_normal();
  for (w in 1 : wards) {
    for (d in 1 : days) {
      admitted[w, d] ~ poisson_log(of_ward[w] + of_load * load[w, d]);
    }
  }
}
