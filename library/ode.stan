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
    result = callback(t, z);
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

/* ---------------------------------------------------------------- stiff */

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
