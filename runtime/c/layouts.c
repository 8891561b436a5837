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
  int64_t row;
  int wide; /* elements of 8 bytes, else of 4 */
  const int32_t *before; /* the groups by the columns that came before; NULL: all rows are in one */
} key_column;

static inline uint64_t element(const key_column *key, int64_t row) {
  if (key->wide) {
    uint64_t bits;
    memcpy(&bits, (const char *)key->x + 8 * row * key->row, sizeof bits);
    return bits;
  }
  uint32_t bits;
  memcpy(&bits, (const char *)key->x + 4 * row * key->row, sizeof bits);
  return bits;
}

static inline uint64_t mixed(uint64_t x) { /* SplitMix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* Small numbers of both kinds, whatever their differences, are apart before they are mixed. */
static inline uint64_t hash_of(uint64_t value, int32_t before) {
  return mixed(value + 0xd1b54a32d192ed03u * (uint64_t)(uint32_t)before);
}

/* Groups that were found, by an open hash table. Large ones are in no cache: an entry has all that is compared, and
 * those of a batch of rows are asked for before the first is looked at. */
typedef struct {
  uint64_t value;
  int32_t before, number; /* from 1; 0: there is none */
} group_entry;

typedef struct {
  group_entry *entries;
  int64_t size, found;
} group_table;

enum { FIRST_SIZE = 256, BATCH = 32, SAMPLED_FROM = 1 << 14, PAIRS = 256, MOST_DIRECT = 1 << 14 };

static void make_table(ulam_context *ctx, group_table *table, int64_t groups) {
  int64_t size = 4 * (groups + BATCH) / 3 + 1;
  table->size = size < FIRST_SIZE ? FIRST_SIZE : size;
  table->entries = ulam_alloc(ctx, table->size * (int64_t)sizeof(group_entry));
  memset(table->entries, 0, (size_t)table->size * sizeof(group_entry));
}

/* Where a key is looked for first. */
static inline group_entry *first_entry(const group_table *table, uint64_t hash) {
  __extension__ typedef unsigned __int128 wide;
  return &table->entries[(uint64_t)((wide)hash * (uint64_t)table->size >> 64)];
}

/* The entry of a key, or the one that is free for it. */
static inline group_entry *entry_of(const group_table *table, uint64_t hash, uint64_t value, int32_t before) {
  group_entry *entry = first_entry(table, hash), *end = table->entries + table->size;
  while (entry->number && (entry->value != value || entry->before != before))
    if (++entry == end) entry = table->entries;
  return entry;
}

static void grow_table(ulam_context *ctx, group_table *table) {
  group_table old = *table;
  make_table(ctx, table, old.size / 2 * 3); /* to twice the size */
  for (const group_entry *entry = old.entries; entry < old.entries + old.size; ++entry)
    if (entry->number) *entry_of(table, hash_of(entry->value, entry->before), entry->value, entry->before) = *entry;
}

static inline int32_t before_of(const key_column *key, int64_t row) { return key->before ? key->before[row] : 0; }

/* How many groups a sample of rows makes likely; -1 if it has far fewer equal rows than it would have if each row came
 * twice: of m rows out of n, each of which is there twice, m^2 / n pairs are equal on average, here PAIRS; unequal
 * numbers of copies give more. */
static int64_t likely_groups(ulam_context *ctx, const key_column *key, int64_t n) {
  if (n < SAMPLED_FROM) return 0;
  char *mark = ctx->arena_cursor;
  int64_t sampled = (int64_t)(sqrt((double)n) * sqrt((double)PAIRS)), pairs = 0;
  int32_t *heads = ulam_alloc(ctx, sampled * 4);
  group_table table = {.found = 0};
  make_table(ctx, &table, sampled);
  for (int64_t i = 0; i < sampled; ++i) {
    int64_t row = (int64_t)(mixed((uint64_t)i) % (uint64_t)n);
    uint64_t value = element(key, row);
    int32_t before = before_of(key, row);
    group_entry *entry = entry_of(&table, hash_of(value, before), value, before);
    if (entry->number) {
      pairs += heads[entry->number - 1] != row;
      continue;
    }
    heads[table.found++] = (int32_t)row;
    *entry = (group_entry){value, before, (int32_t)table.found};
  }
  ulam_release(ctx, mark);
  if (pairs < PAIRS / 2) return -1;
  if (pairs > table.found) return table.found;
  return (int64_t)(1.125 * (double)n * (PAIRS / 2) / (double)pairs); /* a table that is too small is made twice */
}

/* Numbers of a small range are found in a table of all pairs of a group before and a number. */
typedef struct {
  int64_t least, range, entries; /* 0 entries: there are too many pairs */
} pair_table;

/* Of the numbers that rows have, if the table takes no more than `most` bytes; numbers of 8 bytes have none. */
static pair_table pairs_of(const key_column *key, int64_t n, int64_t known, int64_t most) {
  int32_t least = INT32_MAX, greatest = INT32_MIN;
  if (key->wide || n == 0) return (pair_table){0, 0, 0};
  for (int64_t row = 0; row < n; ++row) {
    int32_t value = (int32_t)(uint32_t)element(key, row);
    least = value < least ? value : least;
    greatest = value > greatest ? value : greatest;
  }
  pair_table table = {least, (int64_t)greatest - least + 1, 0};
  if (table.range <= most / 4 / known) table.entries = table.range * known;
  return table;
}

static int64_t group_by_pairs(ulam_context *ctx, const key_column *key, pair_table table, int64_t n, int64_t most,
                              int32_t *groups) {
  char *mark = ctx->arena_cursor;
  int64_t found = 0;
  int32_t *numbers = ulam_alloc(ctx, table.entries * 4);
  memset(numbers, 0, (size_t)table.entries * 4);
  for (int64_t first = 0; first < n && found <= most; first += BATCH)
    for (int64_t row = first; row < n && row < first + BATCH; ++row) {
      int64_t value = (int32_t)(uint32_t)element(key, row);
      int32_t *number = &numbers[before_of(key, row) * table.range + value - table.least];
      if (*number == 0) *number = (int32_t)++found;
      groups[row] = *number - 1;
    }
  ulam_release(ctx, mark);
  return found <= most ? found : -1;
}

/* Whether a column is the same in all rows of each of the `known` groups before: mostly a look at a few rows tells. */
static int is_same_within(ulam_context *ctx, const key_column *key, int64_t n, int64_t known) {
  if (key->before == NULL || n < SAMPLED_FROM) return 0;
  char *mark = ctx->arena_cursor;
  int64_t found = 0, row = 0;
  uint64_t *values = ulam_alloc(ctx, known * 8);
  for (; row < n; ++row) {
    int32_t group = key->before[row];
    if (group == found) /* groups are numbered as they begin */
      values[found++] = element(key, row);
    else if (values[group] != element(key, row))
      break;
  }
  ulam_release(ctx, mark);
  return row == n;
}

/* Splits `known` groups further by a column; `groups` may be those before. How many there are; -1 if they are too many. */
static int64_t group_column(ulam_context *ctx, const key_column *key, int64_t n, int64_t known, int64_t most,
                            int32_t *groups) {
  char *mark = ctx->arena_cursor;
  if (known <= most && is_same_within(ctx, key, n, known)) {
    if (groups != key->before) memcpy(groups, key->before, (size_t)n * 4);
    return known;
  }
  int64_t likely = likely_groups(ctx, key, n);
  if (likely < 0 || likely / 3 > most / 2) return -1; /* a sample of a hundred pairs errs by a tenth */
  int64_t expected = likely < most ? likely : most;
  int64_t bytes = (n < SAMPLED_FROM ? n : expected) * (int64_t)sizeof(group_entry);
  pair_table pairs = pairs_of(key, n, known, bytes + MOST_DIRECT);
  if (pairs.entries) return group_by_pairs(ctx, key, pairs, n, most, groups);
  group_table table = {.found = 0};
  make_table(ctx, &table, expected);
  uint64_t values[BATCH], hashes[BATCH];
  for (int64_t first = 0; first < n && table.found <= most; first += BATCH) {
    int64_t count = n - first < BATCH ? n - first : BATCH;
    while (4 * (table.found + BATCH) > 3 * table.size) grow_table(ctx, &table);
    for (int64_t i = 0; i < count; ++i) {
      values[i] = element(key, first + i);
      hashes[i] = hash_of(values[i], before_of(key, first + i));
      __builtin_prefetch(first_entry(&table, hashes[i]));
    }
    for (int64_t i = 0; i < count; ++i) {
      int32_t before = before_of(key, first + i);
      group_entry *entry = entry_of(&table, hashes[i], values[i], before);
      if (entry->number == 0) *entry = (group_entry){values[i], before, (int32_t)++table.found};
      groups[first + i] = entry->number - 1;
    }
  }
  ulam_release(ctx, mark);
  return table.found <= most ? table.found : -1;
}

/* By a column of k elements per row, one after the other. */
static void group_rows(ulam_context *ctx, key_column key, int64_t n, int64_t k, int64_t column, int64_t known,
                       int64_t most, int32_t *groups, int64_t *count) {
  *count = n > INT32_MAX ? -1 : known;
  if (n > INT32_MAX) return;
  if (*count >= 0 && k == 0) memcpy(groups, key.before, (size_t)n * 4);
  for (int64_t c = 0; c < k && *count >= 0; ++c) {
    *count = group_column(ctx, &key, n, *count, most, groups);
    key.x = (const char *)key.x + column * (key.wide ? 8 : 4);
    key.before = groups;
  }
  if (*count < 0) memset(groups, 0, (size_t)n * 4);
}

/* Splits groups of rows further by a column: `before` are the groups so far, `known` their number (all rows in group 0
 * and 1 to begin with; below 0 there are none, and nothing is done). `groups` are then numbered in the order in which
 * they begin. `count`: how many; -1 if there are surely more than `most`, or so many that they are not worth counting. */
ULAM_API void ulam_group_reals(ulam_context *ctx, const double *x, int64_t n, int64_t k, int64_t row, int64_t column,
                               const int32_t *before, int64_t known, int64_t most, int32_t *groups, int64_t *count) {
  group_rows(ctx, (key_column){x, row, 1, before}, n, k, column, known, most, groups, count);
}

ULAM_API void ulam_group_ints(ulam_context *ctx, const int32_t *x, int64_t n, int64_t k, int64_t row, int64_t column,
                              const int32_t *before, int64_t known, int64_t most, int32_t *groups, int64_t *count) {
  group_rows(ctx, (key_column){x, row, 0, before}, n, k, column, known, most, groups, count);
}

/* Of each of `g` groups, its first row and the number of its rows; groups are numbered in the order in which they begin. */
ULAM_API void ulam_group_heads(ulam_context *ctx, const int32_t *groups, int64_t n, int64_t g, int32_t *heads,
                               double *weights) {
  (void)ctx;
  memset(weights, 0, (size_t)g * 8);
  int64_t found = 0;
  for (int64_t row = 0; row < n && g; ++row) {
    if (groups[row] == found) heads[found++] = (int32_t)row;
    weights[groups[row]] += 1;
  }
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

enum { BLOCK = 256, RUN_COST = 4, LEAST_ROWS = 4 };
static const double SUM_COST = 0.35, WORTH = 0.8;

/* Splits groups of rows further by a key, as `group_rows`. */
static int64_t group_by_key(ulam_context *ctx, const int32_t *key, int64_t n, const int32_t *before, int64_t known,
                            int32_t *groups) {
  key_column column = {key, 1, 0, before};
  return known < 0 ? -1 : group_column(ctx, &column, n, known, n / LEAST_ROWS, groups);
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
 * additions there are by key q. In the order, rows that are equal in all keys (outcome 1) or in key q (outcome 2 + q) are
 * side by side: then one sum for each of their runs is added. 0: there are too few such rows, and nothing changes.
 *
 * Runs end with blocks of 256 rows: those of block i are first[i] to first[i + 1] - 1, and run j has the rows runs[j] to
 * runs[j + 1] - 1. There is room for r - 1 runs, n / 4 + n / 256 + 1 at most, and b - 1 blocks. `figures`: the outcome,
 * whether rows had that order already, segments, the longest. The cost model counts in additions to memory. */
ULAM_API void ulam_segment_rows(ulam_context *ctx, const int32_t *keys, int64_t n, int64_t k, const int32_t *uses,
                                int64_t r, int64_t b, int32_t *order, int32_t *runs, int64_t *first,
                                int64_t *figures) {
  memset(runs, 0, (size_t)r * 4);
  memset(first, 0, (size_t)b * 8);
  memset(figures, 0, 4 * 8);
  if (n > INT32_MAX) return;
  char *mark = ctx->arena_cursor;
  int32_t *memory = ulam_alloc(ctx, n * 4), *best = memory, *groups = order; /* which is written when all is known */
  double all = 0, blocks = (double)(b - 1);
  for (int64_t q = 0; q < k; ++q) all += uses[q];
  double least = WORTH * all * (double)n;
  int64_t known = n ? 1 : -1, count = 0;
  for (int64_t q = 0; q < k; ++q) known = group_by_key(ctx, keys + q * n, n, q ? best : NULL, known, best);
  if (known >= 0) {
    double cost = ((double)known + blocks) * (RUN_COST + all) + SUM_COST * all * (double)n;
    if (cost < least) least = cost, count = known, figures[0] = 1;
  }
  for (int64_t q = 0; k > 1 && q < k; ++q) {
    double by_others = (all - uses[q] + SUM_COST * uses[q]) * (double)n;
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
