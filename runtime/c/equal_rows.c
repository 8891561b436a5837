/* Which rows of data are equal, found when data are bound. See layouts.c for what a column is. Values are compared by
 * their bits: 0 and -0 differ, a NaN is equal to itself.
 *
 * Small ranges of ints, and few numbers of any kind, have a table. Else there is a hash table; if that were larger than caches, rows are first put into
 * parts by a hash of what they have, so that each part has a small one: what a row costs then hardly grows.
 */
#include <math.h>
#include <string.h>

#include "dense.h"
#include "equal_rows.h"

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

/* Numbers whose upper bits are apart if they are. */
static inline uint64_t mixed_high(uint64_t x) { return (x ^ x >> 32) * 0x9e3779b97f4a7c15u; }

/* Small numbers of both kinds, whatever their differences, are apart before they are mixed. */
static inline uint64_t hash_of(uint64_t value, int32_t before) {
  return mixed(value + 0xd1b54a32d192ed03u * (uint64_t)(uint32_t)before);
}

/* Groups that were found, by an open hash table. */
typedef struct {
  uint64_t value;
  int32_t before, number; /* from 1; 0: there is none */
} group_entry;

typedef struct {
  group_entry *entries;
  int64_t size, found;
} group_table;

enum { FIRST_SIZE = 256, BATCH = 32, SAMPLED_FROM = 1 << 14, PAIRS = 256, MOST_DIRECT = 1 << 14 };
enum { CODE_BITS = 8, CODES = 1 << CODE_BITS, MOST_CODES = 64 }; /* of few different numbers, and room for them */
enum { IN_CACHE = 1 << 13, MOST_BITS = 11 }; /* groups of a table that caches hold; so many parts are written at once */

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

/* The number of a key's group, from 0. */
static inline int32_t number_of(ulam_context *ctx, group_table *table, uint64_t value, int32_t before) {
  group_entry *entry = entry_of(table, hash_of(value, before), value, before);
  if (entry->number) return entry->number - 1;
  *entry = (group_entry){value, before, (int32_t)++table->found};
  int32_t number = entry->number - 1;
  if (4 * (table->found + 1) > 3 * table->size) grow_table(ctx, table);
  return number;
}

static inline int32_t before_of(const key_column *key, int64_t row) { return key->before ? key->before[row] : 0; }

/* Some rows, each with a hash of what it has. */
typedef struct {
  int64_t size;
  int32_t *rows;
  uint64_t *hashes;
} row_sample;

/* So many that of m of n rows, each of which is there twice, m^2 / (2 n) = PAIRS / 2 pairs are equal on average. */
static row_sample sample_of(ulam_context *ctx, int64_t n) {
  row_sample sample = {(int64_t)(sqrt((double)n) * sqrt((double)PAIRS)), NULL, NULL};
  sample.rows = ulam_alloc(ctx, sample.size * 4), sample.hashes = ulam_alloc(ctx, sample.size * 8);
  for (int64_t i = 0; i < sample.size; ++i) sample.rows[i] = (int32_t)(mixed((uint64_t)i) % (uint64_t)n);
  return sample;
}

/* How many groups all rows have, likely; -1 if surely more than half as many as rows. Rows of groups that are drawn once
 * stand for as many of all rows, `light`; if each of these groups has g of them, light / (g - 1) is on average
 * once^2 / (2 twice), as in Chao's estimator of the number of classes (Scandinavian Journal of Statistics 11, 1984), so
 * that a few large groups beside many single rows do not pass for many equal rows. */
static int64_t groups_by_sample(ulam_context *ctx, const row_sample *sample, int64_t n) {
  int32_t *heads = ulam_alloc(ctx, sample->size * 4), *others = ulam_alloc(ctx, sample->size * 4);
  group_table table = {.found = 0};
  make_table(ctx, &table, sample->size);
  for (int64_t i = 0; i < sample->size; ++i) {
    group_entry *entry = entry_of(&table, sample->hashes[i], sample->hashes[i], 0);
    if (entry->number) {
      others[entry->number - 1] += heads[entry->number - 1] != sample->rows[i];
      continue;
    }
    heads[table.found] = sample->rows[i], others[table.found++] = 0;
    *entry = (group_entry){sample->hashes[i], 0, (int32_t)table.found};
  }
  double once = 0, twice = 0;
  for (int64_t g = 0; g < table.found; ++g) once += others[g] == 0, twice += others[g] == 1;
  double light = (double)n * once / (double)sample->size;
  double unseen = light * once * once / (once * once + 2 * twice * light + 1);
  double likely = (double)table.found + unseen;
  return likely > 0.5625 * (double)n ? -1 : (int64_t)(1.125 * likely); /* a sample of a hundred pairs errs by a tenth */
}

/* By a column; 0 if there are so few rows that all may be looked at. */
static int64_t likely_groups(ulam_context *ctx, const key_column *key, int64_t n) {
  if (n < SAMPLED_FROM) return 0;
  char *mark = ctx->arena_cursor;
  row_sample sample = sample_of(ctx, n);
  for (int64_t i = 0; i < sample.size; ++i)
    sample.hashes[i] = hash_of(element(key, sample.rows[i]), before_of(key, sample.rows[i]));
  int64_t likely = groups_by_sample(ctx, &sample, n);
  ulam_release(ctx, mark);
  return likely;
}

/* Whether a sample of rows leaves it open that many are equal, as 1, else -1: `known` of the functions below. */
ULAM_API void ulam_sample_reals(ulam_context *ctx, const double *x, int64_t n, int64_t k, int64_t row, int64_t column,
                                int64_t *known) {
  *known = 1;
  if (n < SAMPLED_FROM || n > INT32_MAX || k == 0) return;
  char *mark = ctx->arena_cursor;
  row_sample sample = sample_of(ctx, n);
  for (int64_t i = 0; i < sample.size; ++i) {
    uint64_t hash = 0;
    for (int64_t c = 0; c < k; ++c) {
      key_column key = {x + c * column, row, 1, NULL};
      hash = mixed(3 * hash + element(&key, sample.rows[i]));
    }
    sample.hashes[i] = hash;
  }
  if (groups_by_sample(ctx, &sample, n) < 0) *known = -1;
  ulam_release(ctx, mark);
}

/* Codes of a column that has few different numbers of 8 bytes: of each row, from 0 on; NULL if they are too many, which
 * mostly the first rows tell. */
typedef struct {
  int64_t range;
  uint8_t *of_rows;
} value_codes;

static value_codes codes_of(ulam_context *ctx, const key_column *key, int64_t n) {
  value_codes codes = {0, ulam_alloc(ctx, n)};
  uint64_t values[CODES];
  uint8_t numbers[CODES] = {0}; /* from 1; 0: there is none */
  for (int64_t row = 0; row < n; ++row) {
    uint64_t value = element(key, row), at = mixed_high(value) >> (64 - CODE_BITS);
    while (numbers[at] && values[at] != value) at = (at + 1) % CODES;
    if (!numbers[at]) {
      if (codes.range == MOST_CODES) return (value_codes){0, NULL};
      values[at] = value, numbers[at] = (uint8_t)++codes.range;
    }
    codes.of_rows[row] = (uint8_t)(numbers[at] - 1);
  }
  return codes;
}

/* Numbers of a small range are found in a table of all pairs of a group before and a number. */
typedef struct {
  int64_t least, range;
  const uint8_t *codes; /* instead of numbers; NULL: they are less the least one */
} pair_table;

/* Of the numbers that rows have; of range 0 if there are too many. */
static pair_table pairs_of(ulam_context *ctx, const key_column *key, int64_t n) {
  int32_t least = INT32_MAX, greatest = INT32_MIN;
  if (key->wide || n == 0) {
    value_codes codes = codes_of(ctx, key, n);
    return (pair_table){0, codes.range, codes.of_rows};
  }
  for (int64_t row = 0; row < n; ++row) {
    int32_t value = (int32_t)(uint32_t)element(key, row);
    least = value < least ? value : least;
    greatest = value > greatest ? value : greatest;
  }
  return (pair_table){least, (int64_t)greatest - least + 1, NULL};
}

/* Whether a table takes no more than `most` bytes. */
static int is_small(pair_table pairs, int64_t known, int64_t most) {
  return pairs.range > 0 && pairs.range <= most / 4 / known;
}

static int64_t group_by_pairs(ulam_context *ctx, const key_column *key, pair_table pairs, int64_t n, int64_t known,
                              int64_t most, int32_t *groups) {
  int64_t found = 0;
  int32_t *numbers = ulam_alloc(ctx, pairs.range * known * 4);
  memset(numbers, 0, (size_t)(pairs.range * known) * 4);
  for (int64_t first = 0; first < n && found <= most; first += BATCH)
    for (int64_t row = first; row < n && row < first + BATCH; ++row) {
      int64_t value = pairs.codes ? pairs.codes[row] : (int32_t)(uint32_t)element(key, row) - pairs.least;
      int32_t *number = &numbers[before_of(key, row) * pairs.range + value];
      if (*number == 0) *number = (int32_t)++found;
      groups[row] = *number - 1;
    }
  return found <= most ? found : -1;
}

/* Whether a column is the same in all rows of each of the `known` groups before: mostly a look at a few rows tells. */
static int is_same_within(ulam_context *ctx, const key_column *key, int64_t n, int64_t known) {
  if (key->before == NULL || n < SAMPLED_FROM) return 0;
  char *mark = ctx->arena_cursor;
  int64_t row = 0;
  uint64_t *values = ulam_alloc(ctx, known * 8);
  char *seen = ulam_alloc(ctx, known);
  memset(seen, 0, (size_t)known);
  for (; row < n; ++row) {
    int32_t group = key->before[row];
    if (!seen[group])
      values[group] = element(key, row), seen[group] = 1;
    else if (values[group] != element(key, row))
      break;
  }
  ulam_release(ctx, mark);
  return row == n;
}

/* With one hash table for all rows. */
static int64_t group_by_hash(ulam_context *ctx, const key_column *key, int64_t n, int64_t expected, int64_t most,
                             int32_t *groups) {
  char *mark = ctx->arena_cursor;
  group_table table = {.found = 0};
  make_table(ctx, &table, expected);
  for (int64_t row = 0; row < n && table.found <= most; ++row)
    groups[row] = number_of(ctx, &table, element(key, row), before_of(key, row));
  ulam_release(ctx, mark);
  return table.found <= most ? table.found : -1;
}

/* Rows in the order of parts: which have the same value and the same group before are in the same one. */
typedef struct {
  int shift;
  int64_t parts, *ends; /* the places of part p end with ends[p] - 1 */
} row_parts;

static inline int64_t part_of(const row_parts *parts, uint64_t value, int32_t before) {
  value += 0xd1b54a32d192ed03u * (uint64_t)(uint32_t)before;
  return (int64_t)(mixed_high(value) >> parts->shift);
}

static row_parts parts_of(ulam_context *ctx, const key_column *key, int64_t n, int64_t expected) {
  int bits = 1;
  while (bits < MOST_BITS && expected >> bits > IN_CACHE / 2) ++bits;
  row_parts parts = {64 - bits, (int64_t)1 << bits, ulam_alloc(ctx, 8 << bits)};
  memset(parts.ends, 0, (size_t)parts.parts * 8);
  for (int64_t row = 0; row < n; ++row) ++parts.ends[part_of(&parts, element(key, row), before_of(key, row))];
  for (int64_t p = 1; p < parts.parts; ++p) parts.ends[p] += parts.ends[p - 1];
  return parts;
}

/* Where the rows of each part begin, in new memory. */
static int64_t *begins_of(ulam_context *ctx, const row_parts *parts) {
  int64_t *begins = ulam_alloc(ctx, parts->parts * 8);
  begins[0] = 0;
  memcpy(begins + 1, parts->ends, (size_t)(parts->parts - 1) * 8);
  return begins;
}

/* What rows have, in the order of parts. */
static void fill_parts(ulam_context *ctx, const key_column *key, const row_parts *parts, int64_t n, void *values,
                       int32_t *befores) {
  int64_t *next = begins_of(ctx, parts);
  for (int64_t row = 0; row < n; ++row) {
    uint64_t value = element(key, row);
    int32_t before = before_of(key, row);
    int64_t place = next[part_of(parts, value, before)]++;
    if (key->wide)
      ((uint64_t *)values)[place] = value;
    else
      ((uint32_t *)values)[place] = (uint32_t)value;
    if (key->before) befores[place] = before;
  }
}

/* With a hash table for each part. What rows have is in the order of parts meanwhile; in the place of the group before
 * comes the number within the part. Groups are numbered part by part, not as they begin. */
static int64_t group_by_parts(ulam_context *ctx, const key_column *key, int64_t n, int64_t expected, int64_t most,
                              int32_t *groups) {
  char *mark = ctx->arena_cursor;
  row_parts parts = parts_of(ctx, key, n, expected);
  void *values = ulam_alloc(ctx, n * (key->wide ? 8 : 4));
  int32_t *numbers = ulam_alloc(ctx, n * 4);
  fill_parts(ctx, key, &parts, n, values, numbers);
  key_column inside = {values, 1, key->wide, key->before ? numbers : NULL};
  int64_t found = 0;
  for (int64_t p = 0; p < parts.parts && found <= most; ++p) {
    char *of_part = ctx->arena_cursor;
    group_table table = {.found = 0};
    make_table(ctx, &table, 2 * (expected >> (64 - parts.shift)));
    for (int64_t i = p ? parts.ends[p - 1] : 0; i < parts.ends[p]; ++i)
      numbers[i] = (int32_t)found + number_of(ctx, &table, element(&inside, i), before_of(&inside, i));
    found += table.found;
    ulam_release(ctx, of_part);
  }
  if (found <= most) {
    int64_t *next = begins_of(ctx, &parts);
    for (int64_t row = 0; row < n; ++row)
      groups[row] = numbers[next[part_of(&parts, element(key, row), before_of(key, row))]++];
  }
  ulam_release(ctx, mark);
  return found <= most ? found : -1;
}

/* Numbers `found` groups as they begin. */
static void number_in_order(ulam_context *ctx, int32_t *groups, int64_t n, int64_t found) {
  char *mark = ctx->arena_cursor;
  int32_t *known = ulam_alloc(ctx, found * 4), seen = 0;
  memset(known, 0, (size_t)found * 4);
  for (int64_t row = 0; row < n; ++row) {
    int32_t *number = &known[groups[row]];
    if (*number == 0) *number = ++seen;
    groups[row] = *number - 1;
  }
  ulam_release(ctx, mark);
}

/* By one column, by whatever is less work. `ordered`: whether the groups before are numbered as they begin, and then the
 * new ones. */
static int64_t group_by_value(ulam_context *ctx, const key_column *key, int64_t n, int64_t known, int64_t most,
                              int32_t *groups, int *ordered) {
  pair_table pairs = pairs_of(ctx, key, n);
  if (is_small(pairs, known, known * (int64_t)sizeof(group_entry) + MOST_DIRECT))
    return group_by_pairs(ctx, key, pairs, n, known, most, groups); /* however many groups there will be */
  int64_t likely = likely_groups(ctx, key, n);
  if (likely < 0 || likely / 5 > most / 4) return -1;
  int64_t expected = likely < most ? likely : most;
  int64_t bytes = (n < SAMPLED_FROM ? n : expected) * (int64_t)sizeof(group_entry);
  if (is_small(pairs, known, bytes + MOST_DIRECT)) return group_by_pairs(ctx, key, pairs, n, known, most, groups);
  *ordered = expected <= IN_CACHE;
  return (*ordered ? group_by_hash : group_by_parts)(ctx, key, n, expected, most, groups);
}

static int64_t group_column(ulam_context *ctx, const key_column *key, int64_t n, int64_t known, int64_t most,
                            int32_t *groups, int *ordered) {
  if (known <= most && is_same_within(ctx, key, n, known)) {
    if (groups != key->before) memcpy(groups, key->before, (size_t)n * 4);
    return known;
  }
  char *mark = ctx->arena_cursor;
  int64_t found = group_by_value(ctx, key, n, known, most, groups, ordered);
  ulam_release(ctx, mark);
  return found;
}

int64_t ulam_group_columns(ulam_context *ctx, key_column key, int64_t n, int64_t k, int64_t column, int64_t known,
                           int64_t most, int32_t *groups) {
  int ordered = 1;
  for (int64_t c = 0; c < k && known >= 0; ++c) {
    known = group_column(ctx, &key, n, known, most, groups, &ordered);
    key.x = (const char *)key.x + column * (key.wide ? 8 : 4);
    key.before = groups;
  }
  if (!ordered && known > 0) number_in_order(ctx, groups, n, known);
  return known;
}

static void group_rows(ulam_context *ctx, key_column key, int64_t n, int64_t k, int64_t column, int64_t known,
                       int64_t most, int32_t *groups, int64_t *count) {
  *count = n > INT32_MAX ? -1 : known;
  if (n > INT32_MAX) return;
  if (*count >= 0 && k == 0) memcpy(groups, key.before, (size_t)n * 4);
  *count = ulam_group_columns(ctx, key, n, k, column, known, most, groups);
  if (*count < 0 && known >= 0) memset(groups, 0, (size_t)n * 4);
}

/* Splits groups of rows further by a column: `before` are the groups so far, `known` their number (all rows in group 0
 * and 1 to begin with; below 0 nothing is done). `groups` are then numbered in the order in which
 * they begin. `count`: how many; -1 if there are surely more than `most`, or so many that they are not worth counting. */
ULAM_API void ulam_group_reals(ulam_context *ctx, const double *x, int64_t n, int64_t k, int64_t row, int64_t column,
                               const int32_t *before, int64_t known, int64_t most, int32_t *groups, int64_t *count) {
  group_rows(ctx, (key_column){x, row, 1, before}, n, k, column, known, most, groups, count);
}

ULAM_API void ulam_group_ints(ulam_context *ctx, const int32_t *x, int64_t n, int64_t k, int64_t row, int64_t column,
                              const int32_t *before, int64_t known, int64_t most, int32_t *groups, int64_t *count) {
  group_rows(ctx, (key_column){x, row, 0, before}, n, k, column, known, most, groups, count);
}

