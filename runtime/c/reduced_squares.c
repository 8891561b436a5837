/* The sum of the squares of the rows that linear_design.c has reduced, and half of its gradient, in one pass.
 *
 * Shared rows are as in reduced_rows.h: coefficients, y, zeros. Rows of groups have the same number in all groups side
 * by side, `groups` of them, a multiple of LANES. Coefficients come as they are; those that fit best, from which rows are
 * counted, stand behind the rows; of two points the nearer one is taken. Rows in twice the digits are multiplied so, too;
 * what they leave is a number as others are: what cancels is gone then. Without tables there is nothing to add up. */
#include "dense.h"
#include "reduced_rows.h"
#include "twofold.h"

enum { NARROW = 32 };

#define INLINE static inline __attribute__((always_inline))
#ifdef ULAM_DUAL
#define CLONES
typedef struct {
  number at[LANES];
} lanes;
#define ALL(expression)                               \
  for (int l = 0; l < LANES; ++l) a.at[l] = expression; \
  return a
INLINE lanes times(lanes a, lanes b) { ALL(a.at[l] * b.at[l]); }
INLINE lanes scaled(lanes a, number x) { ALL(a.at[l] * x); }
INLINE lanes plus(lanes a, lanes b) { ALL(a.at[l] + b.at[l]); }
INLINE lanes minus(lanes a, lanes b) { ALL(a.at[l] - b.at[l]); }
#define LANE(a, l) ((a).at[l])
#define LANES_OF(to, x) memcpy(&(to), x, sizeof(lanes))
#define KEEP(x, from) memcpy(x, &(from), sizeof(lanes))
#else
#define CLONES ULAM_CLONES
/* GCC takes vectors that are longer than those of the processor apart, number by number, and copies of structs go through
 * memory: pieces of the length that most have, loaded and stored one by one, stay in registers. */
enum { PIECE = LANES / 2 };
typedef double piece __attribute__((vector_size(PIECE * sizeof(double))));
typedef double piece_there __attribute__((vector_size(PIECE * sizeof(double)), aligned(8), may_alias));
typedef struct {
  piece low, high;
} lanes;
#pragma GCC diagnostic ignored "-Wpsabi" /* no such vector is passed to another file */
INLINE lanes times(lanes a, lanes b) { return (lanes){a.low * b.low, a.high * b.high}; }
INLINE lanes scaled(lanes a, double x) { return (lanes){a.low * x, a.high * x}; }
INLINE lanes plus(lanes a, lanes b) { return (lanes){a.low + b.low, a.high + b.high}; }
INLINE lanes minus(lanes a, lanes b) { return (lanes){a.low - b.low, a.high - b.high}; }
INLINE lanes lanes_at(const double *x) {
  return (lanes){((const piece_there *)x)[0], ((const piece_there *)x)[1]};
}
INLINE void keep(double *x, lanes a) { ((piece_there *)x)[0] = a.low, ((piece_there *)x)[1] = a.high; }
#define LANE(a, l) ((l) < PIECE ? (a).low[(l) % PIECE] : (a).high[(l) % PIECE])
#define LANES_OF(to, x) ((to) = lanes_at(x))
#define KEEP(x, from) keep(x, from)
#endif

#define SUM(a)                                                                                              \
  (((LANE(a, 0) + LANE(a, 4)) + (LANE(a, 2) + LANE(a, 6))) + ((LANE(a, 1) + LANE(a, 5)) + (LANE(a, 3) + LANE(a, 7))))

/* Adds to `half` what some rows of `parts` parts of LANES columns make of each column, from part `first` on; the sum of
 * their squares. */
#define SQUARES_OF(name, ROWS)                                                                                       \
  INLINE number name(int64_t first, int64_t parts, const number *restrict row,                                       \
                     const lanes *restrict d, lanes *restrict half) {                                                \
    lanes sums[ROWS] = {0}, part;                                                                                    \
    number rests[ROWS], total = 0;                                                                                   \
    for (int64_t k = first; k < parts; ++k)                                                                          \
      for (int r = 0; r < ROWS; ++r) {                                                                               \
        LANES_OF(part, row + (r * parts + k) * LANES);                                                               \
        sums[r] = plus(sums[r], times(part, d[k]));                                                                  \
      }                                                                                                              \
    for (int r = 0; r < ROWS; ++r) rests[r] = SUM(sums[r]), total += rests[r] * rests[r];                            \
    for (int64_t k = first; k < parts; ++k) {                                                                        \
      lanes found = half[k];                                                                                         \
      for (int r = 0; r < ROWS; ++r) {                                                                               \
        LANES_OF(part, row + (r * parts + k) * LANES);                                                               \
        found = plus(found, scaled(part, rests[r]));                                                                 \
      }                                                                                                              \
      half[k] = found;                                                                                               \
    }                                                                                                                \
    return total;                                                                                                    \
  }
SQUARES_OF(squares_of_row, 1)
SQUARES_OF(squares_of_four_rows, 4)

/* Of a triangle: row i begins at column i. */
INLINE number squares_of(int64_t rows, int64_t parts, const number *restrict table, const lanes *restrict d,
                         lanes *restrict half) {
  number total = 0;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4)
    total += squares_of_four_rows(i / LANES, parts, table + i * parts * LANES, d, half);
  for (; i < rows; ++i)
    total += squares_of_row(i / LANES, parts, table + i * parts * LANES, d, half);
  return total;
}

/* The same of a small triangle, `each` the numbers of `d`: without sums along lanes, and with all sums in registers. */
#define SMALL_SQUARES(name, PARTS)                                                                                   \
  INLINE number name(int64_t rows, const number *restrict table,                                                     \
                     const number *restrict each, number *restrict half) {                                           \
    const number *columns = table + (rows + 1) * PARTS * LANES;                                                      \
    lanes rests[PARTS] = {0}, found[PARTS] = {0}, part, squares = {0};                                               \
    number rest[PARTS * LANES];                                                                                      \
    for (int64_t k = 0; k < rows; ++k)                                                                               \
      for (int p = 0; p < PARTS; ++p) {                                                                              \
        LANES_OF(part, columns + (k * PARTS + p) * LANES);                                                           \
        rests[p] = plus(rests[p], scaled(part, each[k]));                                                            \
      }                                                                                                              \
    for (int p = 0; p < PARTS; ++p) {                                                                                \
      squares = plus(squares, times(rests[p], rests[p]));                                                            \
      KEEP(rest + p * LANES, rests[p]);                                                                              \
    }                                                                                                                \
    for (int64_t i = 0; i < rows; ++i)                                                                               \
      for (int p = 0; p < PARTS; ++p) {                                                                              \
        LANES_OF(part, table + (i * PARTS + p) * LANES);                                                             \
        found[p] = plus(found[p], scaled(part, rest[i]));                                                            \
      }                                                                                                              \
    for (int p = 0; p < PARTS; ++p) KEEP(half + p * LANES, found[p]);                                                \
    return SUM(squares);                                                                                             \
  }
SMALL_SQUARES(squares_of_one_part, 1)
SMALL_SQUARES(squares_of_two_parts, 2)

CLONES static number shared_squares(int64_t shared, const number *restrict table, const lanes *restrict d,
                                    lanes *restrict half) {
  int64_t width = reduced_width(shared), rows = shared + 1;
  if (!has_columns(shared)) return squares_of(rows, width / LANES, table, d, half);
  if (width == LANES) return squares_of_one_part(rows, table, (const number *)d, (number *)half);
  return squares_of_two_parts(rows, table, (const number *)d, (number *)half);
}

/* The same of groups; `d` has the shared coefficients, `halves` LANES sums for each of these. */
CLONES static number group_squares(int64_t groups, int64_t own, int64_t shared, const number *restrict table,
                                   const number *restrict d, const number *restrict mine, lanes *restrict halves,
                                   number *restrict mine_half) {
  int64_t columns = own + shared + 1;
  const number *best = table + own * columns * groups;
  lanes total = {0};
  for (int64_t j = 0; j < groups; j += LANES)
    for (int64_t p = 0; p < own; ++p) {
      const number *row = table + p * columns * groups + j;
      lanes rest = {0}, part, other, fit;
      LANES_OF(part, row + (columns - 1) * groups);
      rest = minus(rest, part);
      for (int64_t q = p; q < own; ++q) {
        LANES_OF(part, row + q * groups);
        LANES_OF(other, mine + q * groups + j);
        LANES_OF(fit, best + q * groups + j);
        rest = plus(rest, times(part, minus(other, fit)));
      }
      for (int64_t k = 0; k < shared; ++k) {
        LANES_OF(part, row + (own + k) * groups);
        rest = plus(rest, scaled(part, d[k]));
      }
      total = plus(total, times(rest, rest));
      for (int64_t q = p; q < own; ++q) {
        LANES_OF(part, row + q * groups);
        LANES_OF(other, mine_half + q * groups + j);
        other = plus(other, times(part, rest));
        KEEP(mine_half + q * groups + j, other);
      }
      for (int64_t k = 0; k < shared; ++k) {
        LANES_OF(part, row + (own + k) * groups);
        halves[k] = plus(halves[k], times(part, rest));
      }
    }
  return SUM(total);
}

/* The sum of LANES numbers and of their second ones. */
INLINE number joined_lanes(const number *totals, const number *rests) {
  number total = 0, rest = 0;
  for (int l = 0; l < LANES; ++l) increase_by_product(&total, &rest, (twofold){1, 0}, totals[l]), rest += rests[l];
  return total + rest;
}

/* The same as shared_squares of rows in twice the digits. */
TWOFOLD_CLONES_OF_NUMBERS static number exact_shared_squares(int64_t shared, const number *restrict table, const number *restrict low,
                                                const number *restrict d, number *restrict half) {
  int64_t width = reduced_width(shared);
  number total = 0;
  for (int64_t i = 0; i <= shared; ++i) {
    const number *row = table + i * width, *row_low = low + i * width;
    number sums[LANES] = {0}, rests[LANES] = {0};
    for (int64_t k = i & -LANES; k < width; k += LANES)
      for (int l = 0; l < LANES; ++l) {
        twofold entry = {value_of(row[k + l]), value_of(row_low[k + l])};
        increase_by_product(sums + l, rests + l, entry, d[k + l]);
      }
    number rest = joined_lanes(sums, rests);
    total += rest * rest;
    for (int64_t k = i & -LANES; k < width; ++k) half[k] += row[k] * rest;
  }
  return total;
}

/* The same as group_squares of such rows. */
TWOFOLD_CLONES_OF_NUMBERS static number exact_group_squares(int64_t groups, int64_t own, int64_t shared, const number *restrict table,
                                               const number *restrict d, const number *restrict mine,
                                               number *restrict half, number *restrict mine_half) {
  int64_t columns = own + shared + 1;
  const number *low = table + own * (columns + 1) * groups;
  number total = 0;
  for (int64_t j = 0; j < groups; j += LANES)
    for (int64_t p = 0; p < own; ++p) {
      int64_t first = p * columns * groups + j;
      number sums[LANES] = {0}, rests[LANES] = {0};
      for (int64_t q = p; q < columns; ++q)
        for (int l = 0; l < LANES; ++l) {
          int64_t at = first + q * groups + l;
          twofold entry = {value_of(table[at]), value_of(low[at])};
          increase_by_product(sums + l, rests + l, entry, q < own ? mine[q * groups + j + l] : d[q - own]);
        }
      for (int l = 0; l < LANES; ++l) sums[l] += rests[l], total += sums[l] * sums[l];
      for (int64_t q = p; q < columns - 1; ++q)
        for (int l = 0; l < LANES; ++l) {
          number part = table[first + q * groups + l] * sums[l];
          if (q < own)
            mine_half[q * groups + j + l] += part;
          else
            half[q - own] += part;
        }
    }
  return total;
}

/* Of coefficients of groups there may be many: a multiple of LANES. */
CLONES static number sum_of_squares(int64_t count, const number *restrict x) {
  lanes total = {0}, part;
  for (int64_t k = 0; k < count; k += LANES) {
    LANES_OF(part, x + k);
    total = plus(total, times(part, part));
  }
  return SUM(total);
}

/* y += x b, of as many. */
CLONES static void add_multiple(int64_t count, const number *restrict x, number b, number *restrict y) {
  lanes part, sum;
  for (int64_t k = 0; k < count; k += LANES) {
    LANES_OF(part, x + k);
    LANES_OF(sum, y + k);
    sum = plus(sum, scaled(part, b));
    KEEP(y + k, sum);
  }
}

static void *aligned(ulam_context *ctx, int64_t count) {
  char *found = ulam_alloc(ctx, (count + 1) * (int64_t)sizeof(lanes));
  return found + (-(uintptr_t)found & (sizeof(lanes) - 1));
}

/* Adds how far coefficients are from 0, and from those that fit best, by what columns make of the difference. */
static void add_distances(int64_t count, const number *b, const number *best, const number *squares, double *to_0,
                          double *to_best) {
  for (int64_t k = 0; k < count; ++k) {
    double value = value_of(b[k]), rest = value - value_of(best[k]), square = value_of(squares[k]);
    *to_0 += square * value * value, *to_best += square * rest * rest;
  }
}

/* Loops over few coefficients are quicker as they are. */
#if defined(__GNUC__) && !defined(__clang__)
#define ONE_BY_ONE __attribute__((optimize("no-tree-vectorize", "no-tree-loop-distribute-patterns")))
#else
#define ONE_BY_ONE
#endif

/* `s`, `t`: sizes of the tables; `sums`: the sum of the squares of rows, that of all coefficients. */
ULAM_API ONE_BY_ONE void KERNEL(reduced_squares)(ulam_context *ctx, const number *table, const number *group_table,
                                                 const number *b, const number *mine, int64_t s, int64_t t,
                                                 int64_t shared, int64_t own, int64_t groups,
                                                 number *sums, number *b_half, number *mine_half) {
  sums[0] = sums[1] = 0;
  if (own) dense_zero(mine_half, own * groups);
  if (s == 0) {
    dense_zero(b_half, shared);
    return;
  }
  char *mark = ctx->arena_cursor;
  int64_t width = reduced_width(shared), parts = width / LANES;
  lanes narrow[2 * NARROW / LANES], *d = width <= NARROW ? narrow : aligned(ctx, 2 * parts), *half = d + parts;
  number squares = 0, *each = (number *)d;
  if (has_two_points(s, shared)) {
    int64_t size = reduced_table_size(shared), of_groups = group_table_size(groups, own, shared);
    const number *group_best = group_table + own * (own + shared + 1) * groups;
    double to_0 = 0, to_best = 0;
    add_distances(shared, b, table + (shared + 1) * width, table + 2 * size, &to_0, &to_best);
    add_distances(own * groups, mine, group_best, group_table + 2 * of_groups, &to_0, &to_best);
    if (to_0 < to_best) table += size, group_table += of_groups;
  }
  const number *best = table + (shared + 1) * width;
  for (int64_t k = 0; k < 2 * parts; ++k) d[k] = (lanes){0};
  for (int64_t k = 0; k < shared; ++k) {
    squares += b[k] * b[k];
    each[k] = b[k] - best[k];
  }
  each[shared] = -1;
  if (own) squares += sum_of_squares(own * groups, mine);
  if (is_twofold(s, shared)) {
    number *exact_half = (number *)half;
    sums[0] = exact_shared_squares(shared, table, table + reduced_table_size(shared), each, exact_half);
    if (t) sums[0] += exact_group_squares(groups, own, shared, group_table, each, mine, exact_half, mine_half);
    for (int64_t k = 0; k < shared; ++k) b_half[k] = exact_half[k];
    sums[1] = squares;
    ulam_release(ctx, mark);
    return;
  }
  sums[0] = shared_squares(shared, table, d, half);
  for (int64_t k = 0; k < shared; ++k) b_half[k] = each[width + k];
  if (t) {
    lanes *halves = aligned(ctx, shared);
    memset(halves, 0, (size_t)shared * sizeof *halves);
    sums[0] += group_squares(groups, own, shared, group_table, each, mine, halves, mine_half);
    for (int64_t k = 0; k < shared; ++k) b_half[k] += SUM(halves[k]);
  }
  sums[1] = squares;
  ulam_release(ctx, mark);
}

/* Tables are data. Where a sum is not used, nothing of what it was made of counts, finite or not. */
ULAM_API ONE_BY_ONE void KERNEL(reduced_squares_pullback)(ulam_context *ctx, const number *table, const number *group_table,
                                               const number *b, const number *mine, int64_t s, int64_t t,
                                               int64_t shared, int64_t own, int64_t groups, const number *sums,
                                               const number *b_half, const number *mine_half, number *table_adj,
                                               number *group_adj, number *b_adj, number *mine_adj,
                                               const number *sums_adj, const number *b_half_adj,
                                               const number *mine_half_adj) {
  (void)ctx, (void)table, (void)group_table, (void)s, (void)t, (void)sums;
  (void)table_adj, (void)group_adj, (void)b_half_adj, (void)mine_half_adj;
  if (sums_adj == NULL) return;
  if (sums_adj[0] != 0) {
    number twice = 2 * sums_adj[0];
    for (int64_t k = 0; k < shared && b_adj; ++k) b_adj[k] += twice * b_half[k];
    if (own && mine_adj) add_multiple(own * groups, mine_half, twice, mine_adj);
  }
  if (sums_adj[1] != 0) {
    number twice = 2 * sums_adj[1];
    for (int64_t k = 0; k < shared && b_adj; ++k) b_adj[k] += twice * b[k];
    if (own && mine_adj) add_multiple(own * groups, mine, twice, mine_adj);
  }
}
