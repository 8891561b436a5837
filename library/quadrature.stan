/* Integrals in one dimension. Stan Functions Reference, "1D integrator".
 *
 * The integrators call the user's function f as `callback`, with the arguments of the call that are for f only added.
 * The functions declared here without a body are the compiler's: see passes/to_loops/callbacks.py.
 *
 * Where a gradient is asked for, each derivative of f with respect to one of its n_par parameters is integrated as f
 * itself is: to the tolerances, with an error of its own, at the same points. The value does not depend on whether
 * there are derivatives. `quadrature_attach` gives the result its derivatives. */

real callback(real x, real xc);
vector callback_gradient(real x, real xc);
vector callback_parameters();
void solver_step();
int is_differentiated(real x);

real integrate_1d(real lower_limit, real upper_limit) {
  return quadrature(lower_limit, upper_limit, sqrt(machine_precision()), 0, 12);
}

real integrate_1d(real lower_limit, real upper_limit, real relative_tolerance) {
  return quadrature(lower_limit, upper_limit, relative_tolerance, 0, 12);
}

real integrate_1d_double_exponential(real lower_limit, real upper_limit) {
  return quadrature(lower_limit, upper_limit, sqrt(machine_precision()), 0, 15);
}

real integrate_1d_double_exponential_tol(real lower_limit, real upper_limit, real relative_tolerance,
                                         real absolute_tolerance, int max_refinements) {
  require_nonnegative(max_refinements);
  require_nonnegative(absolute_tolerance);
  return quadrature(lower_limit, upper_limit, relative_tolerance, absolute_tolerance, max_refinements);
}

real integrate_1d_gauss_kronrod(real lower_limit, real upper_limit) {
  return quadrature_in_panels(lower_limit, upper_limit, sqrt(machine_precision()), 0, 15);
}

real integrate_1d_gauss_kronrod_tol(real lower_limit, real upper_limit, real relative_tolerance,
                                    real absolute_tolerance, int max_depth) {
  require_nonnegative(max_depth);
  require_nonnegative(absolute_tolerance);
  return quadrature_in_panels(lower_limit, upper_limit, relative_tolerance, absolute_tolerance, max_depth);
}

/* As in Stan, an integral across 0 is the sum of two, unless it is over the whole line. */
real quadrature(real lower_limit, real upper_limit, real rel_tol, real abs_tol, int max_refinements) {
  require_at_most(lower_limit, upper_limit);
  int n_par = num_elements(callback_parameters());
  vector[1 + n_par] integrals = rep_vector(0, 1 + n_par);
  real a = fixed_value_of(lower_limit);
  real b = fixed_value_of(upper_limit);
  if (a == b) {
    require_finite(lower_limit);
  } else {
    int has_distance = abs(a) < positive_infinity() && abs(b) < positive_infinity() ? 1 : 0;
    int n_parts = a < 0 && b > 0 && (abs(a) < positive_infinity() || abs(b) < positive_infinity()) ? 2 : 1;
    for (part in 1:n_parts) {
      integrals += double_exponential(part == 1 ? a : 0, part == n_parts ? b : 0, has_distance, rel_tol, abs_tol,
                                      max_refinements, n_par);
    }
  }
  return quadrature_attach(integrals, lower_limit, upper_limit, 0, n_par);
}

real quadrature_in_panels(real lower_limit, real upper_limit, real rel_tol, real abs_tol, int max_depth) {
  require_at_most(lower_limit, upper_limit);
  int n_par = num_elements(callback_parameters());
  vector[1 + n_par] integrals = rep_vector(0, 1 + n_par);
  real a = fixed_value_of(lower_limit);
  real b = fixed_value_of(upper_limit);
  if (a == b) {
    require_finite(lower_limit);
  } else {
    integrals = gauss_kronrod(a, b, rel_tol, abs_tol, max_depth, n_par);
  }
  return quadrature_attach(integrals, lower_limit, upper_limit, not_a_number(), n_par);
}

/* The integrals from a to b of f and of its derivatives, by the trapezoidal rule after a substitution x(t) that makes
 * integrands decay double exponentially. H. Takahasi, M. Mori (1974), "Double exponential formulas for numerical
 * integration", Publications of the Research Institute for Mathematical Sciences 9, 721-741:
 *
 *   both limits finite      x = tanh(pi/2 sinh t), scaled and shifted
 *   one limit infinite      x = a + exp(pi/2 sinh t), or x = b - exp(pi/2 sinh t)
 *   both limits infinite    x = sinh(pi/2 sinh t)
 *
 * The distance h of the points is halved until two sums agree. Points go from t = 0 outwards, to side 1, that of b,
 * and to side 2. Of an integrand, `reached` is the point farthest out that counts, `last` what it adds: others farther
 * out than the next one are left out in refinements. Where values are not finite the integral ends, at `end`: nothing
 * may count farther out. If no point before the end was found that does not count, `last` adds to the error. */
vector double_exponential(real a, real b, int has_distance, real rel_tol, real abs_tol, int max_refinements,
                          int n_par) {
  int n = 1 + n_par;
  real infinity = positive_infinity();
  int is_bounded_below = a > -infinity ? 1 : 0;
  int is_bounded_above = b < infinity ? 1 : 0;
  int is_bounded = is_bounded_below == 1 && is_bounded_above == 1 ? 1 : 0;
  real t_max = is_bounded == 1 ? 6 : 6.5;
  real half = is_bounded == 1 ? 0.5 * b - 0.5 * a : 1;
  vector[n] integrals = rep_vector(0, n);
  vector[n] sums = rep_vector(0, n);
  vector[n] norms = rep_vector(0, n);
  vector[n] errors = rep_vector(infinity, n);
  array[n] int is_open = rep_array(1, n);
  array[n] int n_worse = rep_array(0, n);
  matrix[n, 2] limit = rep_matrix(t_max, n, 2);
  matrix[n, 2] reached = rep_matrix(0, n, 2);
  matrix[n, 2] last = rep_matrix(0, n, 2);
  matrix[n, 2] end = rep_matrix(t_max + 0.01, n, 2);
  matrix[n, 2] x_end = rep_matrix(0, n, 2);
  matrix[n, 2] f_end = rep_matrix(0, n, 2);
  int n_open = n;
  int level = 1;
  real h = 0.5;
  while (n_open > 0) {
    solver_step();
    for (side in 1:2) {
      real t = level == 1 && side == 1 ? 0 : h;
      real t_last = 0;
      for (i in 1:n) t_last = is_open[i] == 1 && limit[i, side] > t_last ? limit[i, side] : t_last;
      while (t <= t_last) {
        real u = 0.5 * pi() * sinh(t);
        real x;
        real xc = not_a_number();
        real weight = 0.5 * pi() * cosh(t);
        if (is_bounded == 1) {
          real q = exp(-2 * u);
          real distance = half * 2 * q / (1 + q);
          x = side == 1 ? b - distance : a + distance;
          if (has_distance == 1) xc = side == 1 ? distance : -distance;
          weight *= half * 4 * q / square(1 + q);
        } else if (is_bounded_below == 1 || is_bounded_above == 1) {
          int is_far = (is_bounded_below == 1) == (side == 1);
          real distance = exp(is_far == 1 ? u : -u);
          x = is_bounded_below == 1 ? a + distance : b - distance;
          weight *= distance;
        } else {
          x = side == 1 ? sinh(u) : -sinh(u);
          weight *= cosh(u);
        }
        vector[n] f = callback_gradient(x, xc);
        for (i in 1:n) {
          if (is_open[i] == 1 && t <= limit[i, side]) {
            real integrand = weight * (i > 1 && is_nan(f[i]) && f[1] == 0 ? 0 : f[i]);
            real size = abs(integrand);
            if (size < infinity) {
              // What is exactly 0 far out may have second derivatives that are none.
              if (size > 0 || abs(x) < 1e100) {
                sums[i] += integrand;
                norms[i] += size;
              }
              if (size > 1e-17 * norms[i]) {
                if (t > end[i, side]) quadrature_check(f_end[i, side], x_end[i, side]);
                if (t > reached[i, side]) {
                  reached[i, side] = t;
                  last[i, side] = size;
                }
              }
            } else {
              if (t <= reached[i, side] || t <= h) quadrature_check(integrand, x);
              if (t < end[i, side]) {
                end[i, side] = t;
                x_end[i, side] = x;
                f_end[i, side] = integrand;
              }
            }
          }
        }
        t += level == 1 ? h : 2 * h;
      }
    }
    for (i in 1:n) {
      if (is_open[i] == 1) {
        real norm = h * norms[i];
        require_finite(norm);
        real error = abs(h * sums[i] - integrals[i]);
        real allowed = fmax(rel_tol * norm, abs_tol);
        if (level >= 3 && error <= allowed) {
          for (side in 1:2) {
            if (end[i, side] <= reached[i, side] + 1.5 * h) {
              if (end[i, side] <= t_max && last[i, side] > allowed) {
                quadrature_check(f_end[i, side], x_end[i, side]);
              }
              error += last[i, side];
            }
          }
          require_integral_error(error, allowed);
          is_open[i] = 0;
          n_open -= 1;
        } else {
          if (level > 5 && error > 0.5 * errors[i]) n_worse[i] += 1;
          if (level >= 3 && (level >= max_refinements || n_worse[i] > 2)) require_integral_error(error, allowed);
        }
        integrals[i] = h * sums[i];
        errors[i] = error;
        for (side in 1:2) {
          if (norms[i] > 0) limit[i, side] = fmin(end[i, side], fmax(1, reached[i, side] + h));
        }
      }
    }
    level += 1;
    h *= 0.5;
  }
  return integrals;
}

/* The integrals from a to b of f and of its derivatives, by Gauss's rule of 10 points and Kronrod's of 21, whose
 * difference is the estimate of the error. A. S. Kronrod, "Nodes and Weights of Quadrature Formulas", 1965. The panel
 * with the largest error is halved until the sum of the errors is within the tolerances: of f first, then of each
 * derivative. As in Stan xc is NaN, and s in (-1, 1) is what is integrated over if a limit is infinite:
 *
 *   one limit infinite      x = a + (1 - s) / (1 + s), or x = b - (1 - s) / (1 + s)
 *   both limits infinite    x = s / (1 - s^2) */
vector gauss_kronrod(real a, real b, real rel_tol, real abs_tol, int max_depth, int n_par) {
  array[11] real nodes = {0, 0.14887433898163121571, 0.29439286270146020064, 0.43339539412924721340,
                          0.56275713466860466383, 0.67940956829902443559, 0.78081772658641690477,
                          0.86506336668898453635, 0.93015749135570824357, 0.97390652851717174343,
                          0.99565716302580808961};
  array[11] real kronrod = {0.14944555400291689717, 0.14773910490133848605, 0.14277593857706008529,
                            0.13470921731147333933, 0.12349197626206584455, 0.10938715880229764321,
                            0.09312545458369760054, 0.07503967481091995684, 0.05475589657435199487,
                            0.03255816230796472477, 0.01169463886737187423};
  array[11] real gauss = {0, 0.29552422471475287002, 0, 0.26926671930999634963, 0, 0.21908636251598204159, 0,
                          0.14945134915058058689, 0, 0.06667134430868813799, 0};
  int n = 1 + n_par;
  int max_panels = 256;
  int is_bounded_below = a > -positive_infinity() ? 1 : 0;
  int is_bounded_above = b < positive_infinity() ? 1 : 0;
  int is_bounded = is_bounded_below == 1 && is_bounded_above == 1 ? 1 : 0;
  vector[max_panels] left;
  vector[max_panels] right;
  array[max_panels] int depth;
  matrix[n, max_panels] totals;
  matrix[n, max_panels] norms;
  matrix[n, max_panels] errors;
  vector[n] integrals = rep_vector(0, n);
  int n_panels = 1;
  int halved = 1;
  int open = 1;
  left[1] = is_bounded == 1 ? a : -1;
  right[1] = is_bounded == 1 ? b : 1;
  depth[1] = 0;
  while (open <= n) {
    for (part in 1:(n_panels == 1 ? 1 : 2)) {
      solver_step();
      int panel = part == 1 ? halved : n_panels;
      real center = 0.5 * left[panel] + 0.5 * right[panel];
      real half = 0.5 * right[panel] - 0.5 * left[panel];
      vector[n] total = rep_vector(0, n);
      vector[n] norm = rep_vector(0, n);
      vector[n] difference = rep_vector(0, n);
      for (k in -10:10) {
        int node = 1 + abs(k);
        real x = center + (k < 0 ? -half : half) * nodes[node];
        real weight = half;
        if (is_bounded == 0 && (is_bounded_below == 1 || is_bounded_above == 1)) {
          real distance = (1 - x) / (1 + x);
          weight *= 2 / square(1 + x);
          x = is_bounded_below == 1 ? a + distance : b - distance;
        } else if (is_bounded == 0) {
          real q = (1 - x) * (1 + x);
          weight *= (1 + square(x)) / square(q);
          x /= q;
        }
        vector[n] f = callback_gradient(x, not_a_number());
        for (i in 1:n) {
          real integrand = weight * (i > 1 && is_nan(f[i]) && f[1] == 0 ? 0 : f[i]);
          quadrature_check(integrand, x);
          total[i] += kronrod[node] * integrand;
          norm[i] += kronrod[node] * abs(integrand);
          difference[i] += (kronrod[node] - gauss[node]) * integrand;
        }
      }
      for (i in 1:n) {
        totals[i, panel] = total[i];
        norms[i, panel] = norm[i];
        errors[i, panel] = fmax(abs(difference[i]), 50 * machine_precision() * norm[i]);
      }
    }
    halved = 0;
    while (halved == 0 && open <= n) {
      real total = 0;
      real norm = 0;
      real error = 0;
      for (panel in 1:n_panels) {
        total += totals[open, panel];
        norm += norms[open, panel];
        error += errors[open, panel];
        if (depth[panel] < max_depth && (halved == 0 || errors[open, panel] > errors[open, halved])) halved = panel;
      }
      if (error <= fmax(rel_tol * norm, abs_tol)) {
        integrals[open] = total;
        open += 1;
        halved = 0;
      } else {
        if (halved == 0 || n_panels == max_panels) require_integral_error(error, fmax(rel_tol * norm, abs_tol));
        n_panels += 1;
        left[n_panels] = 0.5 * left[halved] + 0.5 * right[halved];
        right[n_panels] = right[halved];
        right[halved] = left[n_panels];
        depth[halved] += 1;
        depth[n_panels] = depth[halved];
      }
    }
  }
  return integrals;
}

void quadrature_check(real integrand, real x) { require_integrand_finite(integrand, x); }

/* The integral as a function of the parameters of f and the limits: the value as given, the derivatives those that
 * were integrated, and f at the limits. What is multiplied by them is 0, with a derivative of 1. The points x do not
 * move with the limits, so that the integrated derivatives are shifted in the same way, for second derivatives. */
real quadrature_attach(vector integrals, real lower_limit, real upper_limit, real xc, int n_par) {
  vector[1 + n_par] shifted = integrals;
  real result = 0;
  if (is_differentiated(lower_limit) + is_differentiated(upper_limit) > 0) {
    for (side in 1:2) {
      int is_varied = side == 1 ? is_differentiated(upper_limit) : is_differentiated(lower_limit);
      real limit = side == 1 ? upper_limit : lower_limit;
      if (is_varied == 1 && abs(limit) < positive_infinity()) {
        vector[1 + n_par] f = callback_gradient(value_of(limit), xc);
        quadrature_check(f[1], limit);
        real sign = side == 1 ? 1 : -1;
        result += sign * value_of(f[1]) * (limit - value_of(limit));
        for (j in 1:(1 + n_par)) {
          if (abs(f[j]) < positive_infinity()) shifted[j] += sign * f[j] * (value_of(limit) - fixed_value_of(limit));
        }
      }
    }
  }
  result += shifted[1];
  if (n_par > 0) {
    vector[n_par] p = callback_parameters();
    for (j in 1:n_par) result += shifted[1 + j] * (p[j] - value_of(p[j]));
  }
  return result;
}
