/* Covariance functions of Gaussian processes. Stan Functions Reference, "Gaussian process covariance functions".
 *
 * A stationary covariance is a function of the squared distance of two inputs, divided by the squared length scale. Each
 * has forms for scalar and vector inputs, with one length scale or one per dimension, and for one set of inputs (the
 * matrix is symmetric, half of it is computed; the diagonal is the variance) or two. */

/* Decays by the squared distance d. Under a square root 1e-300 keeps the slope finite where two inputs are the same. */
real gp_exp_quad_decay(real d) { return exp(-0.5 * d); }

real gp_exponential_decay(real d) { return exp(-sqrt(d + 1e-300)); }

real gp_matern32_decay(real d) {
  real r = sqrt(3 * d + 1e-300);
  return (1 + r) * exp(-r);
}

real gp_matern52_decay(real d) {
  real r = sqrt(5 * d + 1e-300);
  return (1 + r + r * r / 3) * exp(-r);
}

/* The sum of ((x - y) / rho)^2. */
real gp_scaled_squared_distance(vector x, vector y, array[] real rho) {
  require_same_size(size(rho), num_elements(x));
  real total = 0;
  for (d in 1:size(rho)) total += square((x[d] - y[d]) / rho[d]);
  return total;
}

/* Exponentiated quadratic: sigma^2 * exp(-d^2 / 2), d the distance in length scales. */
matrix gp_exp_quad_cov(array[] real x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  real rate = -0.5 / square(rho);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) K[i, j] = variance * exp(rate * square(x[i] - x[j]));
  }
  for (j in 2:N) {
    for (i in 1:(j - 1)) K[i, j] = K[j, i];
  }
  return K;
}

matrix gp_exp_quad_cov(array[] vector x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_exp_quad_decay(squared_distance(x[i], x[j]) / square(rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_exp_quad_cov(array[] vector x, real sigma, array[] real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_exp_quad_decay(gp_scaled_squared_distance(x[i], x[j], rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_exp_quad_cov(array[] real x, array[] real y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_exp_quad_decay(square((x[i] - y[j]) / rho));
  }
  return K;
}

matrix gp_exp_quad_cov(array[] vector x, array[] vector y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_exp_quad_decay(squared_distance(x[i], y[j]) / square(rho));
  }
  return K;
}

matrix gp_exp_quad_cov(array[] vector x, array[] vector y, real sigma, array[] real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_exp_quad_decay(gp_scaled_squared_distance(x[i], y[j], rho));
  }
  return K;
}

/* Exponential: sigma^2 * exp(-d), d the distance in length scales. */
matrix gp_exponential_cov(array[] real x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_exponential_decay(square((x[i] - x[j]) / rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_exponential_cov(array[] vector x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_exponential_decay(squared_distance(x[i], x[j]) / square(rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_exponential_cov(array[] vector x, real sigma, array[] real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_exponential_decay(gp_scaled_squared_distance(x[i], x[j], rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_exponential_cov(array[] real x, array[] real y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_exponential_decay(square((x[i] - y[j]) / rho));
  }
  return K;
}

matrix gp_exponential_cov(array[] vector x, array[] vector y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_exponential_decay(squared_distance(x[i], y[j]) / square(rho));
  }
  return K;
}

matrix gp_exponential_cov(array[] vector x, array[] vector y, real sigma, array[] real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_exponential_decay(gp_scaled_squared_distance(x[i], y[j], rho));
  }
  return K;
}

/* Matern 3/2: sigma^2 * (1 + r) * exp(-r) with r = sqrt(3) * d, d the distance in length scales. */
matrix gp_matern32_cov(array[] real x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_matern32_decay(square((x[i] - x[j]) / rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_matern32_cov(array[] vector x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_matern32_decay(squared_distance(x[i], x[j]) / square(rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_matern32_cov(array[] vector x, real sigma, array[] real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_matern32_decay(gp_scaled_squared_distance(x[i], x[j], rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_matern32_cov(array[] real x, array[] real y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_matern32_decay(square((x[i] - y[j]) / rho));
  }
  return K;
}

matrix gp_matern32_cov(array[] vector x, array[] vector y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_matern32_decay(squared_distance(x[i], y[j]) / square(rho));
  }
  return K;
}

matrix gp_matern32_cov(array[] vector x, array[] vector y, real sigma, array[] real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_matern32_decay(gp_scaled_squared_distance(x[i], y[j], rho));
  }
  return K;
}

/* Matern 5/2: sigma^2 * (1 + r + r^2 / 3) * exp(-r) with r = sqrt(5) * d, d the distance in length scales. */
matrix gp_matern52_cov(array[] real x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_matern52_decay(square((x[i] - x[j]) / rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_matern52_cov(array[] vector x, real sigma, real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_matern52_decay(squared_distance(x[i], x[j]) / square(rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_matern52_cov(array[] vector x, real sigma, array[] real rho) {
  require_not_nan(x);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  int N = size(x);
  real variance = square(sigma);
  matrix[N, N] K;
  for (j in 1:N) {
    K[j, j] = variance;
    for (i in (j + 1):N) {
      real k = variance * gp_matern52_decay(gp_scaled_squared_distance(x[i], x[j], rho));
      K[i, j] = k;
      K[j, i] = k;
    }
  }
  return K;
}

matrix gp_matern52_cov(array[] real x, array[] real y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_matern52_decay(square((x[i] - y[j]) / rho));
  }
  return K;
}

matrix gp_matern52_cov(array[] vector x, array[] vector y, real sigma, real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_matern52_decay(squared_distance(x[i], y[j]) / square(rho));
  }
  return K;
}

matrix gp_matern52_cov(array[] vector x, array[] vector y, real sigma, array[] real rho) {
  require_not_nan(x);
  require_not_nan(y);
  require_positive_finite(sigma);
  require_positive_finite(rho);
  real variance = square(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = variance * gp_matern52_decay(gp_scaled_squared_distance(x[i], y[j], rho));
  }
  return K;
}

/* Periodic: sigma^2 * exp(-2 * sin(pi * d / period)^2 / rho^2), d the distance. */
matrix gp_periodic_cov(array[] real x, real sigma, real rho, real period) {
  return gp_periodic_cov(x, x, sigma, rho, period);
}

matrix gp_periodic_cov(array[] real x, array[] real y, real sigma, real rho, real period) {
  require_positive_finite(sigma);
  require_positive_finite(rho);
  require_positive_finite(period);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = gp_periodic_covariance(abs(x[i] - y[j]), sigma, rho, period);
  }
  return K;
}

matrix gp_periodic_cov(array[] vector x, real sigma, real rho, real period) {
  return gp_periodic_cov(x, x, sigma, rho, period);
}

matrix gp_periodic_cov(array[] vector x, array[] vector y, real sigma, real rho, real period) {
  require_positive_finite(sigma);
  require_positive_finite(rho);
  require_positive_finite(period);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) {
      real squared = squared_distance(x[i], y[j]);
      K[i, j] = squared == 0 ? square(sigma) : gp_periodic_covariance(sqrt(squared), sigma, rho, period);
    }
  }
  return K;
}

real gp_periodic_covariance(real d, real sigma, real rho, real period) {
  return square(sigma) * exp(-2 * square(sin(pi() * d / period) / rho));
}

/* Dot product: sigma^2 + x' y. */
matrix gp_dot_prod_cov(array[] real x, real sigma) { return gp_dot_prod_cov(x, x, sigma); }

matrix gp_dot_prod_cov(array[] real x, array[] real y, real sigma) {
  require_nonnegative(sigma);
  require_finite(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = square(sigma) + x[i] * y[j];
  }
  return K;
}

matrix gp_dot_prod_cov(array[] vector x, real sigma) { return gp_dot_prod_cov(x, x, sigma); }

matrix gp_dot_prod_cov(array[] vector x, array[] vector y, real sigma) {
  require_nonnegative(sigma);
  require_finite(sigma);
  matrix[size(x), size(y)] K;
  for (j in 1:size(y)) {
    for (i in 1:size(x)) K[i, j] = square(sigma) + dot_product(x[i], y[j]);
  }
  return K;
}
