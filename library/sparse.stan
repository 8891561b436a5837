/* Sparse matrices in compressed row storage: w are the values that are not 0, v their columns, u where each row begins.
 * Stan Functions Reference, "Sparse matrix operations". */

vector csr_matrix_times_vector(int m, int n, vector w, array[] int v, array[] int u, vector b) {
  require_same_size(num_elements(b), n);
  require_same_size(m, size(u) - 1);
  require_same_size(size(v), num_elements(w));
  vector[m] result;
  for (i in 1:m) {
    real total = 0;
    for (k in u[i]:(u[i + 1] - 1)) total += w[k] * b[v[k]];
    result[i] = total;
  }
  return result;
}

matrix csr_to_dense_matrix(int m, int n, vector w, array[] int v, array[] int u) {
  matrix[m, n] result = rep_matrix(0, m, n);
  for (i in 1:m) {
    for (k in u[i]:(u[i + 1] - 1)) result[i, v[k]] = w[k];
  }
  return result;
}

int csr_count(matrix a) {
  int count = 0;
  for (i in 1:rows(a)) {
    for (j in 1:cols(a)) count += a[i, j] != 0;
  }
  return count;
}

vector csr_extract_w(matrix a) {
  vector[csr_count(a)] w;
  int count = 0;
  for (i in 1:rows(a)) {
    for (j in 1:cols(a)) {
      if (a[i, j] != 0) {
        count += 1;
        w[count] = a[i, j];
      }
    }
  }
  return w;
}

array[] int csr_extract_v(matrix a) {
  array[csr_count(a)] int v;
  int count = 0;
  for (i in 1:rows(a)) {
    for (j in 1:cols(a)) {
      if (a[i, j] != 0) {
        count += 1;
        v[count] = j;
      }
    }
  }
  return v;
}

array[] int csr_extract_u(matrix a) {
  array[rows(a) + 1] int u;
  u[1] = 1;
  for (i in 1:rows(a)) {
    u[i + 1] = u[i];
    for (j in 1:cols(a)) u[i + 1] += a[i, j] != 0;
  }
  return u;
}

tuple(vector, array[] int, array[] int) csr_extract(matrix a) {
  return (csr_extract_w(a), csr_extract_v(a), csr_extract_u(a));
}
