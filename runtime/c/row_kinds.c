/* Rows of normal linear models of several kinds, reduced once, when data are bound.
 *
 * A row is [x | y], of a kind that integers tell, its keys. Rows of one kind have the same coefficients and the same scale:
 * an orthogonal transformation leaves as many rows of each kind as there are columns. Data of rows are added up by kinds,
 * too. Rows come in blocks, the first time to tell the kinds; while these are few beside rows, they are reduced at once,
 * else when they come again. Where numbers in y and x cancel each other, as cancelling.h has it, they come once more: then
 * y is what the coefficients that fit best leave of it. Where that is not enough, rows stay. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cancelling.h"
#include "dense.h"
#include "equal_rows.h"
#include "reduced_rows.h"
#include "reflections.h"

/* Why rows are not reduced; passes/loops/kind_binding.py has the words. */
enum { NOT_FINITE = 1, TOO_MANY_KINDS = 2, TOO_CLOSE = 3 };

enum { FIRST_KINDS = 16 };

/* What is done with rows while they come. */
enum { TELLING = 0, REDUCING = 1, REDUCING_REST = 2, MOST_TURNS = 3 };

/* Of each kind so many rows, if they are reduced while kinds are told: room for kinds is made by doubling it. */
enum { ROWS_OF_FEW_KINDS = 256 };

/* What all kinds cost together, one of them, and each of its numbers; a row besides its numbers: in numbers that a loop
 * over rows reads. */
static const double OF_ALL = 600, OF_KIND = 60, OF_NUMBER = 2.5, OF_ROW = 2;

typedef struct __attribute__((may_alias)) {
  int64_t turns; /* how often rows come, and how many rows the block has: as those of linear_design.c */
  int64_t held;
  int64_t doing, turn, columns, keys, sums, saved, expected, rows, refused;
  int64_t reduces; /* while kinds are told */
  int64_t kinds, capacity, size; /* of the hash table: a power of 2 */
  int64_t *of_kinds;             /* the keys of each */
  int64_t *table;                /* numbers of kinds, from 1; 0: there is none */
  double *triangles, *rounded;   /* of each kind as many rows as columns; what additions have rounded away */
  double *fits;                  /* the coefficients that fit best */
  double *totals, *totals_low;   /* data that are added up */
  double *waiting;               /* of each kind room for LANES rows, and how many it has: they are reflected together */
  int64_t *waiting_rows;
  double *scratch; /* for a block */
} kinds;

_Static_assert(sizeof(kinds) <= 25 * sizeof(int64_t) && offsetof(kinds, held) == sizeof(int64_t) && BLOCK == 64,
               "as library/kernels.py has it");

/* A block of rows: a column of BLOCK for each column, for each key, for each sum. */
typedef struct {
  double *columns;
  const int64_t *keys;
  const double *sums;
} rows_held;

/* Numbers of the reduced rows of a kind. */
static int64_t triangle_of(int64_t columns) { return columns * (columns + 1) / 2; }

static int are_too_many(const kinds *k, double rows) {
  double each = OF_KIND + OF_NUMBER * (double)triangle_of(k->columns);
  return OF_ALL + (double)k->kinds * each > rows * (OF_ROW + (double)k->saved);
}

/* `columns`: those of x; `keys`, `sums`: how many a row has; `expected`: how many rows there are; `saved`: how many entries
 * of a row nothing else needs. */
ULAM_API void ulam_kinds_begin(ulam_context *ctx, int64_t *state, int64_t columns, int64_t keys, int64_t sums,
                               int64_t expected, int64_t saved) {
  kinds k = {.turns = MOST_TURNS, .reduces = 1, .columns = columns + 1, .keys = keys, .sums = sums, .saved = saved, .expected = expected};
  k.kinds = 1;
  if (are_too_many(&k, (double)expected)) k.refused = TOO_MANY_KINDS, k.turns = 0, k.rows = expected;
  k.kinds = 0;
  if (!k.refused) k.scratch = zeros(ctx, BLOCK * k.columns);
  memcpy(state, &k, sizeof k);
}

/* Where a kind is in the table, or the place that is free for it. `by`: the distance of the keys. */
static int64_t *place_of(const kinds *k, const int64_t *keys, int64_t by) {
  uint64_t hash = 0;
  for (int64_t c = 0; c < k->keys; ++c) hash = mixed(3 * hash + (uint64_t)keys[c * by]);
  for (uint64_t at = hash;; ++at) {
    int64_t *place = &k->table[at & (uint64_t)(k->size - 1)];
    if (*place == 0) return place;
    int is_it = 1;
    const int64_t *known = k->of_kinds + (*place - 1) * k->keys;
    for (int64_t c = 0; c < k->keys; ++c) is_it &= known[c] == keys[c * by];
    if (is_it) return place;
  }
}

static double *grown(ulam_context *ctx, const double *before, int64_t count, int64_t capacity) {
  double *found = zeros(ctx, capacity);
  if (count) memcpy(found, before, (size_t)count * sizeof *found);
  return found;
}

/* Makes room for the rows of kinds; those of `n` are there. */
static void grow_rows(ulam_context *ctx, kinds *k, int64_t n, int64_t capacity) {
  int64_t w = k->columns;
  k->triangles = grown(ctx, k->triangles, n * w * w, capacity * w * w);
  k->rounded = grown(ctx, k->rounded, n * w * w, capacity * w * w);
  k->waiting = grown(ctx, k->waiting, n * w * LANES, capacity * w * LANES);
  int64_t *waiting_rows = ulam_alloc(ctx, capacity * 8);
  memset(waiting_rows, 0, (size_t)capacity * sizeof *waiting_rows);
  if (n) memcpy(waiting_rows, k->waiting_rows, (size_t)n * sizeof *waiting_rows);
  k->waiting_rows = waiting_rows;
}

/* Makes room for more kinds, their keys and sums, and for their rows if these are few kinds. */
static void grow(ulam_context *ctx, kinds *k) {
  int64_t n = k->kinds, capacity = n ? 2 * n : FIRST_KINDS;
  if (n > 0 && capacity * ROWS_OF_FEW_KINDS > k->expected) k->reduces = 0;
  if (k->reduces) grow_rows(ctx, k, n, capacity);
  k->totals = grown(ctx, k->totals, n * k->sums, capacity * k->sums);
  k->totals_low = grown(ctx, k->totals_low, n * k->sums, capacity * k->sums);
  int64_t *of_kinds = ulam_alloc(ctx, capacity * k->keys * 8);
  if (n) memcpy(of_kinds, k->of_kinds, (size_t)(n * k->keys) * sizeof *of_kinds);
  k->of_kinds = of_kinds, k->capacity = capacity, k->size = 2 * capacity;
  k->table = ulam_alloc(ctx, k->size * 8);
  memset(k->table, 0, (size_t)k->size * 8);
  for (int64_t i = 0; i < n; ++i) *place_of(k, of_kinds + i * k->keys, 1) = i + 1;
}

/* The number of the kind of a row. */
static int64_t kind_of(ulam_context *ctx, kinds *k, const int64_t *keys) {
  if (k->capacity == 0) grow(ctx, k);
  int64_t *place = place_of(k, keys, BLOCK);
  if (*place) return *place - 1;
  if (k->kinds == k->capacity) grow(ctx, k), place = place_of(k, keys, BLOCK);
  for (int64_t c = 0; c < k->keys; ++c) k->of_kinds[k->kinds * k->keys + c] = keys[c * BLOCK];
  return (*place = ++k->kinds) - 1;
}

/* The numbers of the kinds of the rows of a block; refuses too many kinds. */
static void tell_kinds(ulam_context *ctx, kinds *k, const int64_t *keys, int64_t *numbers) {
  for (int64_t i = 0; i < k->held && !k->refused; ++i) {
    int is_it = i > 0; /* often the one of the row before */
    for (int64_t c = 0; c < k->keys && is_it; ++c) is_it = keys[c * BLOCK + i] == keys[c * BLOCK + i - 1];
    int64_t known = k->kinds;
    numbers[i] = is_it ? numbers[i - 1] : kind_of(ctx, k, keys + i);
    if (k->kinds > known && are_too_many(k, (double)k->expected)) k->refused = TOO_MANY_KINDS;
  }
}

/* y -= x b in all rows of a block, with what is rounded away added to `rest`. */
TWOFOLD_CLONES static void take_away(const double *restrict x, const double *restrict b, double *restrict y,
                                     double *restrict rest) {
  for (int i = 0; i < BLOCK; ++i) increase_by_product(y + i, rest + i, (twofold){-x[i], 0}, b[i]);
}

/* What the coefficients that fit best leave of y in a block. */
static void leave_rest(const kinds *k, rows_held block, const int64_t *numbers) {
  int64_t x = k->columns - 1;
  double *y = block.columns + x * BLOCK, rest[BLOCK] = {0}, b[BLOCK];
  for (int64_t q = 0; q < x; ++q) {
    for (int64_t i = 0; i < BLOCK; ++i) b[i] = i < k->held ? k->fits[numbers[i] * x + q] : 0;
    take_away(block.columns + q * BLOCK, b, y, rest);
  }
  for (int64_t i = 0; i < BLOCK; ++i) y[i] += rest[i];
}

static void reduce(kinds *k, int64_t count, int64_t kind, double *rows) {
  int64_t w = k->columns, first = kind * w * w;
  reflect_rows(count, w, w, rows, k->triangles + first, k->rounded + first);
}

/* Reduces the rows of a kind that wait. */
static void reduce_waiting(kinds *k, int64_t kind) {
  int64_t w = k->columns, count = k->waiting_rows[kind];
  const double *rows = k->waiting + kind * w * LANES;
  for (int64_t q = 0; q < w; ++q) memcpy(k->scratch + q * BLOCK, rows + q * LANES, (size_t)count * sizeof *rows);
  reduce(k, count, kind, k->scratch);
  k->waiting_rows[kind] = 0;
}

/* Lets a row of the block wait. */
static void add_waiting(kinds *k, int64_t kind, const double *row) {
  double *rows = k->waiting + kind * k->columns * LANES + k->waiting_rows[kind];
  for (int64_t q = 0; q < k->columns; ++q) rows[q * LANES] = row[q * BLOCK];
  if (++k->waiting_rows[kind] == LANES) reduce_waiting(k, kind);
}

/* Reduces the rows of the block into those of their kinds: some of a kind together. */
static void leave_to_kinds(kinds *k, rows_held block, const int64_t *numbers) {
  for (int64_t i = 0, count; i < k->held; i += count) {
    count = rows_alike(numbers + i, k->held - i);
    if (count >= LANES)
      reduce(k, count, numbers[i], block.columns + i);
    else
      for (int64_t l = 0; l < count; ++l) add_waiting(k, numbers[i], block.columns + i + l);
  }
}

static int all_are_moderate(const kinds *k, rows_held block) {
  int found = 1;
  for (int64_t q = 0; q < k->columns; ++q) found &= is_moderate(block.columns + q * BLOCK);
  for (int64_t q = 0; q < k->sums; ++q)
    for (int64_t i = 0; i < k->held; ++i) found &= fabs(block.sums[q * BLOCK + i]) < LARGEST;
  return found;
}

/* Adds numbers up, as many as LANES several times. */
TWOFOLD_CLONES static void add_lanes(const double *restrict x, int64_t n, double *restrict total, double *restrict low) {
  double sums[LANES] = {0}, lows[LANES] = {0};
  for (int64_t i = 0; i < n; i += LANES)
    for (int l = 0; l < LANES; ++l) increase(sums + l, lows + l, x[i + l]);
  for (int l = 0; l < LANES; ++l) increase(total, low, sums[l]), *low += lows[l];
}

static void add_up_column(kinds *k, const double *x, int64_t column, const int64_t *numbers) {
  for (int64_t i = 0, count; i < k->held; i += count) {
    int64_t at = numbers[i] * k->sums + column, lanes;
    count = rows_alike(numbers + i, k->held - i), lanes = count & -LANES;
    if (lanes <= 2 * LANES) lanes = 0;
    if (lanes) add_lanes(x + i, lanes, k->totals + at, k->totals_low + at);
    for (int64_t l = lanes; l < count; ++l) increase(k->totals + at, k->totals_low + at, x[i + l]);
  }
}

/* Takes the rows of the block. */
static void take_block(ulam_context *ctx, kinds *k, rows_held block) {
  int64_t numbers[BLOCK];
  k->rows += k->held;
  if (k->doing == TELLING && !k->refused && !all_are_moderate(k, block)) k->refused = NOT_FINITE;
  tell_kinds(ctx, k, block.keys, numbers);
  if (!k->refused && k->doing == TELLING)
    for (int64_t q = 0; q < k->sums; ++q) add_up_column(k, block.sums + q * BLOCK, q, numbers);
  if (!k->refused && k->doing == REDUCING_REST) leave_rest(k, block, numbers);
  if (!k->refused && (k->doing > TELLING || k->reduces)) leave_to_kinds(k, block, numbers);
  memset(block.columns, 0, (size_t)(k->columns * BLOCK) * sizeof *block.columns);
  k->held = 0;
}

/* The block is full: `block` has its columns, of `room` numbers in all, which are 0 then. */
ULAM_API void ulam_kinds_rows(ulam_context *ctx, const int64_t *old, int64_t *state, double *block, int64_t room,
                              const int64_t *keys, int64_t n, const double *sums, int64_t m) {
  (void)old, (void)room, (void)n, (void)m;
  take_block(ctx, (kinds *)state, (rows_held){block, keys, sums});
}

/* What cancels in the rows of a kind. */
static void add_cancelling(const kinds *k, int64_t i, cancelling *most) {
  int64_t w = k->columns, x = w - 1;
  const double *rows = k->triangles + i * w * w;
  double left = fabs(rows[w * w - 1]), y = 0;
  cancelling found = {.y = 0};
  for (int64_t p = 0; p < w; ++p) y += rows[p * w + x] * rows[p * w + x];
  y = sqrt(y);
  if (y > 0) found.y = y / left;
  for (int64_t q = 0; q < x; ++q) {
    double norm2 = 0;
    for (int64_t p = 0; p <= q; ++p) norm2 += rows[p * w + q] * rows[p * w + q];
    count_column(&found, sqrt(norm2), fabs(rows[q * w + q]), y, left, k->fits[i * x + q]);
  }
  most->y = larger(most->y, found.y), most->fit = larger(most->fit, found.fit);
  most->fit_of_y = larger(most->fit_of_y, found.fit_of_y), most->columns = larger(most->columns, found.columns);
}

/* Finds the coefficients that fit best; whether rows have to come once more, for what these leave. */
static int find_fits(ulam_context *ctx, kinds *k) {
  int64_t w = k->columns;
  k->fits = zeros(ctx, k->kinds * (w - 1));
  double rows = (double)k->rows;
  cancelling most = {.y = 0};
  for (int64_t i = 0; i < k->kinds; ++i) {
    solve(k->triangles + i * w * w, w - 1, w, NULL, NULL, k->fits + i * (w - 1));
    add_cancelling(k, i, &most);
  }
  if (cancels_little(&most, rows)) {
    memset(k->fits, 0, (size_t)(k->kinds * (w - 1)) * sizeof *k->fits);
    return 0;
  }
  if (!are_apart_enough(&most, rows) || !is_small_fit(&most, rows)) {
    k->refused = TOO_CLOSE;
    return 0;
  }
  memset(k->triangles, 0, (size_t)(k->kinds * w * w) * sizeof *k->triangles);
  return 1;
}

/* All rows have come, and are reduced. */
static void finish_rows(kinds *k) {
  int64_t size = k->kinds * k->columns * k->columns;
  for (int64_t i = 0; i < k->kinds; ++i) reduce_waiting(k, i);
  for (int64_t i = 0; i < size; ++i) k->triangles[i] += k->rounded[i], k->rounded[i] = 0;
}

/* All rows have come. */
ULAM_API void ulam_kinds_turn(ulam_context *ctx, const int64_t *old, int64_t *state, double *block, int64_t room,
                              const int64_t *keys, int64_t n, const double *sums, int64_t m) {
  kinds *k = (kinds *)state;
  if (k->held) ulam_kinds_rows(ctx, old, state, block, room, keys, n, sums, m);
  if (!k->refused && are_too_many(k, (double)k->rows)) k->refused = TOO_MANY_KINDS;
  if (!k->refused && k->doing == TELLING && !k->reduces) {
    grow_rows(ctx, k, 0, k->kinds);
    k->doing = REDUCING;
  } else if (!k->refused) {
    finish_rows(k);
    int comes_again = k->doing != REDUCING_REST && find_fits(ctx, k);
    k->doing = REDUCING_REST;
    if (!comes_again) k->turns = k->turn + 1;
  }
  if (k->refused) k->turns = 0;
  k->turn += 1;
  if (k->turn < k->turns) k->rows = 0;
}

static int64_t room_for(const kinds *k) { return (k->kinds + LANES - 1) & -LANES; }

/* Of each kind: numbers of the reduced rows, coefficients that fit best, sums. */
static int64_t numbers_of(const kinds *k) { return triangle_of(k->columns) + k->columns - 1 + k->sums; }

/* sizes: 0 if the rows are reduced, else why not; whether they are; how many kinds there are then, and how many the tables
 * have room for; sizes of the tables below, and where sums begin; rows, kinds, coefficients, bytes. */
ULAM_API void ulam_kinds_sizes(ulam_context *ctx, const int64_t *state, int64_t *sizes) {
  (void)ctx;
  kinds k;
  memcpy(&k, state, sizeof k);
  int64_t used = !k.refused, room = used ? room_for(&k) : 0;
  sizes[0] = k.refused;
  sizes[1] = used;
  sizes[2] = used ? k.kinds : 0;
  sizes[3] = room;
  sizes[4] = room * k.keys;
  sizes[5] = room * numbers_of(&k);
  sizes[6] = room * (numbers_of(&k) - k.sums);
  sizes[7] = k.rows;
  sizes[8] = k.kinds;
  sizes[9] = k.kinds * (k.columns - 1);
  sizes[10] = (sizes[4] + sizes[5]) * (int64_t)sizeof(double);
}

/* The keys of each kind. Where rows of a kind do not have one, what is chosen by it is multiplied with 0: another one is
 * taken, which some rows have. */
static void put_keys(const kinds *k, int64_t room, int64_t *keys) {
  for (int64_t c = 0; c < k->keys; ++c) {
    int64_t some = 0;
    for (int64_t i = 0; i < k->kinds; ++i)
      if (k->of_kinds[i * k->keys + c] != NO_KEY) some = k->of_kinds[i * k->keys + c];
    for (int64_t i = 0; i < k->kinds; ++i) {
      int64_t key = k->of_kinds[i * k->keys + c];
      keys[c * room + i] = key == NO_KEY ? some : key;
    }
  }
}

/* What is left: each number of all kinds side by side. */
ULAM_API void ulam_kinds_tables(ulam_context *ctx, const int64_t *state, int64_t *keys, int64_t n, double *table,
                                int64_t m) {
  (void)ctx;
  kinds k;
  memcpy(&k, state, sizeof k);
  memset(keys, 0, (size_t)n * sizeof *keys);
  memset(table, 0, (size_t)m * sizeof *table);
  if (n == 0 && m == 0) return;
  int64_t room = room_for(&k), w = k.columns;
  put_keys(&k, room, keys);
  for (int64_t i = 0; i < k.kinds; ++i) {
    double *out = table + i;
    for (int64_t p = 0; p < w; ++p)
      for (int64_t q = p; q < w; ++q, out += room) *out = k.triangles[(i * w + p) * w + q];
    for (int64_t q = 0; q < w - 1; ++q, out += room) *out = k.fits[i * (w - 1) + q];
    for (int64_t q = 0; q < k.sums; ++q, out += room) *out = k.totals[i * k.sums + q] + k.totals_low[i * k.sums + q];
  }
}
