// RUN: stan-opt -p memory-pattern-optimization --verify-each --debug-mem-patterns %s | filecheck %s

// The examples of the design of static matrices: assigning a part makes a matrix dynamic, reading a part does not.
data {
  int N;
  int M;
}
parameters {
  matrix[N, M] P;
  real x;
}
model {
  // CHECK: matrix P: static: it is a parameter

  matrix[N, M] A_element = P;
  A_element[10, 10] = 5;
  // CHECK: :[[# @LINE - 1]]:3: matrix A_element: dynamic: assigned in part: A_element[10, 10] = 5
  matrix[N, M] A_rows = P;
  A_rows[1 : 10, ] = rep_matrix(5, 10, M);
  // CHECK: :[[# @LINE - 1]]:3: matrix A_rows: dynamic: assigned in part: A_rows[1:10, ] =
  matrix[N, M] A_columns = P;
  A_columns[ , 1 : 10] = rep_matrix(5, N, 10);
  // CHECK: :[[# @LINE - 1]]:3: matrix A_columns: dynamic: assigned in part: A_columns[, 1:10] =
  matrix[N, M] A_block = P;
  A_block[1 : 10, 1 : 10] = rep_matrix(5, 10, 10);
  // CHECK: :[[# @LINE - 1]]:3: matrix A_block: dynamic: assigned in part: A_block[1:10, 1:10] =

  matrix[N, M] A = exp(P) * x;
  // CHECK: :[[# @LINE - 1]]:16: matrix A: static: only assigned whole
  real b = A[10, 10];
  // CHECK-NOT: real b
  matrix[10, M] C = A[1 : 10, ];
  // CHECK: matrix C: static
  matrix[N, 10] D = A[ , 1 : 10];
  // CHECK: matrix D: static
  row_vector[M] E = A[10];
  // CHECK: row_vector E: static
  matrix[10, 10] F = A[1 : 10, 1 : 10];
  // CHECK: matrix F: static
  target += sum(A_element) + sum(A_rows) + sum(A_columns) + sum(A_block) + b + sum(C) + sum(D) + sum(E) + sum(F);
}
