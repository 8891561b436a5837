/* The embedded Laplace approximation: the integral of exp(ll(theta, ...)) over theta ~ N(0, K), by a normal density
 * about the mode of the integrand. Stan Functions Reference, "Embedded Laplace Approximation". The methods:
 * C. E. Rasmussen, C. K. I. Williams (2006), "Gaussian Processes for Machine Learning", 3.4 and 5.5.1;
 * C. C. Margossian (2023), "General adjoint-differentiated Laplace approximation", arXiv:2306.14976.
 *
 * The functions call the log likelihood ll as `callback_...`, with its further arguments added, and are given the matrix
 * K. The functions declared here without a body are the compiler's: see passes/to_loops/callbacks.py.
 *
 * With W the negative Hessian of ll at the mode, in blocks on its diagonal, a = K^-1 theta, R = W (I + K W)^-1:
 *
 *     result = ll(theta) - a' theta / 2 - log det(I + K W) / 2
 *
 * The mode is found in steps of Newton's method, which the line search halves; after that, a few more steps make it as
 * exact as they can. All that is constant: `laplace_attach` gives the result its derivatives, with respect to K and to
 * the parameters of ll, the change of the mode included. */

vector callback_derivatives(vector theta);
vector callback_slope_derivatives(vector theta, vector direction);
vector callback_curvature_derivatives(vector theta, vector direction);
vector callback_parameters();
int is_differentiated(matrix x);

real laplace_marginal(int hessian_block_size, matrix covariance) {
  return laplace_density(hessian_block_size, covariance, rep_vector(0, rows(covariance)), 1.49012e-08, 500, 1, 1000, 1);
}

real laplace_marginal_tol(int hessian_block_size, matrix covariance, vector theta_init, real tolerance,
                          int max_num_steps, int solver, int max_steps_line_search, int allow_fallthrough) {
  return laplace_density(hessian_block_size, covariance, theta_init, tolerance, max_num_steps, solver,
                         max_steps_line_search, allow_fallthrough);
}

tuple(vector, matrix) laplace_latent_solve(int hessian_block_size, matrix covariance) {
  return laplace_latent(hessian_block_size, covariance, rep_vector(0, rows(covariance)), 1.49012e-08, 500, 1, 1000, 1);
}

tuple(vector, matrix) laplace_latent_solve_tol(int hessian_block_size, matrix covariance, vector theta_init,
                                               real tolerance, int max_num_steps, int solver,
                                               int max_steps_line_search, int allow_fallthrough) {
  return laplace_latent(hessian_block_size, covariance, theta_init, tolerance, max_num_steps, solver,
                        max_steps_line_search, allow_fallthrough);
}

vector laplace_latent_rng(int hessian_block_size, matrix covariance) {
  return laplace_draw_rng(laplace_latent(hessian_block_size, covariance, rep_vector(0, rows(covariance)), 1.49012e-08,
                                         500, 1, 1000, 1));
}

vector laplace_latent_tol_rng(int hessian_block_size, matrix covariance, vector theta_init, real tolerance,
                              int max_num_steps, int solver, int max_steps_line_search, int allow_fallthrough) {
  return laplace_draw_rng(laplace_latent(hessian_block_size, covariance, theta_init, tolerance, max_num_steps, solver,
                                         max_steps_line_search, allow_fallthrough));
}

tuple(vector, real, int, int, int, int) generate_laplace_options(int theta_size) {
  require_nonnegative(theta_size);
  return (rep_vector(0, theta_size), 1.49012e-08, 500, 1, 1000, 1);
}

tuple(vector, real, int, int, int, int) generate_laplace_options(vector theta_init) {
  return (theta_init, 1.49012e-08, 500, 1, 1000, 1);
}

/* ---------------------------------------------------------------- likelihoods */

real laplace_poisson_log_likelihood(vector theta, array[] int y, array[] int y_index, vector m) {
  require_same_size(num_elements(y_index), num_elements(y));
  require_same_size(num_elements(m), num_elements(theta));
  return poisson_log_lpmf(y | theta[y_index] + m[y_index]);
}

/* eta has an element for each group. */
real laplace_neg_binomial_2_log_likelihood(vector theta, array[] int y, array[] int y_index, vector eta, vector m) {
  require_same_size(num_elements(y_index), num_elements(y));
  require_same_size(num_elements(eta), num_elements(theta));
  require_same_size(num_elements(m), num_elements(theta));
  return neg_binomial_2_log_lpmf(y | theta[y_index] + m[y_index], eta[y_index]);
}

real laplace_bernoulli_logit_likelihood(vector theta, array[] int y, array[] int y_index, vector m) {
  require_same_size(num_elements(y_index), num_elements(y));
  require_same_size(num_elements(m), num_elements(theta));
  return bernoulli_logit_lpmf(y | theta[y_index] + m[y_index]);
}

/* ---------------------------------------------------------------- the approximation */

real laplace_density(int hessian_block_size, matrix covariance, vector theta_init, real tolerance, int max_num_steps,
                     int solver, int max_steps_line_search, int allow_fallthrough) {
  laplace_check(hessian_block_size, covariance, theta_init, tolerance, max_num_steps, solver, max_steps_line_search);
  int n = rows(covariance);
  matrix[n, n] K;
  for (j in 1:n) {
    for (i in 1:n) K[i, j] = value_of(covariance[i, j]);
  }
  tuple(real, vector[n], vector[n], vector[num_elements(callback_parameters())], matrix[n, hessian_block_size]) found
    = laplace_mode(hessian_block_size, K, theta_init, tolerance, max_num_steps, solver, max_steps_line_search,
                   allow_fallthrough);
  return laplace_attach(found.1, hessian_block_size, covariance, K, found.2, found.3, found.4, found.5);
}

/* Mean and Cholesky factor of the covariance of the normal density that is the approximation. */
tuple(vector, matrix) laplace_latent(int hessian_block_size, matrix covariance, vector theta_init, real tolerance,
                                     int max_num_steps, int solver, int max_steps_line_search, int allow_fallthrough) {
  laplace_check(hessian_block_size, covariance, theta_init, tolerance, max_num_steps, solver, max_steps_line_search);
  int n = rows(covariance);
  tuple(real, vector[n], vector[n], vector[num_elements(callback_parameters())], matrix[n, hessian_block_size]) found
    = laplace_mode(hessian_block_size, covariance, theta_init, tolerance, max_num_steps, solver,
                   max_steps_line_search, allow_fallthrough);
  return (found.2, laplace_factor(laplace_covariance(hessian_block_size, covariance, found.5)));
}

vector laplace_draw_rng(tuple(vector, matrix) latent) {
  int n = num_elements(latent.1);
  return latent.1 + latent.2 * to_vector(normal_rng(rep_vector(0, n), 1));
}

void laplace_check(int hessian_block_size, matrix covariance, vector theta_init, real tolerance, int max_num_steps,
                   int solver, int max_steps_line_search) {
  require_square(covariance);
  require_nonempty(rows(covariance));
  require_same_size(num_elements(theta_init), rows(covariance));
  require_finite(theta_init);
  require_nonnegative(tolerance);
  require_positive(max_num_steps);
  require_positive(hessian_block_size);
  require_same_size(rows(covariance) % hessian_block_size, 0);
  require_in_interval(solver, 1, 3);
  require_nonnegative(max_steps_line_search);
  require_finite(covariance);
}

/* Log density, mode, a, the derivatives of ll with respect to its parameters, W: block below block. */
tuple(real, vector, vector, vector, matrix) laplace_mode(int b, matrix K, vector theta_init, real tolerance,
                                                         int max_num_steps, int solver, int max_steps_line_search,
                                                         int allow_fallthrough) {
  int n = rows(K);
  int n_par = num_elements(callback_parameters());
  vector[n] theta;
  for (i in 1:n) theta[i] = value_of(theta_init[i]);
  vector[n] a = rep_vector(0, n);
  vector[n] a_next = a;
  vector[n] theta_next = theta;
  vector[n] step = a;
  vector[n_par] slopes = rep_vector(0, n_par);
  matrix[n, b] W = rep_matrix(0, n, b);
  real log_determinant = 0;
  real objective = negative_infinity();
  real scale = 1;
  int n_steps = 0;
  int n_halved = 0;
  int n_polishing = 0;
  int goes_on = 1;
  matrix[n, n] K_root = K;
  int uses = solver;
  if (solver == 2) {
    K_root = laplace_factor(K);
    real smallest_pivot = min(diagonal(K_root));
    if (!allow_fallthrough) require_positive_pivot(smallest_pivot);
    uses = smallest_pivot > 0 ? 2 : 3;
  }
  while (goes_on) {
    vector[1 + n + n_par] f = callback_derivatives(theta_next);
    real log_likelihood = f[1];
    real objective_next = log_likelihood - 0.5 * dot_product(a_next, theta_next);
    if (n_steps == 0) require_finite(log_likelihood);
    if (n_steps == 0 || objective_next >= objective - 1e-14 * abs(objective)
        || (max_steps_line_search == 0 && n_polishing == 0 && abs(objective_next) < positive_infinity())) {
      // The a of a guess is not known: whatever comes next is better.
      int is_guess = n_steps == 0 && dot_self(theta_next) > 0 ? 1 : 0;
      objective = is_guess ? negative_infinity() : objective_next;
      a = a_next;
      theta = theta_next;
      slopes = tail(f, n_par);
      vector[n] gradient = segment(f, 2, n);
      W = laplace_negative_hessian(b, theta);
      tuple(vector[n], real) newton
        = laplace_step(b, K, K_root, W, laplace_block_product(b, W, theta) + gradient, uses, allow_fallthrough);
      step = newton.1 - a;
      log_determinant = newton.2;
      vector[n] theta_step = K * step;
      real slope = dot_product(gradient - a, theta_step);
      if (slope < 0 && !is_guess) step = -step;
      real length = max(abs(theta_step));
      real size_of_theta = max(abs(theta));
      n_polishing += !is_guess && (abs(slope) <= 2 * tolerance || length <= 1e-12 * size_of_theta) ? 1 : 0;
      goes_on = is_guess || (length > 1e-15 * size_of_theta && n_polishing < 4) ? 1 : 0;
      n_steps += 1;
      n_halved = 0;
      scale = 1;
      if (goes_on && n_polishing == 0) require_mode_reached(n_steps, max_num_steps);
    } else {
      goes_on = n_polishing == 0 ? 1 : 0;
      n_halved += 1;
      scale *= 0.5;
      if (goes_on) require_higher_density(n_halved, max_steps_line_search > 0 ? max_steps_line_search : 50);
    }
    a_next = a + scale * step;
    theta_next = K * a_next;
  }
  return (objective - 0.5 * log_determinant, theta, a, slopes, W);
}

/* W: of each block a column by one product, for all blocks at once. */
matrix laplace_negative_hessian(int b, vector theta) {
  int n = num_elements(theta);
  matrix[n, b] negative_hessian;
  for (c in 1:b) {
    vector[n] direction;
    for (i in 1:n) direction[i] = (i - 1) % b == c - 1 ? 1 : 0;
    vector[1 + n + num_elements(callback_parameters())] h = callback_slope_derivatives(theta, direction);
    for (i in 1:n) negative_hessian[i, c] = -h[1 + i];
  }
  for (c in 1:b) require_finite(col(negative_hessian, c));
  return negative_hessian;
}

/* The next a by Newton's method, where W theta + the gradient of ll is `right`; log det(I + K W). The solvers: a square
 * root of W is taken, one of K, none. */
tuple(vector, real) laplace_step(int b, matrix K, matrix K_root, matrix W, vector right, int solver,
                                 int allow_fallthrough) {
  int n = rows(K);
  vector[n] a;
  real log_determinant = not_a_number();
  if (solver == 1) {
    matrix[n, b] root = laplace_block_root(b, W);
    real square_root_of_negative_hessian = sum(root);
    if (!allow_fallthrough) require_pivot_at_least(square_root_of_negative_hessian, negative_infinity());
    if (square_root_of_negative_hessian < positive_infinity()) {
      matrix[n, n] L = cholesky_decompose(laplace_inner_matrix(b, K, root));
      vector[n] y = mdivide_left_tri_low(L, laplace_block_product_transposed(b, root, K * right));
      a = right - laplace_block_product(b, root, mdivide_right_tri_low(y', L)');
      log_determinant = 2 * sum(log(diagonal(L)));
    }
  } else if (solver == 2) {
    matrix[n, n] L = laplace_factor(add_diag(K_root' * laplace_block_times(b, W, K_root), 1));
    real smallest_pivot = min(diagonal(L));
    if (!allow_fallthrough) require_positive_pivot(smallest_pivot);
    if (smallest_pivot > 0) {
      vector[n] y = mdivide_left_tri_low(L, K_root' * right);
      a = right - laplace_block_product(b, W, K_root * mdivide_right_tri_low(y', L)');
      log_determinant = 2 * sum(log(diagonal(L)));
    }
  }
  if (is_nan(log_determinant)) {
    matrix[n, n] B = add_diag(laplace_block_times(b, W, K)', 1);
    a = right - laplace_block_product(b, W, B \ (K * right));
    log_determinant = log_determinant(B);
  }
  return (a, log_determinant);
}

/* I + S' K S for the square root S of W. */
matrix laplace_inner_matrix(int b, matrix K, matrix root) {
  int n = rows(K);
  matrix[n, n] result;
  if (b == 1) {
    for (j in 1:n) {
      for (i in 1:n) result[i, j] = root[i, 1] * K[i, j] * root[j, 1];
    }
  } else {
    matrix[n, n] whole = laplace_block_times(b, root, identity_matrix(n));
    result = whole' * K * whole;
  }
  for (j in 1:n) {
    result[j, j] += 1;
    for (i in (j + 1):n) result[j, i] = result[i, j];
  }
  return result;
}

/* R = W (I + K W)^-1, the covariance of the approximation, (I + K W)^-1 K. */
matrix laplace_precision(int b, matrix K, matrix W) {
  int n = rows(K);
  return laplace_symmetric(add_diag(laplace_block_times(b, W, K), 1) \ laplace_block_times(b, W, identity_matrix(n)));
}

matrix laplace_covariance(int b, matrix K, matrix W) {
  return laplace_symmetric(add_diag(laplace_block_times(b, W, K)', 1) \ K);
}

matrix laplace_symmetric(matrix x) { return 0.5 * (x + x'); }

/* Products with a matrix of blocks on its diagonal, which are given one below the other. */
vector laplace_block_product(int b, matrix blocks, vector x) {
  int n = num_elements(x);
  vector[n] result;
  for (i in 1:n) {
    int first = (i - 1) - (i - 1) % b;
    real total = 0;
    for (c in 1:b) total += blocks[i, c] * x[first + c];
    result[i] = total;
  }
  return result;
}

vector laplace_block_product_transposed(int b, matrix blocks, vector x) {
  int n = num_elements(x);
  vector[n] result;
  for (i in 1:n) {
    int place = (i - 1) % b;
    int first = (i - 1) - place;
    real total = 0;
    for (r in 1:b) total += blocks[first + r, place + 1] * x[first + r];
    result[i] = total;
  }
  return result;
}

matrix laplace_block_times(int b, matrix blocks, matrix x) {
  matrix[rows(x), cols(x)] result;
  for (j in 1:cols(x)) {
    for (i in 1:rows(x)) {
      int first = (i - 1) - (i - 1) % b;
      real total = 0;
      for (c in 1:b) total += blocks[i, c] * x[first + c, j];
      result[i, j] = total;
    }
  }
  return result;
}

/* The Cholesky factors of blocks; NaN in those of blocks that are not positive semidefinite. */
matrix laplace_block_root(int b, matrix blocks) {
  int n = rows(blocks);
  matrix[n, b] result;
  for (k in 1:(n / b)) {
    matrix[b, b] L = laplace_factor(block(blocks, (k - 1) * b + 1, 1, b, b));
    for (c in 1:b) {
      for (r in 1:b) result[(k - 1) * b + r, c] = L[r, c];
    }
  }
  return result;
}

/* The Cholesky factor of a positive semidefinite matrix, of its lower triangle; NaN if it is none. */
matrix laplace_factor(matrix x) {
  int n = rows(x);
  matrix[n, n] L = x;
  for (j in 1:n) {
    for (i in 1:(j - 1)) L[i, j] = 0;
    real pivot = L[j, j];
    real allowed = abs(x[j, j]);
    real root = pivot > 1e-14 * allowed ? sqrt(pivot) : pivot >= -1e-10 * allowed ? 0 : not_a_number();
    L[j, j] = root;
    for (i in (j + 1):n) L[i, j] = root > 0 ? L[i, j] / root : root;
    for (k in (j + 1):n) {
      for (i in k:n) L[i, k] -= L[i, j] * L[k, j];
    }
  }
  return L;
}

/* The result as a function of K and of the parameters p of ll. That of the mode is d theta = (I + K W)^-1 (dK a + K d
 * gradient(ll)); that of the determinant is the trace of -S dW, S the covariance of the approximation, by derivatives
 * of the curvature along the columns of a square root of S. What is multiplied is 0, with a derivative of 1. */
real laplace_attach(real density, int b, matrix covariance, matrix K, vector theta, vector a, vector slopes_at_mode,
                    matrix W) {
  int n = rows(K);
  int n_par = num_elements(slopes_at_mode);
  real result = density;
  if (is_differentiated(covariance) || n_par > 0) {
    matrix[n, n] S = laplace_covariance(b, K, W);
    matrix[n, b] blocks;
    for (i in 1:n) {
      int first = (i - 1) - (i - 1) % b;
      for (c in 1:b) blocks[i, c] = S[i, first + c];
    }
    matrix[n, b] root = laplace_block_root(b, blocks);
    vector[n_par] slopes = slopes_at_mode;
    vector[n] pull = rep_vector(0, n);
    for (c in 1:b) {
      vector[1 + n + n_par] f = callback_curvature_derivatives(theta, col(root, c));
      pull += 0.5 * segment(f, 2, n);
      slopes += 0.5 * tail(f, n_par);
    }
    if (n_par > 0) {
      vector[n_par] p = callback_parameters();
      vector[1 + n + n_par] f = callback_slope_derivatives(theta, S * pull);
      slopes += tail(f, n_par);
      for (i in 1:n_par) result += slopes[i] * (p[i] - value_of(p[i]));
    }
    if (is_differentiated(covariance)) {
      matrix[n, n] R = laplace_precision(b, K, W);
      vector[n] u = pull - R * (K * pull);
      for (j in 1:n) {
        for (i in 1:n) {
          real slope = 0.5 * (a[i] * a[j] - R[i, j] + u[i] * a[j] + a[i] * u[j]);
          result += slope * (covariance[i, j] - K[i, j]);
        }
      }
    }
  }
  return result;
}
