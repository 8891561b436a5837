/* Solvers of stiff systems: for ode_bdf and ode_adjoint_tol_ctl, and for ode_adams where a system turns out to be stiff.
 * What they call, what states and sensitivities are: see the head of ode.stan. */

array[] vector ode_radau(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  ode_check(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
  int n_y0 = is_differentiated(y0) + is_differentiated(t0) > 0 ? num_elements(y0) : 0;
  int n_par = num_elements(callback_parameters());
  return ode_attach(ode_radau_states(y0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par),
                    y0, t0, ts, n_y0, n_par);
}

/* As ode_dormand_prince_states, for stiff systems: Radau IIA of order 5, with steps that end at the times asked for.
 * E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", IV.8.
 *
 * The stages z[, 1:3], relative to y, solve z_i = h sum_j a_ij f(t + c_j h, y + z_j); y + z_3 is the next state.
 * Newton's method takes the Jacobian at each stage, so that its last matrix also gives the derivatives of the stages:
 * the sensitivities are those of the numerical solution. The estimate of the error is of lower order than the
 * method, hence the exponent of the tolerances. What lasts is assigned column by column, so that no step keeps memory. */
matrix ode_radau_states(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps,
                        int n_y0, int n_par) {
  int n = num_elements(y0);
  int n_sens = n_y0 + n_par;
  int n_ts = num_elements(ts);
  real root = sqrt(6);
  vector[3] c = [0.4 - root / 10, 0.4 + root / 10, 1]';
  matrix[3, 3] a = [[(88 - 7 * root) / 360, (296 - 169 * root) / 1800, (-2 + 3 * root) / 225],
                    [(296 + 169 * root) / 1800, (88 + 7 * root) / 360, (-2 - 3 * root) / 225],
                    [(16 - root) / 36, (16 + root) / 36, 1.0 / 9]];
  real gamma = 30 / (6 + 9 ^ (2.0 / 3) - 3 ^ (2.0 / 3));
  real rel = 0.1 * rel_tol ^ (2.0 / 3);
  real abs_error = rel * abs_tol / rel_tol;
  matrix[n * (1 + n_sens), n_ts] states;
  matrix[n, 1 + n_sens] y = to_matrix(ode_initial_state(y0, n_y0, n_par), n, 1 + n_sens);
  matrix[n, 1 + n + n_par] f = rep_matrix(0, n, 1 + n + n_par);
  array[3] matrix[n, 1 + n + n_par] g;
  matrix[n, 3] z = rep_matrix(0, n, 3);
  matrix[n, 3] z_last = z;
  vector[n] scale;
  matrix[3 * n, 3 * n] newton;
  matrix[3 * n, n_sens] z_sens;
  vector[1 + n_sens] sizes = ode_sizes(y0, n_y0, n_par);
  real t = value_of(t0);
  real h = -1;
  real h_last = 0;
  int is_new = 1;
  int next = 1;
  int n_steps = 0;
  int n_rejected = 0;
  while (next <= n_ts) {
    real t_end = value_of(ts[next]);
    if (is_new == 1) {
      matrix[n, 1 + n + n_par] new_f = callback_jacobian(t, y[, 1]);
      for (j in 1:(1 + n + n_par)) f[, j] = new_f[, j];
      ode_check_derivative(col(f, 1));
      for (i in 1:n) scale[i] = abs_error + rel * abs(y[i, 1]);
      is_new = 0;
    }
    if (h < 0) {
      real size_y = sqrt(mean(square(y[, 1] ./ scale)));
      real size_f = sqrt(mean(square(f[, 1] ./ scale)));
      h = size_y > 1e-5 && size_f > 1e-5 ? fmin(0.01 * size_y / size_f, t_end - t) : 0.001 * (t_end - t);
    }
    int is_last = t + 1.000001 * h >= t_end ? 1 : 0;
    real step = is_last == 1 ? t_end - t : h;
    real t_next = t + step;
    require_progress(t_next, t);
    matrix[n, 3] guess = ode_radau_extrapolated(z_last, c, step, h_last);
    for (j in 1:3) z[, j] = guess[, j];
    real change = positive_infinity();
    int n_iterations = 0;
    int diverges = 0;
    while (change > 0.01 && diverges == 0) {
      for (j in 1:3) {
        matrix[n, 1 + n + n_par] g_j = callback_jacobian(t + c[j] * step, y[, 1] + z[, j]);
        for (l in 1:(1 + n + n_par)) g[j][, l] = g_j[, l];
      }
      matrix[3 * n, 3 * n] new_newton = ode_radau_newton(g, a, step);
      for (j in 1:(3 * n)) newton[, j] = new_newton[, j];
      matrix[3 * n, 1] step_of_z = ode_solve(newton, ode_radau_residual(g, z, a, step));
      for (j in 1:3) {
        for (i in 1:n) z[i, j] += step_of_z[(j - 1) * n + i, 1];
      }
      real total = ode_radau_size(step_of_z, scale);
      n_iterations += 1;
      diverges = n_iterations > 10 || is_nan(total) || (n_iterations > 2 && total > 2 * change) ? 1 : 0;
      change = total;
    }
    real error = 10000;
    if (diverges == 0) {
      if (n_sens > 0) {
        matrix[3 * n, n_sens] new_sens = ode_solve(newton, ode_radau_sensitivities(g, y, a, step, n_y0));
        for (r in 1:n_sens) z_sens[, r] = new_sens[, r];
      }
      matrix[n, n] filter;
      for (l in 1:n) {
        for (k in 1:n) filter[k, l] = (k == l ? gamma / step : 0) - f[k, 1 + l];
      }
      matrix[n, 1 + n_sens] error_vector = ode_solve(filter, ode_radau_defect(f, y, z, z_sens, step, n_y0));
      error = ode_radau_error(error_vector, y, sizes, rel, abs_error);
      if (!(error < 1) && (h_last == 0 || n_rejected > 0)) {
        error = ode_radau_error(ode_solve(filter, gamma / step * error_vector), y, sizes, rel, abs_error);
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
      for (i in 1:n) {
        y[i, 1] += z[i, 3];
        for (r in 1:n_sens) y[i, 1 + r] += z_sens[2 * n + i, r];
      }
      for (j in 1:3) z_last[, j] = z[, j];
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

/* Stages for a step that the last one's polynomial gives; 0 if there is none. */
matrix ode_radau_extrapolated(matrix z_last, vector c, real step, real h_last) {
  int n = rows(z_last);
  matrix[n, 3] z;
  for (j in 1:3) {
    real x = h_last > 0 ? 1 + c[j] * step / h_last : 0;
    real p1 = x * (x - c[2]) * (x - 1) / (c[1] * (c[1] - c[2]) * (c[1] - 1));
    real p2 = x * (x - c[1]) * (x - 1) / (c[2] * (c[2] - c[1]) * (c[2] - 1));
    real p3 = x * (x - c[1]) * (x - c[2]) / ((1 - c[1]) * (1 - c[2]));
    for (i in 1:n) z[i, j] = p1 * z_last[i, 1] + p2 * z_last[i, 2] + (h_last > 0 ? p3 - 1 : 0) * z_last[i, 3];
  }
  return z;
}

/* The matrix of Newton's method for the three stages; `g`: f and its Jacobian at each. */
matrix ode_radau_newton(array[] matrix g, matrix a, real step) {
  int n = rows(g[1]);
  matrix[3 * n, 3 * n] newton;
  for (i in 1:3) {
    for (j in 1:3) {
      for (l in 1:n) {
        for (k in 1:n) {
          newton[(i - 1) * n + k, (j - 1) * n + l] = (i == j && k == l ? 1 : 0) - step * a[i, j] * g[j][k, 1 + l];
        }
      }
    }
  }
  return newton;
}

matrix ode_radau_residual(array[] matrix g, matrix z, matrix a, real step) {
  int n = rows(z);
  matrix[3 * n, 1] residual;
  for (i in 1:3) {
    for (k in 1:n) {
      residual[(i - 1) * n + k, 1] = step * (a[i, 1] * g[1][k, 1] + a[i, 2] * g[2][k, 1] + a[i, 3] * g[3][k, 1])
                                     - z[k, i];
    }
  }
  return residual;
}

/* The root of the mean square of a change of the stages, in multiples of what is allowed. */
real ode_radau_size(matrix change, vector scale) {
  int n = num_elements(scale);
  real total = 0;
  for (j in 1:3) {
    for (i in 1:n) total += square(change[(j - 1) * n + i, 1] / scale[i]);
  }
  return sqrt(total / (3 * n));
}

/* The right side of the equations of the stages' sensitivities. */
matrix ode_radau_sensitivities(array[] matrix g, matrix y, matrix a, real step, int n_y0) {
  int n = rows(y);
  int n_sens = cols(y) - 1;
  matrix[3 * n, n_sens] slopes;
  matrix[3 * n, n_sens] z_sens;
  for (j in 1:3) {
    for (r in 1:n_sens) {
      for (k in 1:n) {
        real total = r > n_y0 ? g[j][k, 1 + n + r - n_y0] : 0;
        for (l in 1:n) total += g[j][k, 1 + l] * y[l, 1 + r];
        slopes[(j - 1) * n + k, r] = total;
      }
    }
  }
  for (i in 1:3) {
    for (r in 1:n_sens) {
      for (k in 1:n) {
        z_sens[(i - 1) * n + k, r] = step * (a[i, 1] * slopes[k, r] + a[i, 2] * slopes[n + k, r]
                                             + a[i, 3] * slopes[2 * n + k, r]);
      }
    }
  }
  return z_sens;
}

/* What the filter of the estimate of the error is applied to: of the state, then of each sensitivity. */
matrix ode_radau_defect(matrix f, matrix y, matrix z, matrix z_sens, real step, int n_y0) {
  int n = rows(y);
  real root = sqrt(6);
  vector[3] e = [-(13 + 7 * root) / 3, (-13 + 7 * root) / 3, -1.0 / 3]';
  matrix[n, cols(y)] defect;
  for (r in 0:(cols(y) - 1)) {
    for (k in 1:n) {
      if (r == 0) {
        defect[k, 1] = f[k, 1] + (e[1] * z[k, 1] + e[2] * z[k, 2] + e[3] * z[k, 3]) / step;
      } else {
        real total = r > n_y0 ? f[k, 1 + n + r - n_y0] : 0;
        for (l in 1:n) total += f[k, 1 + l] * y[l, 1 + r];
        defect[k, 1 + r] = total + (e[1] * z_sens[k, r] + e[2] * z_sens[n + k, r]
                                    + e[3] * z_sens[2 * n + k, r]) / step;
      }
    }
  }
  return defect;
}

/* a \ b. */
matrix ode_solve(matrix a, matrix b) {
  matrix[rows(a), cols(b)] x;
  if (rows(a) > 24) {
    x = a \ b;
  } else {
    x = ode_eliminate(a, b);
  }
  return x;
}

/* The same by Gauss elimination with row exchanges: of small systems the kernel's calls would take most of the time. */
matrix ode_eliminate(matrix a, matrix b) {
  int n = rows(a);
  int m = cols(b);
  matrix[n, m] x = b;
  matrix[n, n] lu = a;
  for (k in 1:n) {
    int pivot = k;
    for (i in (k + 1):n) pivot = abs(lu[i, k]) > abs(lu[pivot, k]) ? i : pivot;
    if (pivot != k) {
      for (j in k:n) {
        real other = lu[pivot, j];
        lu[pivot, j] = lu[k, j];
        lu[k, j] = other;
      }
      for (j in 1:m) {
        real other = x[pivot, j];
        x[pivot, j] = x[k, j];
        x[k, j] = other;
      }
    }
    real reciprocal = 1 / lu[k, k];
    for (i in (k + 1):n) lu[i, k] *= reciprocal;
    for (j in (k + 1):n) {
      for (i in (k + 1):n) lu[i, j] -= lu[i, k] * lu[k, j];
    }
    for (j in 1:m) {
      for (i in (k + 1):n) x[i, j] -= lu[i, k] * x[k, j];
    }
  }
  for (j in 1:m) {
    for (back in 1:n) {
      int k = n + 1 - back;
      x[k, j] /= lu[k, k];
      for (i in 1:(k - 1)) x[i, j] -= lu[i, k] * x[k, j];
    }
  }
  return x;
}

/* What sensitivities are of, as far as it is above 1: a change of it by its size is to have the absolute tolerance. */
vector ode_sizes(vector y0, int n_y0, int n_par) {
  vector[1 + n_y0 + n_par] sizes = rep_vector(1, 1 + n_y0 + n_par);
  for (j in 1:n_y0) sizes[1 + j] = fmax(1, abs(value_of(y0[j])));
  if (n_par > 0) {
    vector[n_par] p = callback_parameters();
    for (j in 1:n_par) sizes[1 + n_y0 + j] = fmax(1, abs(value_of(p[j])));
  }
  return sizes;
}

/* The largest of the errors of the state and of each sensitivity, in multiples of what is allowed; NaN if that of the
 * state is. */
real ode_radau_error(matrix x, matrix y, vector sizes, real rel_tol, real abs_tol) {
  real result = 0;
  for (j in 1:cols(x)) {
    real total = 0;
    for (i in 1:rows(x)) total += square(x[i, j] / (abs_tol / sizes[j] + rel_tol * abs(y[i, j])));
    total = sqrt(total / rows(x));
    result = total > result || (j == 1 && is_nan(total)) ? total : result;
  }
  return result;
}
