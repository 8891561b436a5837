/* Ordinary differential equations y' = f(t, y, ...). Stan Functions Reference, "Ordinary differential equation (ODE)
 * solvers".
 *
 * The solvers call the user's function f as `callback`, with the arguments of the call that are for f only added. The
 * functions declared here without a body are the compiler's: see passes/to_loops/callbacks.py.
 *
 * Where a gradient is asked for, the state is followed by its derivatives with respect to what varies, the
 * sensitivities, column by column: to the elements of y0 if n_y0 is not 0, then to the n_par parameters of f. They
 * obey S' = (df/dy) S + df/dtheta. Solver and step size control see constants; `ode_attach` gives the result its
 * derivatives.
 *
 * Non-stiff: the steps are exactly those of Stan (Boost's controlled Dormand-Prince method), sensitivities included in
 * the control of the error. This is on purpose: with the loose tolerances that users choose the error of a solution
 * is far above 1e-6 (lotka_volterra of posteriordb: 2e-3 of the gradient), so only the same steps give the same
 * density. As in Stan, the value of a log density without gradient comes from a solution without sensitivities and may
 * differ within the tolerances. */

vector callback(real t, vector y);
matrix callback_jacobian(real t, vector y);
vector callback_parameters();
void solver_step();
void solver_failed_step();
vector callback_arguments();
int is_differentiated(real x);
int is_differentiated(vector x);
int is_differentiated(array[] real x);

array[] vector ode_rk45(vector y0, real t0, array[] real ts) {
  return ode_dormand_prince(y0, t0, ts, 1e-6, 1e-6, 1000000);
}

array[] vector ode_rk45_tol(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  return ode_dormand_prince(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
}

array[,] real integrate_ode_rk45(array[] real y0, real t0, array[] real ts) {
  return ode_arrays(ode_dormand_prince(to_vector(y0), t0, ts, 1e-6, 1e-6, 1000000));
}

array[,] real integrate_ode_rk45(array[] real y0, real t0, array[] real ts, real rel_tol, real abs_tol,
                                 real max_num_steps) {
  return ode_arrays(ode_dormand_prince(to_vector(y0), t0, ts, rel_tol, abs_tol, max_num_steps));
}

array[,] real integrate_ode(array[] real y0, real t0, array[] real ts) {
  return ode_arrays(ode_dormand_prince(to_vector(y0), t0, ts, 1e-6, 1e-6, 1000000));
}

array[] vector ode_ckrk(vector y0, real t0, array[] real ts) {
  return ode_cash_karp(y0, t0, ts, 1e-6, 1e-6, 1000000);
}

array[] vector ode_ckrk_tol(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  return ode_cash_karp(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
}

/* ode_adams, too, is for systems that are not stiff: a solution within the tolerances, by the same method as ode_rk45's,
 * or by that of ode_bdf where the system turns out to be stiff. */
array[] vector ode_adams(vector y0, real t0, array[] real ts) {
  return ode_switching(y0, t0, ts, 1e-10, 1e-10, 100000000);
}

array[] vector ode_adams_tol(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  return ode_switching(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
}

array[,] real integrate_ode_adams(array[] real y0, real t0, array[] real ts) {
  return ode_arrays(ode_switching(to_vector(y0), t0, ts, 1e-10, 1e-10, 100000000));
}

array[,] real integrate_ode_adams(array[] real y0, real t0, array[] real ts, real rel_tol, real abs_tol,
                                  real max_num_steps) {
  return ode_arrays(ode_switching(to_vector(y0), t0, ts, rel_tol, abs_tol, max_num_steps));
}

array[] vector ode_bdf(vector y0, real t0, array[] real ts) {
  return ode_radau(y0, t0, ts, 1e-10, 1e-10, 100000000);
}

array[] vector ode_bdf_tol(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  return ode_radau(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
}

array[,] real integrate_ode_bdf(array[] real y0, real t0, array[] real ts) {
  return ode_arrays(ode_radau(to_vector(y0), t0, ts, 1e-10, 1e-10, 100000000));
}

array[,] real integrate_ode_bdf(array[] real y0, real t0, array[] real ts, real rel_tol, real abs_tol,
                                real max_num_steps) {
  return ode_arrays(ode_radau(to_vector(y0), t0, ts, rel_tol, abs_tol, max_num_steps));
}

/* Its tolerances of the adjoint problem and its checkpoints have no use here: gradients come from sensitivities. */
array[] vector ode_adjoint_tol_ctl(vector y0, real t0, array[] real ts, real rel_tol, vector abs_tol,
                                   real rel_tol_backward, vector abs_tol_backward, real rel_tol_quadrature,
                                   real abs_tol_quadrature, real max_num_steps, int num_steps_between_checkpoints,
                                   int interpolation_polynomial, int solver_forward, int solver_backward) {
  require_same_size(num_elements(abs_tol), num_elements(y0));
  array[num_elements(ts)] vector[num_elements(y0)] result;
  if (solver_forward == 1) {
    result = ode_switching(y0, t0, ts, rel_tol, min(abs_tol), max_num_steps);
  } else {
    result = ode_radau(y0, t0, ts, rel_tol, min(abs_tol), max_num_steps);
  }
  return result;
}

array[,] real ode_arrays(array[] vector states) {
  array[size(states), num_elements(states[1])] real result;
  for (i in 1:size(states)) {
    for (j in 1:num_elements(states[1])) result[i, j] = states[i][j];
  }
  return result;
}

void ode_check(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  require_finite(y0);
  require_finite(t0);
  require_finite(ts);
  vector[num_elements(callback_arguments())] parameters_and_data = callback_arguments();
  require_finite(parameters_and_data);
  require_nonempty(num_elements(y0));
  require_nonempty(num_elements(ts));
  for (i in 2:num_elements(ts)) require_at_least(ts[i], ts[i - 1]);
  require_less(t0, ts[1]);
  require_positive_finite(rel_tol);
  require_positive_finite(abs_tol);
  require_positive(max_num_steps);
}

array[] vector ode_dormand_prince(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  ode_check(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
  int n_y0 = is_differentiated(y0) + is_differentiated(t0) > 0 ? num_elements(y0) : 0;
  int n_par = num_elements(callback_parameters());
  return ode_attach(ode_dormand_prince_states(y0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par, 0),
                    y0, t0, ts, n_y0, n_par);
}

array[] vector ode_switching(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  ode_check(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
  int n_y0 = is_differentiated(y0) + is_differentiated(t0) > 0 ? num_elements(y0) : 0;
  int n_par = num_elements(callback_parameters());
  matrix[num_elements(y0) * (1 + n_y0 + n_par), num_elements(ts)] states
    = ode_dormand_prince_states(y0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par, 1);
  if (is_nan(states[1, num_elements(ts)])) {
    states = ode_radau_states(y0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par);
  }
  return ode_attach(states, y0, t0, ts, n_y0, n_par);
}

/* The states at times ts, sensitivities below, as columns. E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary
 * Differential Equations I", II.5 (method), II.6 (dense output). With `leaves_stiff`, the last column begins with NaN if
 * the system is stiff: where steps are as long as stability allows, h |lambda| of about 3.3, 15 times without 6 others
 * in a row in between; the same, II, IV.2. */
matrix ode_dormand_prince_states(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps,
                                 int n_y0, int n_par, int leaves_stiff) {
  int n = num_elements(y0);
  int m = n * (1 + n_y0 + n_par);
  int n_ts = num_elements(ts);
  array[7] real c = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
  matrix[6, 7] a = [[0, 1.0 / 5, 3.0 / 40, 44.0 / 45, 19372.0 / 6561, 9017.0 / 3168, 35.0 / 384],
                    [0, 0, 9.0 / 40, -56.0 / 15, -25360.0 / 2187, -355.0 / 33, 0],
                    [0, 0, 0, 32.0 / 9, 64448.0 / 6561, 46732.0 / 5247, 500.0 / 1113],
                    [0, 0, 0, 0, -212.0 / 729, 49.0 / 176, 125.0 / 192],
                    [0, 0, 0, 0, 0, -5103.0 / 18656, -2187.0 / 6784],
                    [0, 0, 0, 0, 0, 0, 11.0 / 84]];
  matrix[m, n_ts] states;
  matrix[m, 7] k = rep_matrix(0, m, 7);
  vector[m] y = ode_initial_state(y0, n_y0, n_par);
  vector[m] z = y;
  real t = value_of(t0);
  real t_last = value_of(ts[n_ts]);
  real h = 0.1;
  int first = 1;
  int next = 1;
  int n_steps = 0;
  int n_rejected = 0;
  int n_stiff = 0;
  int n_others = 0;
  vector[leaves_stiff ? n : 0] z_before;
  while (next <= n_ts && n_stiff < 15) {
    if (n_rejected == 0 && t + h - t_last > machine_precision()) h = t_last - t;
    for (s in first:7) {
      for (i in 1:m) {
        real total = a[1, s] * k[i, 1];
        for (j in 2:6) total += a[j, s] * k[i, j];
        z[i] = y[i] + h * total;
      }
      k[, s] = ode_coupled(t + c[s] * h, z, n, n_y0, n_par);
      if (leaves_stiff && s == 6) {
        for (i in 1:n) z_before[i] = z[i];
      }
    }
    if (first == 1) ode_check_derivative(head(k[, 1], n));
    first = 2;
    real error = ode_dormand_prince_error(k, y, h, rel_tol, abs_tol, n);
    if (!(error <= 1)) {
      n_rejected += 1;
      solver_failed_step();
      require_no_more(n_rejected, 500);
      h *= fmax(0.9 * error ^ (-1.0 / 3), 0.2);
      real t_next = t + h;
      require_progress(t_next, t);
    } else {
      n_rejected = 0;
      n_steps += 1;
      solver_step();
      require_time_reached(n_steps, max_num_steps, value_of(ts[next]));
      real t_new = t + h;
      while (next <= n_ts && value_of(ts[next < n_ts ? next : n_ts]) - t_new <= machine_precision()) {
        states[, next] = ode_dormand_prince_between(k, y, h, (value_of(ts[next]) - t) / (t_new - t));
        next += 1;
        n_steps = 0;
      }
      if (leaves_stiff) {
        real rate = h * distance(head(k[, 7], n), head(k[, 6], n));
        int is_stiff = rate > 3.25 * distance(head(z, n), z_before) ? 1 : 0;
        n_others = is_stiff ? 0 : n_others + 1;
        n_stiff = is_stiff ? n_stiff + 1 : n_others < 6 ? n_stiff : 0;
      }
      t = t_new;
      for (i in 1:m) y[i] = z[i];
      for (i in 1:m) k[i, 1] = k[i, 7];
      if (error < 0.5) h *= 0.9 * fmax(0.00032, error) ^ (-0.2);
    }
  }
  if (next <= n_ts) states[1, n_ts] = not_a_number();
  return states;
}

/* The largest of the errors of the state and its sensitivities, in multiples of what is allowed; NaN if one of the state
 * is. */
real ode_dormand_prince_error(matrix k, vector y, real h, real rel_tol, real abs_tol, int n) {
  real error = 0;
  for (i in 1:num_elements(y)) {
    real difference = 71.0 / 57600 * k[i, 1] - 71.0 / 16695 * k[i, 3] + 71.0 / 1920 * k[i, 4]
                      - 17253.0 / 339200 * k[i, 5] + 22.0 / 525 * k[i, 6] - 1.0 / 40 * k[i, 7];
    real ratio = abs(h * difference) / (abs_tol + rel_tol * (abs(y[i]) + abs(h * k[i, 1])));
    error = ratio > error || (i <= n && is_nan(ratio)) ? ratio : error;
  }
  return error;
}

/* The state at the part `x` of a step. */
vector ode_dormand_prince_between(matrix k, vector y, real h, real x) {
  int m = num_elements(y);
  vector[m] result;
  real p = h * square(x) * (3 - 2 * x);
  real q = h * square(x * (x - 1));
  real w1 = 35.0 / 384 * p + h * x * square(x - 1)
            - q * (2558722523.0 - 31403016.0 * x) * (5 / 11282082432.0);
  real w3 = 500.0 / 1113 * p + q * (882725551 - 15701508.0 * x) * (100 / 32700410799.0);
  real w4 = 125.0 / 192 * p - q * (443332067 - 31403016.0 * x) * (25 / 1880347072.0);
  real w5 = -2187.0 / 6784 * p + q * (23143187 - 3489224.0 * x) * (32805 / 199316789632.0);
  real w6 = 11.0 / 84 * p - q * (29972135 - 7076736.0 * x) * (55 / 822651844.0);
  real w7 = h * square(x) * (x - 1) + q * (7414447 - 829305.0 * x) * (10 / 29380423.0);
  for (i in 1:m) {
    result[i] = y[i] + w1 * k[i, 1] + w3 * k[i, 3] + w4 * k[i, 4] + w5 * k[i, 5] + w6 * k[i, 6] + w7 * k[i, 7];
  }
  return result;
}

/* Where a derivative is NaN or infinite from the beginning, no step helps. */
void ode_check_derivative(vector derivative) {
  require_finite(derivative);
}

array[] vector ode_cash_karp(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps) {
  ode_check(y0, t0, ts, rel_tol, abs_tol, max_num_steps);
  int n_y0 = is_differentiated(y0) + is_differentiated(t0) > 0 ? num_elements(y0) : 0;
  int n_par = num_elements(callback_parameters());
  return ode_attach(ode_cash_karp_states(y0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par),
                    y0, t0, ts, n_y0, n_par);
}

/* As ode_dormand_prince_states, by the method of Cash and Karp, with steps that end at the times asked for: these are
 * Stan's, too. J. R. Cash, A. H. Karp (1990), ACM Transactions on Mathematical Software 16, 201-222. */
matrix ode_cash_karp_states(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps,
                            int n_y0, int n_par) {
  int n = num_elements(y0);
  int m = n * (1 + n_y0 + n_par);
  int n_ts = num_elements(ts);
  array[6] real c = {0, 1.0 / 5, 3.0 / 10, 3.0 / 5, 1, 7.0 / 8};
  matrix[5, 6] a = [[0, 1.0 / 5, 3.0 / 40, 3.0 / 10, -11.0 / 54, 1631.0 / 55296],
                    [0, 0, 9.0 / 40, -9.0 / 10, 5.0 / 2, 175.0 / 512],
                    [0, 0, 0, 6.0 / 5, -70.0 / 27, 575.0 / 13824],
                    [0, 0, 0, 0, 35.0 / 27, 44275.0 / 110592],
                    [0, 0, 0, 0, 0, 253.0 / 4096]];
  matrix[m, n_ts] states;
  matrix[m, 6] k = rep_matrix(0, m, 6);
  vector[m] y = ode_initial_state(y0, n_y0, n_par);
  vector[m] z = y;
  real t = value_of(t0);
  real h = 0.1;
  int n_rejected = 0;
  int is_first = 1;
  for (next in 1:n_ts) {
    real t_end = value_of(ts[next]);
    int n_steps = 0;
    while (t_end - t > machine_precision()) {
      real step = fmin(h, t_end - t);
      for (s in 1:6) {
        for (i in 1:m) {
          real total = a[1, s] * k[i, 1];
          for (j in 2:5) total += a[j, s] * k[i, j];
          z[i] = y[i] + step * total;
        }
        k[, s] = ode_coupled(t + c[s] * step, z, n, n_y0, n_par);
        if (is_first) ode_check_derivative(head(k[, 1], n));
        is_first = 0;
      }
      real error = ode_cash_karp_error(k, y, step, rel_tol, abs_tol, n);
      if (!(error <= 1)) {
        n_rejected += 1;
        solver_failed_step();
        require_no_more(n_rejected, 500);
        h = step * fmax(0.9 * error ^ (-1.0 / 3), 0.2);
        real t_next = t + h;
        require_progress(t_next, t);
      } else {
        n_rejected = 0;
        n_steps += 1;
        solver_step();
        require_time_reached(n_steps, max_num_steps, t_end);
        t += step;
        for (i in 1:m) {
          y[i] += step * (37.0 / 378 * k[i, 1] + 250.0 / 621 * k[i, 3] + 125.0 / 594 * k[i, 4]
                          + 512.0 / 1771 * k[i, 6]);
        }
        h = fmax(h, error < 0.5 ? step * 0.9 * fmax(0.00032, error) ^ (-0.2) : step);
      }
    }
    states[, next] = y;
  }
  return states;
}

/* As ode_dormand_prince_error. */
real ode_cash_karp_error(matrix k, vector y, real step, real rel_tol, real abs_tol, int n) {
  real error = 0;
  for (i in 1:num_elements(y)) {
    real difference = (37.0 / 378 - 2825.0 / 27648) * k[i, 1] + (250.0 / 621 - 18575.0 / 48384) * k[i, 3]
                      + (125.0 / 594 - 13525.0 / 55296) * k[i, 4] - 277.0 / 14336 * k[i, 5]
                      + (512.0 / 1771 - 1.0 / 4) * k[i, 6];
    real ratio = abs(step * difference) / (abs_tol + rel_tol * (abs(y[i]) + abs(step * k[i, 1])));
    error = ratio > error || (i <= n && is_nan(ratio)) ? ratio : error;
  }
  return error;
}

vector ode_initial_state(vector y0, int n_y0, int n_par) {
  int n = num_elements(y0);
  vector[n * (1 + n_y0 + n_par)] y = rep_vector(0, n * (1 + n_y0 + n_par));
  for (i in 1:n) y[i] = value_of(y0[i]);
  for (i in 1:n_y0) y[n * i + i] = 1;
  return y;
}

/* The derivative in time of a state and its sensitivities. */
vector ode_coupled(real t, vector z, int n, int n_y0, int n_par) {
  vector[n * (1 + n_y0 + n_par)] result;
  if (n_y0 + n_par == 0) {
    vector[n] f = callback(t, z);
    for (i in 1:n) result[i] = value_of(f[i]);
  } else {
    matrix[n, 1 + n + n_par] f = callback_jacobian(t, head(z, n));
    for (i in 1:n) result[i] = f[i, 1];
    for (j in 1:(n_y0 + n_par)) {
      for (i in 1:n) {
        real total = j > n_y0 ? f[i, 1 + n + j - n_y0] : 0;
        for (l in 1:n) total += f[i, 1 + l] * z[n * j + l];
        result[n * j + i] = total;
      }
    }
  }
  return result;
}

/* States as functions of y0, the parameters of f, t0 and ts: the values as given, the derivatives those of the
 * sensitivities. What is multiplied by a sensitivity is 0, with a derivative of 1. */
array[] vector ode_attach(matrix states, vector y0, real t0, array[] real ts, int n_y0, int n_par) {
  int n = num_elements(y0);
  array[num_elements(ts)] vector[n] result;
  vector[n_y0 + n_par] shift;
  if (n_par > 0) {
    vector[n_par] p = callback_parameters();
    for (j in 1:n_par) shift[n_y0 + j] = p[j] - value_of(p[j]);
  }
  for (j in 1:n_y0) shift[j] = y0[j] - value_of(y0[j]);
  if (is_differentiated(t0)) {
    vector[n] start = rep_vector(0, n);
    for (i in 1:n) start[i] = value_of(y0[i]);
    vector[n] slope = callback(value_of(t0), start);
    for (j in 1:n) shift[j] -= slope[j] * (t0 - value_of(t0));
  }
  for (k in 1:num_elements(ts)) {
    for (i in 1:n) {
      real total = states[i, k];
      for (j in 1:(n_y0 + n_par)) total += states[n * j + i, k] * shift[j];
      result[k][i] = total;
    }
    if (is_differentiated(ts)) {
      vector[n] slope = callback(value_of(ts[k]), head(states[, k], n));
      for (i in 1:n) result[k][i] += slope[i] * (ts[k] - value_of(ts[k]));
    }
  }
  return result;
}
