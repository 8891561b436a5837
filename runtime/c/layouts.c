/* Layouts of data, computed when data are bound: rows in the order of an index, copies of columns; equal rows are found in
 * equal_rows.c.
 *
 * A column is `x` with strides: element c of row r, of `k` per row, is x[r * row + c * column]. Rows are numbered from 0.
 * All is linear in the number of rows, and nothing relies on what data contain. Row numbers have 32 bits; of more rows
 * nothing is made.
 */
#include <math.h>
#include <string.h>

#include "dense.h"
#include "equal_rows.h"

/* Of each of `g` groups, its first row and the number of its rows; groups are numbered in the order in which they begin. */
ULAM_API void ulam_group_heads(ulam_context *ctx, const int32_t *groups, int64_t n, int64_t g, int32_t *heads,
                               int32_t *counts) {
  (void)ctx;
  memset(counts, 0, (size_t)g * 4);
  int64_t found = 0;
  for (int64_t row = 0; row < n && g; ++row) {
    if (groups[row] == found) heads[found++] = (int32_t)row;
    ++counts[groups[row]];
  }
}

#define NO_PLACE INT32_MIN

/* Of the places of rows, or NO_PLACE: how many different ones there are, one more than the last one, how many rows have
 * one. -1 if there are too many rows, or one has a place below 0 or beyond the number of rows: a table would take more than
 * the data. */
ULAM_API void ulam_count_places(ulam_context *ctx, const int32_t *places, int64_t n, int64_t *figures) {
  int64_t size = 0, found = 0, rows = 0;
  figures[0] = -1, figures[1] = figures[2] = 0;
  if (n > INT32_MAX) return;
  for (int64_t row = 0; row < n; ++row) {
    if (places[row] == NO_PLACE) continue;
    if (places[row] < 0 || places[row] >= n) return;
    if (places[row] >= size) size = places[row] + 1;
    ++rows;
  }
  char *mark = ctx->arena_cursor;
  char *seen = ulam_alloc(ctx, size);
  memset(seen, 0, (size_t)size);
  for (int64_t row = 0; row < n; ++row)
    if (places[row] != NO_PLACE) found += !seen[places[row]], seen[places[row]] = 1;
  ulam_release(ctx, mark);
  figures[0] = found, figures[1] = size, figures[2] = rows;
}

/* Of each of `g` different places below `size`, in their order, its first row and the number of its rows; none if `g` is
 * 0. */
ULAM_API void ulam_place_heads(ulam_context *ctx, const int32_t *places, int64_t n, int64_t size, int64_t g,
                               int32_t *heads, int32_t *counts) {
  if (!g) return;
  char *mark = ctx->arena_cursor;
  int32_t *first = ulam_alloc(ctx, size * 8), *rows = first + size;
  int64_t found = 0;
  memset(rows, 0, (size_t)size * 4);
  for (int64_t row = 0; row < n; ++row)
    if (places[row] != NO_PLACE && !rows[places[row]]++) first[places[row]] = (int32_t)row;
  for (int64_t place = 0; place < size; ++place)
    if (rows[place]) heads[found] = first[place], counts[found++] = rows[place];
  ulam_release(ctx, mark);
}

enum { SOURCE_ROWS = 1 << 14, MOST_PARTS = 1 << 11 };

/* The parts of an order in which rows ascend: how many, and where each ends; 0 if there are too many, or the data are
 * small enough to be read in any order. */
static int64_t ascending_parts(const int32_t *order, int64_t n, int64_t *ends) {
  int64_t parts = 0;
  if (n < SOURCE_ROWS) return 0;
  for (int64_t i = 1; i < n; ++i) {
    if (order[i] >= order[i - 1]) continue;
    if (parts == MOST_PARTS - 1) return 0;
    ends[parts++] = i;
  }
  ends[parts++] = n;
  return parts;
}

/* Rows in an order. Each ascending part goes through all of the data: the parts take turns, with the same rows. */
#define TAKE(name, kind)                                                                                             \
  ULAM_API void name(ulam_context *ctx, const kind *x, const int32_t *order, int64_t n, int64_t k, int64_t row,      \
                     int64_t column, int64_t t, kind *out) {                                                         \
    (void)t;                                                                                                         \
    char *mark = ctx->arena_cursor;                                                                                  \
    int64_t *ends = ulam_alloc(ctx, 2 * MOST_PARTS * 8), *next = ends + MOST_PARTS;                                  \
    int64_t parts = ascending_parts(order, n, ends);                                                                 \
    for (int64_t c = 0; c < k; ++c) {                                                                                \
      const kind *from = x + c * column;                                                                             \
      kind *to = out + c * n;                                                                                        \
      int64_t left = n;                                                                                              \
      for (int64_t p = 0; p < parts; ++p) next[p] = p ? ends[p - 1] : 0;                                             \
      for (int64_t end = SOURCE_ROWS; parts && left; end += SOURCE_ROWS)                                             \
        for (int64_t p = 0; p < parts; ++p) {                                                                        \
          int64_t i = next[p];                                                                                       \
          for (; i < ends[p] && order[i] < end; ++i) to[i] = from[order[i] * row];                                   \
          left -= i - next[p], next[p] = i;                                                                          \
        }                                                                                                            \
      for (int64_t i = 0; i < n && !parts; ++i) to[i] = from[order[i] * row];                                        \
    }                                                                                                                \
    ulam_release(ctx, mark);                                                                                         \
  }

/* Rows of a column of `t` elements in an order: out[c * n + i] is element c of row order[i]. */
TAKE(ulam_take_reals, double)
TAKE(ulam_take_ints, int32_t)

/* ---------------------------------------------------------------- segments of rows that scatter to the same elements */

/* What an addition costs is 1, in a block where others are summed 2; what a row takes if its addition waits for the one
 * before, and a run. */
enum { BLOCK = 64, LEAST_ROWS = 4, BESIDE_SUMS = 2, LATENCY = 7, RUN_COST = 4 };
static const double SUM_COST = 0.7, WORTH = 1.05;

/* How many rows of so many additions are on their way at once: a processor has room for instructions, not for rows. Only
 * among these is one for which another element is added to not held up. */
static int64_t rows_on_their_way(double additions) {
  double found = 96 / (1 + 2 * additions);
  return found > 2 ? (int64_t)found : 2;
}

/* How many rows wait: of `together` that follow, the longest run that adds to one element. */
static int64_t rows_that_wait(const int32_t *keys, int64_t n, int64_t k, int64_t together) {
  int64_t found = 0;
  for (int64_t first = 0; first < n; first += together) {
    int64_t longest = 0;
    for (int64_t q = 0; q < k; ++q) {
      const int32_t *key = keys + q * n;
      int64_t run = 0;
      for (int64_t row = first + 1; row < n && row < first + together; ++row) {
        run = key[row] == key[row - 1] ? run + 1 : 0;
        longest = run > longest ? run : longest;
      }
    }
    found += longest;
  }
  return found;
}

/* Splits groups of rows further by a key. */
static int64_t group_by_key(ulam_context *ctx, const int32_t *key, int64_t n, const int32_t *before, int64_t known,
                            int32_t *groups) {
  return ulam_group_columns(ctx, (key_column){key, 1, 0, before}, n, 1, 0, known, n / LEAST_ROWS, groups);
}

enum { STREAMS = 1 << 13 };

/* Rows in the order of their groups, which are numbered as they begin; whether that is the order that they have. Those
 * of group g come to be from starts[g] on. Of `groups` nothing is left. */
static int order_by_groups(ulam_context *ctx, int32_t *groups, int64_t n, int64_t count, int32_t *order,
                           int32_t *starts) {
  int64_t sorted = 1;
  memset(starts, 0, (size_t)(count + 1) * 4);
  for (int64_t row = 0; row < n; ++row) {
    ++starts[groups[row] + 1];
    sorted &= row == 0 || groups[row - 1] <= groups[row];
  }
  for (int64_t g = 0; g < count; ++g) starts[g + 1] += starts[g];
  if (sorted) {
    for (int64_t row = 0; row < n; ++row) order[row] = (int32_t)row;
    return 1;
  }
  char *mark = ctx->arena_cursor;
  int32_t *next = ulam_alloc(ctx, count * 4);
  memcpy(next, starts, (size_t)count * 4);
  if (count <= STREAMS) {
    for (int64_t row = 0; row < n; ++row) order[next[groups[row]]++] = (int32_t)row;
  } else { /* more places than caches have: first by several groups together */
    int32_t ahead[STREAMS + 1], *other = ulam_alloc(ctx, n * 4);
    int shift = 0;
    while (count >> shift > STREAMS) ++shift;
    for (int64_t g = 0; g < count; g += (int64_t)1 << shift) ahead[g >> shift] = starts[g];
    for (int64_t row = 0; row < n; ++row) {
      int32_t place = ahead[groups[row] >> shift]++;
      order[place] = (int32_t)row, other[place] = groups[row];
    }
    for (int64_t i = 0; i < n; ++i) groups[next[other[i]]++] = order[i];
    memcpy(order, groups, (size_t)n * 4);
  }
  ulam_release(ctx, mark);
  return 0;
}

/* The runs of rows in the order of groups, and the first of each block, as below; the length of the longest group. */
static int64_t write_runs(const int32_t *starts, int64_t n, int64_t count, int64_t b, int32_t *runs, int64_t *first) {
  int64_t made = 0, longest = 0;
  for (int64_t g = 0; g < count; ++g) {
    int64_t end = starts[g + 1];
    longest = end - starts[g] > longest ? end - starts[g] : longest;
    for (int64_t row = starts[g]; row < end; row = (row / BLOCK + 1) * BLOCK) {
      if (row % BLOCK == 0) first[row / BLOCK] = made;
      runs[made++] = (int32_t)row;
    }
  }
  runs[made] = (int32_t)n;
  first[b - 1] = made;
  return longest;
}

/* Chooses an order of rows of which each adds to elements of buffers: `keys[q * n + row]` says to which, `uses[q]` how many
 * additions there are by key q, `work` what a row costs without them. In the order, rows that are equal in all keys
 * (outcome 1) or in key q (outcome 2 + q) are side by side: then one sum for each of their runs is added. 0: hardly
 * anything would be gained, and nothing changes.
 *
 * Runs end with blocks of 64 rows: those of block i are first[i] to first[i + 1] - 1, and run j has the rows runs[j] to
 * runs[j + 1] - 1. There is room for r - 1 runs, n / 4 + n / 64 + 1 at most, and b - 1 blocks. `figures`: the outcome,
 * whether rows had that order already, segments, the longest. The cost model counts in additions to memory. */
ULAM_API void ulam_segment_rows(ulam_context *ctx, const int32_t *keys, int64_t n, int64_t k, const int32_t *uses,
                                int64_t work, int64_t r, int64_t b, int32_t *order, int32_t *runs, int64_t *first,
                                int64_t *figures) {
  memset(runs, 0, (size_t)r * 4);
  memset(first, 0, (size_t)b * 8);
  memset(figures, 0, 4 * 8);
  if (n > INT32_MAX) return;
  char *mark = ctx->arena_cursor;
  int32_t *memory = ulam_alloc(ctx, n * 4), *best = memory, *groups = order; /* which is written when all is known */
  double all = 0, blocks = (double)(b - 1), rows = (double)n;
  for (int64_t q = 0; q < k; ++q) all += uses[q];
  double adding = fmax(all * rows, LATENCY * (double)rows_that_wait(keys, n, k, rows_on_their_way(all)));
  double least = (rows * (double)work + adding) / WORTH - rows * (double)work;
  int64_t known = n && least > SUM_COST * all * rows ? 1 : -1, count = 0;
  for (int64_t q = 0; q < k; ++q) known = group_by_key(ctx, keys + q * n, n, q ? best : NULL, known, best);
  if (known >= 0) {
    double cost = ((double)known + blocks) * (RUN_COST + all) + SUM_COST * all * rows;
    if (cost < least) least = cost, count = known, figures[0] = 1;
  }
  for (int64_t q = 0; k > 1 && q < k; ++q) {
    double by_others = (BESIDE_SUMS * (all - uses[q]) + SUM_COST * uses[q]) * rows;
    if (by_others >= least) continue;
    int64_t own = group_by_key(ctx, keys + q * n, n, NULL, n ? 1 : -1, groups);
    double cost = ((double)own + blocks) * (RUN_COST + uses[q]) + by_others;
    if (own < 0 || cost >= least) continue;
    least = cost, count = own, figures[0] = 2 + q;
    int32_t *other = best;
    best = groups, groups = other;
  }
  if (figures[0]) {
    int32_t *starts = ulam_alloc(ctx, (count + 1) * 4);
    if (best == order) memcpy(memory, order, (size_t)n * 4);
    figures[1] = order_by_groups(ctx, memory, n, count, order, starts);
    figures[2] = count;
    figures[3] = write_runs(starts, n, count, b, runs, first);
  } else {
    for (int64_t row = 0; row < n; ++row) order[row] = (int32_t)row;
  }
  ulam_release(ctx, mark);
}
