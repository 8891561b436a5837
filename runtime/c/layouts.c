/* Layouts of data, computed when data are bound: which rows are equal, rows in the order of an index, copies of columns.
 *
 * A column is `x` with strides: element c of row r, of `k` per row, is x[r * row + c * column]. Rows are numbered from 0.
 * Values are compared by their bits: 0 and -0 differ, a NaN is equal to itself. All is linear in the number of rows, and
 * nothing relies on what data contain. Row numbers have 32 bits; of more rows nothing is made.
 */
#include <string.h>

#include "dense.h"

typedef struct {
  const void *x;
  int64_t k, row, column;
  int wide; /* elements of 8 bytes, else of 4 */
  const int32_t *before; /* the groups by the columns that came before */
} key_column;

static inline uint64_t element(const key_column *key, int64_t position) {
  if (key->wide) {
    uint64_t bits;
    memcpy(&bits, (const char *)key->x + 8 * position, sizeof bits);
    return bits;
  }
  uint32_t bits;
  memcpy(&bits, (const char *)key->x + 4 * position, sizeof bits);
  return bits;
}

static inline uint64_t mixed(uint64_t x) { /* SplitMix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static inline uint32_t hash_of(const key_column *key, int64_t row) {
  uint64_t hash = (uint32_t)key->before[row];
  for (int64_t c = 0; c < key->k; ++c) hash = mixed(hash ^ element(key, row * key->row + c * key->column));
  return (uint32_t)mixed(hash);
}

static inline int are_equal(const key_column *key, int64_t first, int64_t second) {
  if (key->before[first] != key->before[second]) return 0;
  for (int64_t c = 0; c < key->k; ++c)
    if (element(key, first * key->row + c * key->column) != element(key, second * key->row + c * key->column)) return 0;
  return 1;
}

/* Groups that were found, by an open hash table: position + 1 of a group, 0 for none. */
typedef struct {
  int32_t *slots, *heads;
  uint32_t *hashes;
  int64_t size, found, room;
} group_table;

static void make_table(ulam_context *ctx, group_table *table, int64_t size) {
  table->size = size;
  table->room = size / 2;
  table->slots = ulam_alloc(ctx, size * 4);
  memset(table->slots, 0, (size_t)size * 4);
  table->heads = ulam_alloc(ctx, table->room * 4);
  table->hashes = ulam_alloc(ctx, table->room * 4);
}

static void grow_table(ulam_context *ctx, group_table *table) {
  group_table old = *table;
  make_table(ctx, table, 4 * old.size);
  memcpy(table->heads, old.heads, (size_t)old.found * 4);
  memcpy(table->hashes, old.hashes, (size_t)old.found * 4);
  for (int64_t g = 0; g < old.found; ++g) {
    uint64_t slot = table->hashes[g] & (uint64_t)(table->size - 1);
    while (table->slots[slot]) slot = (slot + 1) & (uint64_t)(table->size - 1);
    table->slots[slot] = (int32_t)g + 1;
  }
}

/* The group that a row belongs to; a new one with this row as its head if there is none. */
static inline int64_t group_of(ulam_context *ctx, group_table *table, const key_column *key, int64_t row) {
  if (table->found == table->room) grow_table(ctx, table);
  uint32_t hash = hash_of(key, row);
  uint64_t mask = (uint64_t)(table->size - 1), slot = hash & mask;
  for (int32_t entry; (entry = table->slots[slot]) != 0; slot = (slot + 1) & mask)
    if (table->hashes[entry - 1] == hash && are_equal(key, table->heads[entry - 1], row)) return entry - 1;
  table->slots[slot] = (int32_t)++table->found;
  table->heads[table->found - 1] = (int32_t)row;
  table->hashes[table->found - 1] = hash;
  return table->found - 1;
}

enum { FIRST_SIZE = 1024, SAMPLED_FROM = 1 << 14, PAIRS = 256 };

/* Whether a sample of rows has far fewer equal ones than it would have if each row came twice: of m rows out of n, each
 * of which is there twice, m^2 / n pairs are equal on average, here PAIRS; unequal numbers of copies give more. */
static int has_few_repeats(ulam_context *ctx, const key_column *key, int64_t n) {
  if (n < SAMPLED_FROM) return 0;
  char *mark = ctx->arena_cursor;
  int64_t sampled = (int64_t)(sqrt((double)n) * sqrt((double)PAIRS)), pairs = 0;
  group_table table = {.found = 0};
  make_table(ctx, &table, FIRST_SIZE);
  for (int64_t i = 0; i < sampled; ++i) {
    int64_t row = (int64_t)(mixed((uint64_t)i) % (uint64_t)n), known = table.found;
    int64_t group = group_of(ctx, &table, key, row);
    pairs += table.found == known && table.heads[group] != row;
  }
  ulam_release(ctx, mark);
  return pairs < PAIRS / 2;
}

static void group_rows(ulam_context *ctx, const key_column *key, int64_t n, int64_t known, int64_t most, int32_t *groups,
                       int64_t *count) {
  char *mark = ctx->arena_cursor;
  *count = -1;
  if (known < 0 || n > INT32_MAX || has_few_repeats(ctx, key, n)) {
    memset(groups, 0, (size_t)n * 4);
    return;
  }
  group_table table = {.found = 0};
  make_table(ctx, &table, FIRST_SIZE);
  int64_t row = 0;
  for (; row < n && table.found <= most; ++row) groups[row] = (int32_t)group_of(ctx, &table, key, row);
  memset(groups + row, 0, (size_t)(n - row) * 4);
  if (table.found <= most) *count = table.found;
  ulam_release(ctx, mark);
}

/* Splits groups of rows further by a column: `before` are the groups so far, `known` their number (all rows in group 0
 * and 1 to begin with; below 0 there are none, and nothing is done). `groups` are then numbered in the order in which
 * they begin. `count`: how many; -1 if there are surely more than `most`, or so many that they are not worth counting. */
ULAM_API void ulam_group_reals(ulam_context *ctx, const double *x, int64_t n, int64_t k, int64_t row, int64_t column,
                               const int32_t *before, int64_t known, int64_t most, int32_t *groups, int64_t *count) {
  key_column key = {x, k, row, column, 1, before};
  group_rows(ctx, &key, n, known, most, groups, count);
}

ULAM_API void ulam_group_ints(ulam_context *ctx, const int32_t *x, int64_t n, int64_t k, int64_t row, int64_t column,
                              const int32_t *before, int64_t known, int64_t most, int32_t *groups, int64_t *count) {
  key_column key = {x, k, row, column, 0, before};
  group_rows(ctx, &key, n, known, most, groups, count);
}

/* Of each of `g` groups, its first row and the number of its rows. */
ULAM_API void ulam_group_heads(ulam_context *ctx, const int32_t *groups, int64_t n, int64_t g, int32_t *heads,
                               double *weights) {
  (void)ctx;
  memset(heads, 0, (size_t)g * 4);
  memset(weights, 0, (size_t)g * 8);
  for (int64_t row = 0; row < n; ++row) {
    int64_t group = groups[row];
    if (group < g && weights[group]++ == 0) heads[group] = (int32_t)row;
  }
}

/* Rows in the order of an index from 1 to s - 1, equal ones as they were: order[starts[j - 1]] to order[starts[j] - 1]
 * have index j. `figures`: whether that is so, 0 if an index is out of range (then the order is that of the rows, and all
 * segments are empty); whether rows were in this order already; how many segments are not empty; the longest. */
ULAM_API void ulam_order_rows(ulam_context *ctx, const int32_t *index, int64_t n, int64_t s, int32_t *order,
                              int64_t *starts, int64_t *figures) {
  memset(starts, 0, (size_t)s * 8);
  memset(figures, 0, 4 * 8);
  int64_t in_range = n <= INT32_MAX, sorted = 1;
  for (int64_t row = 0; row < n && in_range; ++row) {
    in_range = index[row] >= 1 && index[row] < s;
    if (in_range) ++starts[index[row]];
    sorted &= row == 0 || index[row - 1] <= index[row];
  }
  if (!in_range || sorted)
    for (int64_t row = 0; row < n; ++row) order[row] = (int32_t)row;
  if (!in_range) {
    memset(starts, 0, (size_t)s * 8);
    return;
  }
  int64_t used = 0, longest = 0;
  for (int64_t j = 1; j < s; ++j) {
    used += starts[j] > 0;
    longest = starts[j] > longest ? starts[j] : longest;
    starts[j] += starts[j - 1];
  }
  if (!sorted) {
    char *mark = ctx->arena_cursor;
    int64_t *next = ulam_alloc(ctx, s * 8);
    memcpy(next, starts, (size_t)s * 8);
    for (int64_t row = 0; row < n; ++row) order[next[index[row] - 1]++] = (int32_t)row;
    ulam_release(ctx, mark);
  }
  figures[0] = 1, figures[1] = sorted, figures[2] = used, figures[3] = longest;
}

/* Rows of a column of `t` elements in an order: out[c * n + i] is element c of row order[i]. */
ULAM_API void ulam_take_reals(ulam_context *ctx, const double *x, const int32_t *order, int64_t n, int64_t k, int64_t row,
                              int64_t column, int64_t t, double *out) {
  (void)ctx, (void)t;
  for (int64_t c = 0; c < k; ++c)
    for (int64_t i = 0; i < n; ++i) out[c * n + i] = x[order[i] * row + c * column];
}

ULAM_API void ulam_take_ints(ulam_context *ctx, const int32_t *x, const int32_t *order, int64_t n, int64_t k, int64_t row,
                             int64_t column, int64_t t, int32_t *out) {
  (void)ctx, (void)t;
  for (int64_t c = 0; c < k; ++c)
    for (int64_t i = 0; i < n; ++i) out[c * n + i] = x[order[i] * row + c * column];
}

/* ---------------------------------------------------------------- segments of rows that scatter to the same elements */

enum { BLOCK = 256, RUN_COST = 4, LEAST_ROWS = 4, MOST_DIRECT = 1024 };
static const double SUM_COST = 0.35, WORTH = 0.8;

/* Splits groups of rows further by a key, as `group_rows`: keys of a small range by a table. */
static int64_t group_by_key(ulam_context *ctx, const int32_t *key, int64_t n, const int32_t *before, int64_t known,
                            int32_t *groups) {
  int64_t most = n / LEAST_ROWS, found = 0;
  if (known < 0) return -1;
  int32_t least = INT32_MAX, greatest = INT32_MIN;
  for (int64_t row = 0; row < n; ++row) {
    least = key[row] < least ? key[row] : least;
    greatest = key[row] > greatest ? key[row] : greatest;
  }
  int64_t range = n ? (int64_t)greatest - least + 1 : 0;
  if (range > (n + MOST_DIRECT) / (known ? known : 1)) {
    key_column column = {key, 1, 1, 1, 0, before};
    group_rows(ctx, &column, n, known, most, groups, &found);
    return found;
  }
  char *mark = ctx->arena_cursor;
  int32_t *numbers = ulam_alloc(ctx, range * known * 4);
  memset(numbers, 0, (size_t)(range * known) * 4);
  for (int64_t row = 0; row < n; ++row) {
    int32_t *number = &numbers[before[row] * range + key[row] - least];
    if (*number == 0) *number = (int32_t)++found;
    groups[row] = *number - 1;
  }
  ulam_release(ctx, mark);
  return found <= most ? found : -1;
}

/* Rows in the order of their groups, which are numbered as they begin; whether that is the order that they have. */
static int order_by_groups(ulam_context *ctx, const int32_t *groups, int64_t n, int64_t count, int32_t *order) {
  char *mark = ctx->arena_cursor;
  int64_t *next = ulam_alloc(ctx, (count + 1) * 8);
  int sorted = 1;
  memset(next, 0, (size_t)(count + 1) * 8);
  for (int64_t row = 0; row < n; ++row) ++next[groups[row] + 1];
  for (int64_t g = 0; g < count; ++g) next[g + 1] += next[g];
  for (int64_t row = 0; row < n; ++row) {
    int64_t place = next[groups[row]]++;
    order[place] = (int32_t)row;
    sorted &= place == row;
  }
  ulam_release(ctx, mark);
  return sorted;
}

/* Chooses an order of rows of which each adds to elements of buffers: `keys[q * n + row]` says to which, `uses[q]` how many
 * additions there are by key q. In the order, rows that are equal in all keys (outcome 1) or in key q (outcome 2 + q) are
 * side by side: then one sum for each of their runs is added. 0: there are too few such rows, and nothing changes.
 *
 * Runs end with blocks of 256 rows: those of block i are first[i] to first[i + 1] - 1, and run j has the rows runs[j] to
 * runs[j + 1] - 1. There is room for r - 1 runs, n / 4 + n / 256 + 1 at most, and b - 1 blocks. `figures`: the outcome,
 * whether rows had that order already, segments, the longest. The cost model counts in additions to memory. */
ULAM_API void ulam_segment_rows(ulam_context *ctx, const int32_t *keys, int64_t n, int64_t k, const int32_t *uses,
                                int64_t r, int64_t b, int32_t *order, int32_t *runs, int64_t *first,
                                int64_t *figures) {
  char *mark = ctx->arena_cursor;
  memset(runs, 0, (size_t)r * 4);
  memset(first, 0, (size_t)b * 8);
  memset(figures, 0, 4 * 8);
  int32_t *groups = ulam_alloc(ctx, n * 4), *best = ulam_alloc(ctx, n * 4), *zeros = ulam_alloc(ctx, n * 4);
  memset(zeros, 0, (size_t)n * 4);
  double all = 0, blocks = (double)(b - 1);
  for (int64_t q = 0; q < k; ++q) all += uses[q];
  double least = WORTH * all * (double)n;
  int64_t known = n <= INT32_MAX ? 1 : -1, count = 0;
  const int32_t *before = zeros;
  for (int64_t q = 0; q < k; ++q) {
    known = group_by_key(ctx, keys + q * n, n, before, known, groups);
    if (known < 0) break;
    int32_t *other = before == zeros ? ulam_alloc(ctx, n * 4) : (int32_t *)before;
    before = groups;
    groups = other;
  }
  if (known >= 0 && n > 0) {
    double cost = ((double)known + blocks) * (RUN_COST + all) + SUM_COST * all * (double)n;
    if (cost < least) {
      least = cost, count = known, figures[0] = 1;
      memcpy(best, before, (size_t)n * 4);
    }
  }
  for (int64_t q = 0; k > 1 && q < k; ++q) {
    int64_t own = group_by_key(ctx, keys + q * n, n, zeros, n <= INT32_MAX ? 1 : -1, groups);
    double cost = ((double)own + blocks) * (RUN_COST + uses[q]) + (all - uses[q] + SUM_COST * uses[q]) * (double)n;
    if (own < 0 || n == 0 || cost >= least) continue;
    least = cost, count = own, figures[0] = 2 + q;
    memcpy(best, groups, (size_t)n * 4);
  }
  if (figures[0] == 0) {
    for (int64_t row = 0; row < n; ++row) order[row] = (int32_t)row;
    ulam_release(ctx, mark);
    return;
  }
  figures[1] = order_by_groups(ctx, best, n, count, order);
  figures[2] = count;
  int64_t made = 0, since = 0;
  for (int64_t row = 0; row < n; ++row) {
    int begins = row == 0 || best[order[row]] != best[order[row - 1]];
    if (begins) since = row;
    if (row - since + 1 > figures[3]) figures[3] = row - since + 1;
    if (begins || row % BLOCK == 0) runs[made++] = (int32_t)row;
    if (row % BLOCK == 0) first[row / BLOCK] = made - 1;
  }
  runs[made] = (int32_t)n;
  first[b - 1] = made;
  ulam_release(ctx, mark);
}
