/* Differential-algebraic equations F(t, y, y', ...) = 0 of index 1. Stan Functions Reference, "Differential-Algebraic
 * equation (DAE) solver".
 *
 * The solver calls the user's function F as `callback_jacobian`, see ode.stan, whose columns are here F, dF/dy, dF/dy'
 * and dF/dtheta. Its method is that of ode_radau_states: Radau IIA of order 5, whose last stage is the next state, so
 * that this obeys the algebraic equations. Of the initial values those of y count; y' says how fast to begin. Hence the
 * derivatives of the solution with respect to it are 0. E. Hairer, G. Wanner, "Solving Ordinary Differential Equations
 * II", IV.8, VI.1.
 *
 * Sensitivities stand beside the state as in ode.stan: columns for the elements of y0 if n_y0 is not 0, then for the
 * n_par parameters of F. `dae_attach` gives the result its derivatives. */

matrix callback_jacobian(real t, vector y, vector yp);
vector callback_parameters();
void solver_step();
void solver_failed_step();
vector callback_arguments();
int is_differentiated(vector x);

array[] vector dae(vector y0, vector yp0, real t0, array[] real ts) {
  return dae_radau(y0, yp0, t0, ts, 1e-10, 1e-10, 100000000);
}

array[] vector dae_tol(vector y0, vector yp0, real t0, array[] real ts, real rel_tol, real abs_tol,
                       real max_num_steps) {
  return dae_radau(y0, yp0, t0, ts, rel_tol, abs_tol, max_num_steps);
}

array[] vector dae_radau(vector y0, vector yp0, real t0, array[] real ts, real rel_tol, real abs_tol,
                         real max_num_steps) {
  require_finite(yp0);
  require_same_size(num_elements(yp0), num_elements(y0));
  ode_check(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
  int n_y0 = is_differentiated(y0) ? num_elements(y0) : 0;
  int n_par = num_elements(callback_parameters());
  return dae_attach(dae_radau_states(y0, yp0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par), y0, ts, n_y0,
                    n_par);
}

/* The states at times ts, sensitivities below, as columns. The stages z[, 1:3], relative to y, solve
 * F(t + c_i h, y + z_i, sum_j w_ij z_j / h) = 0, where w is the inverse of the method's matrix. */
matrix dae_radau_states(vector y0, vector yp0, real t0, array[] real ts, real rel_tol, real abs_tol,
                        real max_num_steps, int n_y0, int n_par) {
  int n = num_elements(y0);
  int n_sens = n_y0 + n_par;
  int n_ts = num_elements(ts);
  real root = sqrt(6);
  vector[3] c = [0.4 - root / 10, 0.4 + root / 10, 1]';
  matrix[3, 3] w = ode_solve([[(88 - 7 * root) / 360, (296 - 169 * root) / 1800, (-2 + 3 * root) / 225],
                              [(296 + 169 * root) / 1800, (88 + 7 * root) / 360, (-2 - 3 * root) / 225],
                              [(16 - root) / 36, (16 + root) / 36, 1.0 / 9]], identity_matrix(3));
  vector[3] e = [-(13 + 7 * root) / 3, (-13 + 7 * root) / 3, -1.0 / 3]';
  real gamma = 30 / (6 + 9 ^ (2.0 / 3) - 3 ^ (2.0 / 3));
  real rel = 0.1 * rel_tol ^ (2.0 / 3);
  real abs_error = rel * abs_tol / rel_tol;
  matrix[n * (1 + n_sens), n_ts] states;
  matrix[n, 1 + n_sens] y = to_matrix(ode_initial_state(y0, n_y0, n_par), n, 1 + n_sens);
  matrix[n, 1 + n_sens] yp = rep_matrix(0, n, 1 + n_sens);
  for (i in 1:n) yp[i, 1] = value_of(yp0[i]);
  matrix[n, 1 + 2 * n + n_par] f = rep_matrix(0, n, 1 + 2 * n + n_par);
  array[3] matrix[n, 1 + 2 * n + n_par] g;
  matrix[n, 3] z = rep_matrix(0, n, 3);
  matrix[n, 3] z_last = z;
  vector[n] scale;
  matrix[3 * n, 3 * n] newton;
  matrix[3 * n, 1] residual;
  matrix[3 * n, n_sens] z_sens;
  matrix[n, 1 + n_sens] change_of_yp;
  matrix[n, 1 + n_sens] error_vector;
  vector[1 + n_sens] sizes = ode_sizes(y0, n_y0, n_par);
  real t = value_of(t0);
  real h = -1;
  real h_last = 0;
  int is_new = 1;
  int is_first = 1;
  int next = 1;
  int n_steps = 0;
  int n_rejected = 0;
  while (next <= n_ts) {
    real t_end = value_of(ts[next]);
    if (is_new == 1) {
      f = callback_jacobian(t, y[, 1], yp[, 1]);
      vector[n] residual_there = col(f, 1);
      require_finite(residual_there);
      for (i in 1:n) scale[i] = abs_error + rel * abs(y[i, 1]);
      is_new = 0;
    }
    if (h < 0) {
      real size_y = sqrt(mean(square(y[, 1] ./ scale)));
      real size_yp = sqrt(mean(square(yp[, 1] ./ scale)));
      h = size_y > 1e-5 && size_yp > 1e-5 ? fmin(0.01 * size_y / size_yp, t_end - t) : 0.001 * (t_end - t);
    }
    int is_last = t + 1.000001 * h >= t_end ? 1 : 0;
    real step = is_last == 1 ? t_end - t : h;
    real t_next = t + step;
    require_progress(t_next, t);
    for (j in 1:3) {
      real x = h_last > 0 ? 1 + c[j] * step / h_last : 0;
      real p1 = x * (x - c[2]) * (x - 1) / (c[1] * (c[1] - c[2]) * (c[1] - 1));
      real p2 = x * (x - c[1]) * (x - 1) / (c[2] * (c[2] - c[1]) * (c[2] - 1));
      real p3 = x * (x - c[1]) * (x - c[2]) / ((1 - c[1]) * (1 - c[2]));
      for (i in 1:n) {
        z[i, j] = h_last > 0 ? p1 * z_last[i, 1] + p2 * z_last[i, 2] + (p3 - 1) * z_last[i, 3] : c[j] * step * yp[i, 1];
      }
    }
    real change = positive_infinity();
    int n_iterations = 0;
    int diverges = 0;
    while (change > 0.01 && diverges == 0) {
      for (j in 1:3) {
        vector[n] slope;
        for (k in 1:n) slope[k] = (w[j, 1] * z[k, 1] + w[j, 2] * z[k, 2] + w[j, 3] * z[k, 3]) / step;
        matrix[n, 1 + 2 * n + n_par] g_j = callback_jacobian(t + c[j] * step, y[, 1] + z[, j], slope);
        g[j] = g_j;
        for (k in 1:n) residual[(j - 1) * n + k, 1] = -g_j[k, 1];
        for (i in 1:3) {
          for (l in 1:n) {
            for (k in 1:n) {
              newton[(j - 1) * n + k, (i - 1) * n + l] = (i == j ? g_j[k, 1 + l] : 0)
                                                         + w[j, i] / step * g_j[k, 1 + n + l];
            }
          }
        }
      }
      residual = ode_solve(newton, residual);
      real total = 0;
      for (j in 1:3) {
        for (i in 1:n) {
          z[i, j] += residual[(j - 1) * n + i, 1];
          total += square(residual[(j - 1) * n + i, 1] / scale[i]);
        }
      }
      total = sqrt(total / (3 * n));
      n_iterations += 1;
      diverges = n_iterations > 10 || is_nan(total) || (n_iterations > 2 && total > 2 * change) ? 1 : 0;
      change = total;
    }
    real error = 10000;
    if (diverges == 0) {
      if (n_sens > 0) {
        for (j in 1:3) {
          for (r in 1:n_sens) {
            for (k in 1:n) {
              real total = r > n_y0 ? g[j][k, 1 + 2 * n + r - n_y0] : 0;
              for (l in 1:n) total += g[j][k, 1 + l] * y[l, 1 + r];
              z_sens[(j - 1) * n + k, r] = -total;
            }
          }
        }
        z_sens = ode_solve(newton, z_sens);
      }
      for (k in 1:n) {
        change_of_yp[k, 1] = yp[k, 1] + (e[1] * z[k, 1] + e[2] * z[k, 2] + e[3] * z[k, 3]) / step;
        for (r in 1:n_sens) {
          // The slopes of sensitivities at the beginning are not known.
          change_of_yp[k, 1 + r] = is_first == 1 ? 0
            : yp[k, 1 + r] + (e[1] * z_sens[k, r] + e[2] * z_sens[n + k, r] + e[3] * z_sens[2 * n + k, r]) / step;
        }
      }
      matrix[n, n] filter;
      for (l in 1:n) {
        for (k in 1:n) filter[k, l] = f[k, 1 + l] + gamma / step * f[k, 1 + n + l];
      }
      matrix[n, n] mass = block(f, 1, 2 + n, n, n);
      error_vector = ode_solve(filter, mass * change_of_yp);
      error = ode_radau_error(error_vector, y, sizes, rel, abs_error);
      if (!(error < 1) && (h_last == 0 || n_rejected > 0)) {
        error_vector = ode_solve(filter, gamma / step * mass * error_vector);
        error = ode_radau_error(error_vector, y, sizes, rel, abs_error);
      }
    }
    if (!(error < 1)) {
      n_rejected += 1;
      solver_failed_step();
      require_no_more(n_rejected, 500);
      h = step * (error < 10000 ? fmax(0.2, 0.9 * error ^ (-0.25)) : 0.25);
      h_last = 0;
    } else {
      n_steps += 1;
      solver_step();
      require_time_reached(n_steps, max_num_steps, t_end);
      real h_next = step * fmin(n_rejected > 0 ? 1 : 8, 0.9 * fmax(1e-4, error) ^ (-0.25));
      h = is_last == 1 && n_rejected == 0 ? fmax(h, h_next) : h_next;
      h_last = step;
      n_rejected = 0;
      is_first = 0;
      for (i in 1:n) {
        y[i, 1] += z[i, 3];
        yp[i, 1] = (w[3, 1] * z[i, 1] + w[3, 2] * z[i, 2] + w[3, 3] * z[i, 3]) / step;
        for (r in 1:n_sens) {
          y[i, 1 + r] += z_sens[2 * n + i, r];
          yp[i, 1 + r] = (w[3, 1] * z_sens[i, r] + w[3, 2] * z_sens[n + i, r] + w[3, 3] * z_sens[2 * n + i, r]) / step;
        }
      }
      z_last = z;
      is_new = 1;
      if (is_last == 1) {
        t = t_end;
        n_steps = 0;
        while (next <= n_ts && value_of(ts[next < n_ts ? next : n_ts]) <= t) {
          for (r in 0:n_sens) {
            for (i in 1:n) states[n * r + i, next] = y[i, 1 + r];
          }
          next += 1;
        }
      } else {
        t += step;
      }
    }
  }
  return states;
}

/* States as functions of y0 and the parameters of F. What is multiplied by a sensitivity is 0, with a derivative of
 * 1. */
array[] vector dae_attach(matrix states, vector y0, array[] real ts, int n_y0, int n_par) {
  int n = num_elements(y0);
  array[num_elements(ts)] vector[n] result;
  vector[n_y0 + n_par] shift;
  if (n_par > 0) {
    vector[n_par] p = callback_parameters();
    for (j in 1:n_par) shift[n_y0 + j] = p[j] - value_of(p[j]);
  }
  for (j in 1:n_y0) shift[j] = y0[j] - value_of(y0[j]);
  for (k in 1:num_elements(ts)) {
    for (i in 1:n) {
      real total = states[i, k];
      for (j in 1:(n_y0 + n_par)) total += states[n * j + i, k] * shift[j];
      result[k][i] = total;
    }
  }
  return result;
}
