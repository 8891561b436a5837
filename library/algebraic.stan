/* Roots of systems of equations: y with f(y, ...) = 0. Stan Functions Reference, "Algebraic equation solvers".
 *
 * The solvers call the user's function f as `callback_jacobian`, see ode.stan: its value, df/dy, and df/dtheta for the
 * parameters of f of which a gradient is asked for, side by side, as constants. `algebra_attach` gives the root its
 * derivatives. The guess has none.
 *
 * One method stands behind all names: Newton's, kept to a trust region by Powell's dogleg, with exact Jacobians. Once
 * |f| is within its tolerance, a few more steps make the root as exact as they can. M. J. D. Powell (1970), "A hybrid
 * method for nonlinear equations"; J. Nocedal, S. J. Wright, "Numerical Optimization", 11.2. */

matrix callback_jacobian(vector y);
vector callback_parameters();
void solver_step();
void solver_failed_step();
vector callback_arguments();

vector solve_newton(vector y_guess) {
  return algebra_attach(algebra_root(y_guess, 1e-3, 1e-6, 200));
}

vector solve_newton_tol(vector y_guess, real scaling_step, real f_tol, real max_num_steps) {
  return algebra_attach(algebra_root(y_guess, scaling_step, f_tol, max_num_steps));
}

vector algebra_solver_newton(vector y_guess) {
  return algebra_attach(algebra_root(y_guess, 1e-3, 1e-6, 200));
}

vector algebra_solver_newton(vector y_guess, real scaling_step, real f_tol, real max_num_steps) {
  return algebra_attach(algebra_root(y_guess, scaling_step, f_tol, max_num_steps));
}

vector solve_powell(vector y_guess) {
  return algebra_attach(algebra_root(y_guess, 1e-10, 1e-6, 200));
}

vector solve_powell_tol(vector y_guess, real rel_tol, real f_tol, real max_num_steps) {
  return algebra_attach(algebra_root(y_guess, rel_tol, f_tol, max_num_steps));
}

vector algebra_solver(vector y_guess) {
  return algebra_attach(algebra_root(y_guess, 1e-10, 1e-6, 1000));
}

vector algebra_solver(vector y_guess, real rel_tol, real f_tol, real max_num_steps) {
  return algebra_attach(algebra_root(y_guess, rel_tol, f_tol, max_num_steps));
}

vector algebra_root(vector y_guess, real step_tol, real f_tol, real max_num_steps) {
  require_nonempty(num_elements(y_guess));
  require_finite(y_guess);
  vector[num_elements(callback_arguments())] parameters_and_data = callback_arguments();
  require_finite(parameters_and_data);
  require_nonnegative(step_tol);
  require_nonnegative(f_tol);
  require_positive(max_num_steps);
  int n = num_elements(y_guess);
  vector[n] y;
  for (i in 1:n) y[i] = value_of(y_guess[i]);
  matrix[n, 1 + n + num_elements(callback_parameters())] f = callback_jacobian(y);
  real norm_of_f = algebra_norm(f);
  real radius = 100 * fmax(sqrt(dot_self(y)), 1);
  real smallest = fmin(step_tol, 1e-13);
  real n_steps = 0;
  int n_polishing = 0;
  int goes_on = norm_of_f > 0 ? 1 : 0;
  while (goes_on) {
    n_steps += 1;
    require_root_reached(n_steps, max_num_steps);
    vector[n] p = algebra_step(f, radius);
    vector[n] next = y + p;
    matrix[n, 1 + n + num_elements(callback_parameters())] f_next = callback_jacobian(next);
    real norm_next = algebra_norm(f_next);
    real length = sqrt(dot_self(p));
    real expected = square(norm_of_f);
    for (i in 1:n) {
      real linear = f[i, 1];
      for (j in 1:n) linear += f[i, 1 + j] * p[j];
      expected -= square(linear);
    }
    real gained = (square(norm_of_f) - square(norm_next)) / expected;
    if (!(gained >= 0.25)) {
      radius = 0.25 * length;
    } else if (gained > 0.75) {
      radius = fmax(radius, 2 * length);
    }
    goes_on = length > smallest * sqrt(dot_self(y)) ? 1 : 0;
    if (norm_next < norm_of_f) {
      solver_step();
      y = next;
      f = f_next;
      norm_of_f = norm_next;
    } else {
      solver_failed_step();
    }
    n_polishing += norm_of_f <= f_tol ? 1 : 0;
    goes_on = norm_of_f > 0 && n_polishing < 8 ? goes_on : 0;
  }
  require_within_tolerance(norm_of_f, f_tol);
  return y;
}

/* Of the values in the first column; what is not finite counts as infinitely far from a root. */
real algebra_norm(matrix f) {
  real total = 0;
  for (i in 1:rows(f)) total += square(f[i, 1]);
  return total < positive_infinity() ? sqrt(total) : positive_infinity();
}

/* Newton's step if it is no longer than the radius; else of that length, along the path that begins with the descent
 * of |f|^2 to the least value of the linear model and goes on to Newton's step. */
vector algebra_step(matrix f, real radius) {
  int n = rows(f);
  vector[n] newton = -col(ode_solve(block(f, 1, 2, n, n), block(f, 1, 1, n, 1)), 1);
  real newton_length = sqrt(dot_self(newton));
  vector[n] result = newton;
  if (!(newton_length <= radius)) {
    vector[n] slope = rep_vector(0, n);
    real curvature = 0;
    for (j in 1:n) {
      for (i in 1:n) slope[j] += f[i, 1 + j] * f[i, 1];
    }
    for (i in 1:n) {
      real along = 0;
      for (j in 1:n) along += f[i, 1 + j] * slope[j];
      curvature += square(along);
    }
    real steepest = sqrt(dot_self(slope));
    real cauchy_length = curvature > 0 ? steepest ^ 3 / curvature : 0;
    if (cauchy_length >= radius) {
      result = -radius / steepest * slope;
    } else if (curvature > 0) {
      vector[n] cauchy = -cauchy_length / steepest * slope;
      result = cauchy;
      if (newton_length < positive_infinity()) {
        vector[n] rest = newton - cauchy;
        real a = dot_self(rest);
        real b = dot_product(cauchy, rest);
        result += (sqrt(square(b) + a * (square(radius) - square(cauchy_length))) - b) / a * rest;
      }
    } else {
      result = slope;
    }
  }
  return result;
}

/* The root as a function of the parameters of f: dy = -(df/dy) \ (df/dtheta) dtheta. What is multiplied is 0, with a
 * derivative of 1. */
vector algebra_attach(vector y) {
  int n = num_elements(y);
  int n_par = num_elements(callback_parameters());
  vector[n] result = y;
  if (n_par > 0) {
    vector[n_par] p = callback_parameters();
    matrix[n, 1 + n + n_par] f = callback_jacobian(y);
    matrix[n, n_par] slopes = ode_solve(block(f, 1, 2, n, n), block(f, 1, 2 + n, n, n_par));
    for (j in 1:n_par) {
      for (i in 1:n) result[i] -= slopes[i, j] * (p[j] - value_of(p[j]));
    }
  }
  return result;
}
