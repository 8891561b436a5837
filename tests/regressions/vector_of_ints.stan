// to_vector and to_matrix of ints kept the elements' type: invalid code.
generated quantities {
  array[4] int y = {1, 4, 2, 5};
  array[2, 2] int z = {{1, 4}, {2, 5}};
  real m = mean(to_vector(y)) + sum(to_row_vector(y)) + sum(to_array_1d(z));
  matrix[2, 2] a = to_matrix(y, 2, 2);
  matrix[2, 2] b = to_matrix(z);
  // outputs: [1, 4, 2, 5, 1, 2, 4, 5, 27, 1, 4, 2, 5, 1, 2, 4, 5]
}
