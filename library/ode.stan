/* Ordinary differential equations y' = f(t, y, ...). Stan Functions Reference, "Ordinary differential equation (ODE)
 * solvers".
 *
 * The solvers call the user's function f as `callback`, with the arguments of the call that are for f only added. The
 * functions declared here without a body are the compiler's: see passes/lower/callbacks.py.
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
  return ode_attach(ode_dormand_prince_states(y0, t0, ts, rel_tol, abs_tol, max_num_steps, n_y0, n_par),
                    y0, t0, ts, n_y0, n_par);
}

/* The states at times ts, sensitivities below, as columns. E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary
 * Differential Equations I", II.5 (method), II.6 (dense output). */
matrix ode_dormand_prince_states(vector y0, real t0, array[] real ts, real rel_tol, real abs_tol, real max_num_steps,
                                 int n_y0, int n_par) {
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
  while (next <= n_ts) {
    if (n_rejected == 0 && t + h - t_last > machine_precision()) h = t_last - t;
    for (s in first:7) {
      for (i in 1:m) {
        real total = a[1, s] * k[i, 1];
        for (j in 2:6) total += a[j, s] * k[i, j];
        z[i] = y[i] + h * total;
      }
      if (m == n) {
        vector[n] f = callback(t + c[s] * h, z);
        for (i in 1:n) k[i, s] = f[i];
      } else {
        matrix[n, 1 + n + n_par] f = callback_jacobian(t + c[s] * h, head(z, n));
        for (i in 1:n) k[i, s] = f[i, 1];
        for (j in 1:(n_y0 + n_par)) {
          for (i in 1:n) {
            real total = j > n_y0 ? f[i, 1 + n + j - n_y0] : 0;
            for (l in 1:n) total += f[i, 1 + l] * z[n * j + l];
            k[n * j + i, s] = total;
          }
        }
      }
    }
    first = 2;
    real error = 0;
    for (i in 1:m) {
      real difference = 71.0 / 57600 * k[i, 1] - 71.0 / 16695 * k[i, 3] + 71.0 / 1920 * k[i, 4]
                        - 17253.0 / 339200 * k[i, 5] + 22.0 / 525 * k[i, 6] - 1.0 / 40 * k[i, 7];
      real ratio = abs(h * difference) / (abs_tol + rel_tol * (abs(y[i]) + abs(h * k[i, 1])));
      error = ratio > error ? ratio : error;
    }
    if (error > 1) {
      n_rejected += 1;
      require_no_more(n_rejected, 500);
      h *= fmax(0.9 * error ^ (-1.0 / 3), 0.2);
    } else {
      n_rejected = 0;
      n_steps += 1;
      require_time_reached(n_steps, max_num_steps, value_of(ts[next]));
      real t_new = t + h;
      while (next <= n_ts && value_of(ts[next < n_ts ? next : n_ts]) - t_new <= machine_precision()) {
        real x = (value_of(ts[next]) - t) / (t_new - t);
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
          states[i, next] = y[i] + w1 * k[i, 1] + w3 * k[i, 3] + w4 * k[i, 4] + w5 * k[i, 5] + w6 * k[i, 6]
                            + w7 * k[i, 7];
        }
        next += 1;
        n_steps = 0;
      }
      t = t_new;
      for (i in 1:m) y[i] = z[i];
      for (i in 1:m) k[i, 1] = k[i, 7];
      if (error < 0.5) h *= 0.9 * fmax(0.00032, error) ^ (-0.2);
    }
  }
  return states;
}

vector ode_initial_state(vector y0, int n_y0, int n_par) {
  int n = num_elements(y0);
  vector[n * (1 + n_y0 + n_par)] y = rep_vector(0, n * (1 + n_y0 + n_par));
  for (i in 1:n) y[i] = value_of(y0[i]);
  for (i in 1:n_y0) y[n * i + i] = 1;
  return y;
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
