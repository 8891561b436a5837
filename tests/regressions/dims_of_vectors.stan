// dims left out the one column of a vector, and the one row of a row vector.
transformed data {
  array[2] vector[3] a;
  array[2] row_vector[3] b;
  matrix[2, 3] c;
}
parameters {
  real x;
}
model {
  x ~ normal(0, 1);
}
generated quantities {
  array[3] int dims_a = dims(a);
  array[3] int dims_b = dims(b);
  array[2] int dims_c = dims(c);
  // outputs: [2, 3, 1, 2, 1, 3, 2, 3]
}
