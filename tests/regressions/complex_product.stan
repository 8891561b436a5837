// The message named types of the compiler's own: product of !stan.vector and !stan.complex_row_vector.
// point: [1, 2]
// outputs: [0, 1, 0, 2, 0, 2, 0, 4]
parameters {
  vector[2] x;
}
generated quantities {
  complex_matrix[2, 2] z = x * x' * 1i;
}
