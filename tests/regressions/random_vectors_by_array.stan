// Random vectors took no array of means.
generated quantities {
  array[3] vector[2] m = {[1, 100]', [2, 200]', [3, 300]'};
  array[3] row_vector[2] r = {[1, 100], [2, 200], [3, 300]};
  array[3] vector[2] a = multi_normal_rng(m, [[1e-20, 0], [0, 1e-20]]);
  array[3] vector[2] b = multi_student_t_rng(50, r, [[1e-20, 0], [0, 1e-20]]);
  // outputs: [1, 2, 3, 100, 200, 300, 1, 2, 3, 100, 200, 300, 1, 2, 3, 100, 200, 300, 1, 2, 3, 100, 200, 300]
}
