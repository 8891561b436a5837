// The message named types of the compiler's own: product of !stan.vector and !stan.complex_row_vector.
// error: complex numbers are not supported yet [not-supported]
parameters {
  vector[2] x;
}
generated quantities {
  complex_matrix[2, 2] z = x * x'  * 1i;
}
