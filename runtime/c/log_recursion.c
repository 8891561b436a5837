/* Recursions of rows of logarithms, as the forward algorithm of a hidden Markov model has them:
 *
 *     rows[t, k] = log(sum over j of exp(rows[t-1, j] + moves[t, j, k])) + terms[t, k]
 *
 * A row is kept as numbers below their largest one, times exp of a base, so that a step is a product with a matrix:
 * neither exponentials nor logarithms of one row wait for those of the row before (Rabiner, Proc. IEEE 77, 1989). What
 * numbers cannot hold, elements that are out of range, 0, infinite or NaN, is computed as it is written, from logarithms,
 * element by element; such an element's number has a minus sign, and its logarithm is in the place of its weight.
 *
 * Sizes: t times, k states. Column k of `terms`, of `numbers` and of `weights` has its times one beside the other.
 * Transition j, k is in column by_from * j + by_to * k of `moves`, of u times: t, or 1 if all are the same. The row
 * before the first is `first`. The last `asked` rows are the result: row i of them begins at i * by_row, neighbours are
 * by_state apart.
 *
 * The adjoint of a logarithm is its number times a sum over what is made of it, which goes back by products with the
 * same matrices: rows are all that is kept. */
#include "dense.h"

#pragma GCC optimize("no-trapping-math") /* choices between reals are made side by side */
#ifndef ULAM_DUAL
#pragma GCC optimize("fp-contract=fast") /* levels below 3 do not call this */
#endif

#if defined(ULAM_SEVERAL_PROCESSORS) && !defined(ULAM_DUAL) && __GNUC__ >= 12
#define RECURSION_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RECURSION_CLONES ULAM_CLONES
#endif

static const double LEAST = 0x1p-600; /* numbers below may have lost digits, or their tangents */
static const double MOST = 0x1p40, LEAST_TOTAL = 0x1p-40; /* beyond, a row is moved to the middle */
static const double LEAST_MOVED = 0x1p-200;               /* of the largest number of a row that can be moved */

typedef struct {
  int64_t times, states, by_from, by_to, by_row, by_state, move_times, asked;
  const number *first, *terms, *moves;
  number *rows, *numbers, *weights, *moved; /* weights, moved: what terms and moves are the logarithms of, but for bases */
  number *bases; /* of each row, and behind them the factor by which it was moved, negative if not all are products */
} Recursion;

#ifdef ULAM_DUAL
static number exponential(number x) { return isinf(value_of(x)) ? exp(value_of(x)) : exp(x); }
static number logarithm(number x) { return value_of(x) == 0 ? -INFINITY : log(x); }
#define exponential_of_term exponential
#define logarithm_of_number logarithm
#define size_of(x) absolute(x)
#else
#define exponential exp
#define logarithm log
#define size_of(x) fabs(x)

static inline double as_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* exp of what is not positive, else NaN, for loops whose iterations run side by side: the nearest multiple of log 2, and the series
 * of the rest. What is below the range of doubles in full precision is 0. */
static inline double exponential_of_term(double x) {
  const double shift = 0x1.8p52, log2_high = 0x1.62e42fee00000p-1, log2_low = 0x1.a39ef35793c76p-33;
  double y = x < -708.0 ? -708.0 : x;
  double whole = y * 0x1.71547652b82fep+0 + shift;
  uint64_t power = bits_of(whole) << 52;
  whole -= shift;
  double r = (y - whole * log2_high) - whole * log2_low;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r;
  double found = as_double(bits_of(1.0 + p) + power);
  found = x < -708.0 ? 0.0 : found;
  return x <= 0 ? found : NAN;
}

/* log of a normal number: the exponent, and the series of log((1 + s) / (1 - s)). */
static inline double logarithm_of_number(double x) {
  const uint64_t middle = bits_of(0x1.6a09e667f3bcdp-1);
  uint64_t above = bits_of(x) - middle, exponent = above >> 52; /* 1023 less than biased: exponents are positive here */
  uint64_t mantissa = (above & 0xfffffffffffff) + middle;
  double power = as_double(exponent + 0x4330000000000000) - 0x1p52;
  power = power >= 1024.0 ? power - 4096.0 : power;
  double m = as_double(mantissa), f = m - 1.0, s = f / (2.0 + f), z = s * s;
  double p = 1.479819860511658591e-01;
  p = p * z + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  p = p * z + 6.666666666666735130e-01;
  double half = 0.5 * f * f;
  return power * 0x1.62e42fee00000p-1 - ((half - (s * (half + z * p) + power * 0x1.a39ef35793c76p-33)) - f);
}
#endif

/* The largest of the logarithms of each time, and what they are the logarithms of, divided by it. */
RECURSION_CLONES static void divide_by_largest(int64_t times, int64_t columns, const number *logs, number *top, number *out) {
  for (int64_t t = 0; t < times; ++t) top[t] = logs[t];
  for (int64_t k = 1; k < columns; ++k)
    for (int64_t t = 0; t < times; ++t)
      top[t] = value_of(logs[k * times + t]) > value_of(top[t]) ? logs[k * times + t] : top[t];
  for (int64_t t = 0; t < times; ++t) top[t] = value_of(top[t]) == -INFINITY ? 0.0 : top[t];
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t t = 0; t < times; ++t) out[k * times + t] = exponential_of_term(logs[k * times + t] - top[t]);
}

RECURSION_CLONES static void take_logarithms(const Recursion *r) {
  int64_t times = r->times, from = times - r->asked;
  for (int64_t k = 0; k < r->states; ++k) {
    const number *numbers = r->numbers + k * times, *weights = r->weights + k * times;
    for (int64_t t = from; t < times; ++t) {
      number found = logarithm_of_number(value_of(numbers[t]) > 0 ? numbers[t] : 1.0) + r->bases[t];
      r->rows[(t - from) * r->by_row + k * r->by_state] = value_of(numbers[t]) > 0 ? found : weights[t];
    }
  }
}

static inline number move_at(const Recursion *r, const number *moves, int64_t t, int64_t j, int64_t k) {
  return moves[(j * r->by_from + k * r->by_to) * r->move_times + (r->move_times == 1 ? 0 : t)];
}

/* The logarithm of element j of the row before row t. */
static inline number before_at(const Recursion *r, int64_t t, int64_t j) {
  if (t == 0) return r->first[j];
  int64_t at = j * r->times + t - 1;
  return value_of(r->numbers[at]) > 0 ? logarithm(r->numbers[at]) + r->bases[t - 1] : r->weights[at];
}

/* The sum that element k of row t is the logarithm of, divided by exp of `top`. */
static number sum_at(const Recursion *r, int64_t t, int64_t k, double *top) {
  *top = -INFINITY;
  for (int64_t j = 0; j < r->states; ++j) {
    double x = value_of(before_at(r, t, j) + move_at(r, r->moves, t, j, k));
    *top = x > *top ? x : *top;
  }
  if (isinf(*top)) *top = 0;
  number sum = 0;
  for (int64_t j = 0; j < r->states; ++j)
    sum += exponential(before_at(r, t, j) + move_at(r, r->moves, t, j, k) - *top);
  return sum;
}

/* Row t, if not all numbers that products gave are in range. */
static __attribute__((noinline)) void finish_row(const Recursion *r, int64_t t, number *row) {
  int64_t states = r->states, times = r->times;
  double largest = 0, factor = 1;
  for (int64_t k = 0; k < states; ++k) largest = value_of(row[k]) > largest ? value_of(row[k]) : largest;
  int products = largest >= LEAST_MOVED && largest <= 1 / LEAST_MOVED;
  if (products && (largest < LEAST_TOTAL || largest > MOST)) {
    int exponent;
    frexp(largest, &exponent);
    factor = ldexp(1.0, -exponent);
    r->bases[t] += exponent * 0x1.62e42fefa39efp-1;
  }
  r->bases[times + t] = factor;
  double top = -INFINITY;
  for (int64_t k = 0; k < states; ++k) {
    int64_t at = k * times + t;
    if (products && value_of(row[k]) >= LEAST) {
      r->numbers[at] = row[k] *= factor;
      continue;
    }
    double largest_term;
    number sum = sum_at(r, t, k, &largest_term);
    r->weights[at] = logarithm(sum) + largest_term + r->terms[at];
    r->numbers[at] = -0.0;
    r->bases[times + t] = -factor;
    top = value_of(r->weights[at]) > top ? value_of(r->weights[at]) : top;
  }
  if (!products) r->bases[t] = isfinite(top) ? top : 0;
  for (int64_t k = 0; k < states; ++k) {
    int64_t at = k * times + t;
    if (value_of(r->numbers[at]) > 0) continue;
    row[k] = exponential(r->weights[at] - r->bases[t]);
    if (isfinite(value_of(row[k]))) r->numbers[at] = -row[k];
  }
}

/* What the row before the first is, divided by exp of its base, which is returned. */
static number start_row(const Recursion *r, number *row) {
  double largest = -INFINITY;
  for (int64_t j = 0; j < r->states; ++j) largest = value_of(r->first[j]) > largest ? value_of(r->first[j]) : largest;
  double base = isfinite(largest) ? largest : 0;
  for (int64_t j = 0; j < r->states; ++j) row[j] = exponential(r->first[j] - base);
  return base;
}

/* The rows, one after the other. `row`, `before`: of a number for each state; `moved`: of one for each transition.
 * `few`: products that do not wait for the row before come first, since the chain of rows is what takes the time. */
static inline __attribute__((always_inline)) void step_forward(const Recursion *r, int64_t states, int few, int varies,
                                                               const number *top, const number *move_top, number *before,
                                                               number *row, number *moved) {
  int64_t times = r->times;
  number base = start_row(r, before);
  for (int64_t j = 0; !varies && j < states; ++j)
    for (int64_t k = 0; k < states; ++k) moved[j * states + k] = move_at(r, r->moved, 0, j, k);
  for (int64_t t = 0; t < times; ++t) {
    number total = 0;
    int in_range = 1;
    for (int64_t k = 0; k < states; ++k) row[k] = 0;
    for (int64_t j = 0; j < states; ++j)
      for (int64_t k = 0; k < states; ++k) {
        number move = varies ? move_at(r, r->moved, t, j, k) : moved[j * states + k];
        row[k] += before[j] * (few ? move * r->weights[k * times + t] : move);
      }
    for (int64_t k = 0; k < states; ++k) {
      if (!few) row[k] *= r->weights[k * times + t];
      in_range &= (value_of(row[k]) >= LEAST) & (value_of(row[k]) <= MOST);
      total += row[k];
    }
    base += top[t] + move_top[varies ? t : 0];
    r->bases[t] = base;
    r->bases[times + t] = 1;
    if (__builtin_expect(in_range && value_of(total) >= LEAST_TOTAL, 1)) {
      for (int64_t k = 0; k < states; ++k) r->numbers[k * times + t] = row[k];
    } else {
      finish_row(r, t, row);
      base = r->bases[t];
    }
    for (int64_t k = 0; k < states; ++k) before[k] = row[k];
  }
}

/* What the elements of row t give back that were not made by products: `adjoints` are theirs, `direct` the row's before. */
static __attribute__((noinline)) void give_back_sums(const Recursion *r, int64_t t, const number *adjoints, number *direct,
                                                     number *moves_adj) {
  for (int64_t k = 0; k < r->states; ++k) {
    if (value_of(r->numbers[k * r->times + t]) > 0) continue;
    double top;
    number sum = sum_at(r, t, k, &top);
    for (int64_t j = 0; j < r->states; ++j) {
      number term = exponential(before_at(r, t, j) + move_at(r, r->moves, t, j, k) - top);
      number share = adjoints[k] * (value_of(sum) == 0 ? 0 : term / sum);
      direct[j] += share;
      if (moves_adj) moves_adj[(j * r->by_from + k * r->by_to) * r->move_times + (r->move_times == 1 ? 0 : t)] += share;
    }
  }
}

typedef struct {
  number *first, *terms, *moves;
  const number *rows;
} Adjoints;

/* What the way back needs beside rows (weights, given: the factors of steps): a number for each state, of `moved` and `products` one for each transition. */
typedef struct {
  number *start, *slopes, *given, *weights, *adjoints, *direct, *steps, *moved, *products;
} Scratch;

/* Adjoints, one row after the other. `slopes` times numbers are those of the logarithms of a row, but for `direct` and
 * those that are given. */
static inline __attribute__((always_inline)) void step_back(const Recursion *r, const Adjoints *a, int64_t states,
                                                            int few, int varies, Scratch s) {
  int64_t times = r->times, from = a->rows ? times - r->asked : times;
  for (int64_t j = 0; j < states; ++j) s.slopes[j] = s.direct[j] = 0;
  for (int64_t j = 0; !varies && j < states; ++j)
    for (int64_t k = 0; k < states; ++k) {
      s.moved[k * states + j] = move_at(r, r->moved, 0, j, k);
      s.products[k * states + j] = 0;
    }
  for (int64_t t = times - 1; t >= 0; --t) {
    int by_products = 1;
    for (int64_t k = 0; k < states; ++k) {
      int64_t at = k * times + t;
      number n = r->numbers[at], own = s.direct[k], slope = s.slopes[k];
      int by_product = value_of(n) > 0;
      if (t >= from) own += a->rows[(t - from) * r->by_row + k * r->by_state];
      s.adjoints[k] = size_of(n) * slope + own;
      if (a->terms) a->terms[at] += s.adjoints[k];
      if (__builtin_expect(own != 0, 0) && by_product) slope += own / n;
      s.weights[k] = by_product ? r->weights[at] * size_of(r->bases[times + t]) : 0;
      s.steps[k] = s.weights[k] * slope;
      s.given[k] = by_product ? slope : 0;
      by_products &= by_product;
    }
    for (int64_t j = 0; j < states; ++j) s.slopes[j] = s.direct[j] = 0;
    if (__builtin_expect(!by_products, 0)) give_back_sums(r, t, s.adjoints, s.direct, a->moves);
    for (int64_t k = 0; k < states; ++k)
      for (int64_t j = 0; j < states; ++j) {
        number before = t > 0 ? size_of(r->numbers[j * times + t - 1]) : s.start[j];
        number move = varies ? move_at(r, r->moved, t, j, k) : s.moved[k * states + j];
        number product = few ? move * s.weights[k] * s.given[k] : move * s.steps[k];
        s.slopes[j] += product;
        if (!varies)
          s.products[k * states + j] += before * s.steps[k];
        else if (a->moves)
          a->moves[(j * r->by_from + k * r->by_to) * times + t] += before * product;
      }
  }
  for (int64_t j = 0; a->moves && !varies && j < states; ++j)
    for (int64_t k = 0; k < states; ++k)
      a->moves[j * r->by_from + k * r->by_to] += s.products[k * states + j] * s.moved[k * states + j];
  for (int64_t j = 0; a->first && j < states; ++j) a->first[j] += s.start[j] * s.slopes[j] + s.direct[j];
}

#ifndef ULAM_DUAL
/* Few states, as many as are known, have rows in registers. */
enum { FEW = 4 };

/* Whether all elements of rows are products, and only the last has an adjoint that is given. */
static inline __attribute__((always_inline)) int is_plain(const Recursion *r, const Adjoints *a) {
  int64_t plain = 0;
  for (int64_t t = 0; t < r->times; ++t) plain += r->bases[r->times + t] > 0;
  return plain == r->times && r->asked == 1 && a->rows && r->move_times == 1;
}

static inline __attribute__((always_inline)) number product_of_columns(int64_t count, const number *a, const number *b) {
  number parts[8] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int lane = 0; lane < 8; ++lane) parts[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) sum += a[i] * b[i];
  for (int lane = 0; lane < 8; ++lane) sum += parts[lane];
  return sum;
}

/* Adjoints if rows are plain: only slopes wait for those of the row behind, all else is done for all times side by side.
 * `slopes`: as large as numbers. */
static inline __attribute__((always_inline)) void plain_back(const Recursion *r, const Adjoints *a, int64_t states,
                                                             const number *start, number *slopes) {
  int64_t times = r->times;
  number slope[FEW], moved[FEW * FEW];
  for (int64_t k = 0; k < states; ++k) slope[k] = a->rows[k * r->by_state] / r->numbers[k * times + times - 1];
  for (int64_t k = 0; k < states; ++k)
    for (int64_t j = 0; j < states; ++j) moved[k * states + j] = move_at(r, r->moved, 0, j, k);
  for (int64_t t = times - 1; t >= 0; --t) {
    number before[FEW] = {0};
    for (int64_t k = 0; k < states; ++k) slopes[k * times + t] = slope[k];
    for (int64_t k = 0; k < states; ++k)
      for (int64_t j = 0; j < states; ++j) before[j] += moved[k * states + j] * (r->weights[k * times + t] * r->bases[times + t]) * slope[k];
    for (int64_t j = 0; j < states; ++j) slope[j] = before[j];
  }
  for (int64_t j = 0; a->first && j < states; ++j) a->first[j] += start[j] * slope[j];
  for (int64_t at = 0; a->terms && at < states * times; ++at) a->terms[at] += r->numbers[at] * slopes[at];
  for (int64_t k = 0; a->moves && k < states; ++k)
    for (int64_t t = 0; t < times; ++t) slopes[k * times + t] *= r->weights[k * times + t] * r->bases[times + t];
  for (int64_t j = 0; a->moves && j < states; ++j)
    for (int64_t k = 0; k < states; ++k) {
      const number *steps = slopes + k * times;
      number sum = start[j] * steps[0] + product_of_columns(times - 1, r->numbers + j * times, steps + 1);
      a->moves[j * r->by_from + k * r->by_to] += sum * moved[k * states + j];
    }
}


static inline __attribute__((always_inline)) void few_forward(const Recursion *r, int64_t states, const number *top,
                                                              const number *move_top) {
  number before[FEW], row[FEW], moved[FEW * FEW];
  if (r->move_times == 1)
    step_forward(r, states, 1, 0, top, move_top, before, row, moved);
  else
    step_forward(r, states, 1, 1, top, move_top, before, row, moved);
}

static inline __attribute__((always_inline)) void few_back(ulam_context *ctx, const Recursion *r, const Adjoints *a,
                                                           int64_t states, number *start) {
  if (is_plain(r, a)) {
    plain_back(r, a, states, start, dense_numbers(ctx, states * r->times));
    return;
  }
  number slopes[FEW], given[FEW], weights[FEW], adjoints[FEW], direct[FEW], steps[FEW];
  number moved[FEW * FEW], products[FEW * FEW];
  Scratch scratch = {start, slopes, given, weights, adjoints, direct, steps, moved, products};
  if (r->move_times == 1)
    step_back(r, a, states, 1, 0, scratch);
  else
    step_back(r, a, states, 1, 1, scratch);
}
#endif

RECURSION_CLONES static void run_forward(ulam_context *ctx, const Recursion *r, const number *top, const number *move_top) {
  int64_t states = r->states;
  switch (states) {
#ifndef ULAM_DUAL
    case 1: few_forward(r, 1, top, move_top); break;
    case 2: few_forward(r, 2, top, move_top); break;
    case 3: few_forward(r, 3, top, move_top); break;
    case 4: few_forward(r, 4, top, move_top); break;
#endif
    default: {
      number *rows = dense_numbers(ctx, 2 * states), *moved = dense_numbers(ctx, states * states);
      step_forward(r, states, 0, r->move_times != 1, top, move_top, rows, rows + states, moved);
    }
  }
}

RECURSION_CLONES static void run_back(ulam_context *ctx, const Recursion *r, const Adjoints *a, number *start) {
  int64_t states = r->states;
  switch (states) {
#ifndef ULAM_DUAL
    case 1: few_back(ctx, r, a, 1, start); break;
    case 2: few_back(ctx, r, a, 2, start); break;
    case 3: few_back(ctx, r, a, 3, start); break;
    case 4: few_back(ctx, r, a, 4, start); break;
#endif
    default: {
      number *rows = dense_numbers(ctx, 6 * states), *moved = dense_numbers(ctx, 2 * states * states);
      Scratch scratch = {start, rows, rows + states, rows + 2 * states, rows + 3 * states, rows + 4 * states,
                         rows + 5 * states, moved, moved + states * states};
      step_back(r, a, states, 0, r->move_times != 1, scratch);
    }
  }
}

#define ARGUMENTS                                                                                                       \
  ulam_context *ctx, const number *first, const number *terms, const number *moves, int64_t t, int64_t k, int64_t c,    \
      int64_t u, int64_t by_from, int64_t by_to, int64_t by_row, int64_t by_state, int64_t asked, number *rows,         \
      number *numbers, number *weights, number *moved, number *bases
#define RECURSION                                                                                                       \
  {.times = t, .states = k, .by_from = by_from, .by_to = by_to, .by_row = by_row, .by_state = by_state,                 \
   .move_times = u, .asked = asked, .first = first, .terms = terms, .moves = moves, .rows = rows, .numbers = numbers,   \
   .weights = weights, .moved = moved, .bases = bases}

ULAM_API void KERNEL(log_recursion)(ARGUMENTS) {
  if (t == 0 || k == 0) return;
  char *mark = ctx->arena_cursor;
  Recursion r = RECURSION;
  number *top = dense_numbers(ctx, t), *move_top = dense_numbers(ctx, u);
  divide_by_largest(t, k, terms, top, weights);
  divide_by_largest(u, c, moves, move_top, moved);
  run_forward(ctx, &r, top, move_top);
  take_logarithms(&r);
  ulam_release(ctx, mark);
}

ULAM_API void KERNEL(log_recursion_pullback)(ARGUMENTS, number *first_adj, number *terms_adj, number *moves_adj,
                                             const number *rows_adj, const number *numbers_adj,
                                             const number *weights_adj, const number *moved_adj,
                                             const number *bases_adj) {
  (void)c, (void)numbers_adj, (void)weights_adj, (void)moved_adj, (void)bases_adj;
  if (t == 0 || k == 0) return;
  char *mark = ctx->arena_cursor;
  Recursion r = RECURSION;
  Adjoints a = {first_adj, terms_adj, moves_adj, rows_adj};
  number *start = dense_numbers(ctx, k);
  start_row(&r, start);
  for (int64_t j = 0; j < k; ++j)
    if (!isfinite(value_of(start[j]))) start[j] = 0;
  run_back(ctx, &r, &a, start);
  ulam_release(ctx, mark);
}
