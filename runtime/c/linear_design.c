/* Designs of normal linear models, reduced once, when data are bound.
 *
 * The rows of a design are [own | shared | y]. Each belongs to a group, by a key: its own columns have coefficients of
 * that group, the shared ones the same for all rows. An orthogonal transformation leaves `own` rows per group, and
 * `shared` + 1 rows for all; the sum of the squares of y - X b is that of these few rows, whatever b is.
 *
 * Rows come in blocks. Where numbers in y and X cancel each other they come twice: the first time gives the
 * coefficients that fit best; the second time y is what they leave, computed with twice the digits. Where what these make
 * of columns is much larger than y, other coefficients may be far smaller: the rows of the first time are kept for them.
 * Where columns nearly depend on each other, this does not help: what each row rounds away averages out in a loop over all
 * of them, what the reduced ones do, does not. Then the rows themselves are reduced in twice the digits the second time.
 * Memory is that of the result, and of a block of rows. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cancelling.h"
#include "dense.h"
#include "equal_rows.h"
#include "reduced_rows.h"
#include "reflections.h"

enum {
  SPARSE_KEYS = 16, /* so many times as many keys as rows are too many */
  FEW_KEYS = 1 << 12,
  MOST_CHOSEN = 1 << 12 /* shared coefficients that a key chooses */
};

/* Why a design is not used; passes/loops/linear_binding.py has the words. */
enum { NOT_FINITE = 1, TOO_MANY_KEYS = 2, TOO_FEW_ROWS = 3, TOO_SLOW = 4 };

static const double LESS_WORK = 1.25;
/* Squares of numbers of columns, of all rows: so many take about a millisecond, which binding may in any case. */
static const double SHORT = 7e6;
/* Numbers that a loop reads meanwhile, of all and of each: of rows in twice the digits, and of rows relative to two points. */
static const double TWOFOLD_CALL = 400, TWOFOLD_WORK = 30, TWO_POINTS_CALL = 100, TWO_POINTS_WORK = 4;
/* How many times as large as what is left numbers may be; beyond, rows are reduced in twice the digits, too. */
static const double CLOSE_FIT = 1e10;

typedef struct __attribute__((may_alias)) {
  int64_t turns; /* how often rows come: read by compiled code, whenever they are to come again */
  int64_t held;  /* how many rows the block has: compiled code counts them, and has them taken when it is full */
  int64_t turn, own, shared, columns, saved, rows, refused, low, span, capacity;
  int64_t width;  /* of a shared row in the result */
  int64_t padded; /* as reduced_rows.h has it; else there is nothing but the numbers of rows and the solution */
  int64_t twice;  /* whether rows are reduced in twice the digits */
  double *triangle; /* shared + 1 rows of as many */
  double *rounded;  /* what additions to the triangle have rounded away; of rows in twice the digits, second numbers */
  double *groups;   /* `own` rows of `columns` for each key from `low` on */
  double *groups_rounded;
  double *solution, *group_solutions;
  double *at_0, *groups_at_0; /* rows relative to 0 that are kept; NULL if there are none */
  double *norms; /* of all columns, squared */
  double *block_low; /* of second numbers, as the block has first ones */
  double *room;      /* for LANES rows */
} design;

_Static_assert(sizeof(design) <= 26 * sizeof(int64_t) && offsetof(design, held) == sizeof(int64_t) && BLOCK == 64,
               "as library/kernels.py has it");

/* What is being reduced: a column of BLOCK for each column, and the keys of the rows. */
typedef struct {
  double *columns;
  const int64_t *keys;
} rows_held;

/* Before any row: known[0] is the number of rows, known[1] whether a key has too many values, known[2] which key is that
 * of groups, if there are several; then of each key the least value, how many there are from it on (-1: too many for
 * shared coefficients), and how many coefficients each value has, with the other sign if a row has several values. The
 * last of n is that of this key. */
ULAM_API void ulam_design_key(ulam_context *ctx, const int64_t *old, int64_t *known, int64_t n, int64_t key) {
  (void)ctx, (void)old;
  int64_t *low = known + n - 3, *span = known + n - 2;
  if (*span < 0) return;
  if (*span == 0) *low = key, *span = 1;
  int64_t first = key < *low ? key : *low;
  uint64_t most = (uint64_t)(key < *low + *span ? *low + *span : key + 1) - (uint64_t)first;
  *low = first, *span = most > MOST_CHOSEN ? -1 : (int64_t)most;
}

/* All values of keys are known: groups are by the key that has most coefficients; of it there are no shared ones. */
ULAM_API void ulam_design_groups(ulam_context *ctx, const int64_t *old, int64_t *known, int64_t n) {
  (void)ctx, (void)old;
  int64_t best = 0;
  double most = -1;
  for (int64_t k = 0; 3 * k + 3 < n; ++k) {
    int64_t span = known[3 * k + 4];
    if (known[3 * k + 5] < 0) continue; /* rows have several values: they are in no group of one */
    double coefficients = span < 0 ? HUGE_VAL : (double)span * (double)known[3 * k + 5];
    if (coefficients > most) most = coefficients, best = k;
  }
  known[2] = best, known[3 * best + 4] = 0;
  for (int64_t k = 0; 3 * k + 3 < n; ++k)
    if (known[3 * k + 4] < 0) known[1] = 1, known[3 * k + 4] = 0;
}

/* Numbers that `groups` groups leave, and the shared rows. */
static double reduced_size(double groups, double own, double shared) {
  double n = shared + 1;
  return n * (n + 1) / 2 + groups * own * (own + n + 1) + 8;
}

/* `entries`: how many of a row's are not 0, at most; `saved`: how many of these nothing else needs; `padded`: whether
 * reduced_squares.c has them. */
ULAM_API void ulam_design_begin(ulam_context *ctx, int64_t *state, int64_t own, int64_t shared, int64_t entries,
                                int64_t saved, int64_t padded, const int64_t *known) {
  design d = {.turns = 2, .own = own, .shared = shared, .columns = own + shared + 1, .saved = saved};
  d.width = padded ? reduced_width(shared) : shared + 1, d.padded = padded;
  double n = (double)shared + 1, size = (double)known[0] * (double)saved;
  if (known[1])
    d.refused = TOO_MANY_KEYS;
  else if (LESS_WORK * reduced_size(0, 0, (double)shared) > size || (!own && (double)known[0] <= n))
    d.refused = TOO_FEW_ROWS; /* of as many columns as rows some depend on others: they would have twice the digits */
  else if (n * n > 4 * (30 + n) * (double)entries + SHORT / (double)known[0])
    d.refused = TOO_SLOW;
  if (d.refused) {
    d.turns = 0, d.rows = known[0];
    memcpy(state, &d, sizeof d);
    return;
  }
  d.triangle = zeros(ctx, (shared + 1) * (shared + 1));
  d.rounded = zeros(ctx, (shared + 1) * (shared + 1));
  d.solution = zeros(ctx, shared);
  d.norms = zeros(ctx, d.columns);
  d.room = zeros(ctx, LANES * d.columns);
  memcpy(state, &d, sizeof d);
}

/* Makes room for a key; whether that is possible. */
static int has_group(ulam_context *ctx, design *d, int64_t key) {
  if (d->span == 0) d->low = key;
  if (key >= d->low && key - d->low < d->span) return 1;
  int64_t low = key < d->low ? key : d->low, end = key < d->low + d->span ? d->low + d->span : key + 1;
  uint64_t span = (uint64_t)end - (uint64_t)low;
  if (span > (uint64_t)(SPARSE_KEYS * d->rows + FEW_KEYS)) return 0;
  int64_t size = d->own * d->columns;
  if (low < d->low || (int64_t)span > d->capacity) {
    int64_t capacity = low < d->low ? (int64_t)span : 2 * (int64_t)span, shift = d->low - low;
    double *groups = zeros(ctx, capacity * size), *solutions = zeros(ctx, capacity * d->own);
    double *rounded = zeros(ctx, capacity * size);
    if (d->span) memcpy(groups + shift * size, d->groups, (size_t)(d->span * size) * sizeof *groups);
    if (d->span) memcpy(rounded + shift * size, d->groups_rounded, (size_t)(d->span * size) * sizeof *groups);
    d->groups = groups, d->groups_rounded = rounded, d->group_solutions = solutions, d->capacity = capacity;
  }
  d->low = low, d->span = (int64_t)span;
  return 1;
}

/* The same for all keys of a block: at once, since memory comes anew each time. */
static int has_groups(ulam_context *ctx, design *d, const int64_t *keys) {
  int64_t least = INT64_MAX, most = NO_KEY;
  for (int64_t i = 0; i < d->held; ++i) {
    if (keys[i] != NO_KEY && keys[i] < least) least = keys[i];
    if (keys[i] > most) most = keys[i];
  }
  return most == NO_KEY || (has_group(ctx, d, least) && has_group(ctx, d, most));
}

/* y -= x b in all rows of a block, with what is rounded away added to `rest`. */
TWOFOLD_CLONES static void take_away(const double *restrict x, const double *restrict b, double *restrict y,
                                     double *restrict rest) {
  for (int i = 0; i < BLOCK; ++i) increase_by_product(y + i, rest + i, (twofold){-x[i], 0}, b[i]);
}

/* What the solution leaves of y in a block. */
static void leave_rest(const design *d, rows_held block) {
  double *y = block.columns + (d->columns - 1) * BLOCK, rest[BLOCK] = {0}, b[BLOCK];
  for (int64_t q = 0; q < d->columns - 1; ++q) {
    for (int64_t i = 0; i < BLOCK; ++i)
      if (q >= d->own)
        b[i] = d->solution[q - d->own];
      else
        b[i] = i < d->held && block.keys[i] != NO_KEY ? d->group_solutions[(block.keys[i] - d->low) * d->own + q] : 0;
    take_away(block.columns + q * BLOCK, b, y, rest);
  }
  for (int64_t i = 0; i < BLOCK; ++i) y[i] += rest[i];
}

static int64_t first_of_group(const design *d, int64_t key) { return (key - d->low) * d->own * d->columns; }

/* Reduces LANES rows of the block from row i on, if they are of different groups; whether they are. */
static int leave_to_groups(const design *d, rows_held block, int64_t i) {
  int64_t first[LANES];
  if (d->twice || d->own > FEW || i + LANES > d->held || !are_apart(block.keys + i)) return 0;
  for (int k = 0; k < LANES; ++k) {
    if (block.keys[i + k] == NO_KEY) return 0;
    first[k] = first_of_group(d, block.keys[i + k]);
  }
  rotate_apart(d->own, d->columns, block.columns + i, d->room, first, d->groups, d->groups_rounded);
  return 1;
}

/* Reduces rows of the block from row i on into those of their group, for the group's own columns; how many. */
static int64_t leave_to_group(const design *d, rows_held block, int64_t i) {
  if (leave_to_groups(d, block, i)) return LANES;
  int64_t count = d->twice ? 1 : rows_alike(block.keys + i, d->held - i);
  if (block.keys[i] == NO_KEY) return count;
  int64_t first = first_of_group(d, block.keys[i]);
  double *kept = d->groups + first, *rounded = d->groups_rounded + first;
  if (d->twice)
    rotate_row_twofold(d->own, d->columns, block.columns + i, d->block_low + i, kept, rounded);
  else
    reduce_rows(count, d->own, d->columns, block.columns + i, d->room, kept, rounded);
  return count;
}

/* Reduces the rows of the block. */
static void reduce_block(ulam_context *ctx, design *d, rows_held block) {
  d->rows += d->held;
  for (int64_t q = 0; q < d->columns && !d->refused; ++q)
    if (!is_moderate(block.columns + q * BLOCK)) d->refused = NOT_FINITE;
  if (d->own && !d->refused && !has_groups(ctx, d, block.keys)) d->refused = TOO_MANY_KEYS;
  if (!d->refused) {
    add_squares(d->columns, block.columns, d->norms);
    if (d->turn == 1 && !d->twice) leave_rest(d, block);
    for (int64_t i = 0; i < d->held && d->own;) i += leave_to_group(d, block, i);
    int64_t first = d->own * BLOCK;
    if (d->twice)
      reflect_block_twofold(d->shared + 1, block.columns + first, d->block_low + first, d->triangle, d->rounded);
    else
      reflect_block(d->shared + 1, block.columns + first, d->triangle, d->rounded);
  }
  if (d->twice) memset(d->block_low, 0, (size_t)(d->columns * BLOCK) * sizeof *d->block_low);
  memset(block.columns, 0, (size_t)(d->columns * BLOCK) * sizeof *block.columns);
  d->held = 0;
}

/* The block of a design is full: `block` has its columns, of `room` numbers in all, which are 0 then. */
ULAM_API void ulam_design_rows(ulam_context *ctx, const int64_t *old, int64_t *state, double *block, int64_t room,
                               const int64_t *keys) {
  (void)old, (void)room;
  reduce_block(ctx, (design *)state, (rows_held){block, keys});
}

static cancelling what_cancels(const design *d) {
  int64_t n = d->shared + 1;
  double left = fabs(d->triangle[n * n - 1]), y = sqrt(d->norms[d->columns - 1]);
  cancelling found = {.y = y > 0 ? y / left : 0};
  for (int64_t k = 0; k < d->shared; ++k)
    count_column(&found, sqrt(d->norms[d->own + k]), fabs(d->triangle[k * n + k]), y, left, d->solution[k]);
  for (int64_t p = 0; p < d->own; ++p) {
    double solution = 0;
    for (int64_t g = 0; g < d->span; ++g) {
      double norm2 = 0, part = fabs(d->groups[(g * d->own + p) * d->columns + p]);
      for (int64_t q = 0; q <= p; ++q) {
        double entry = d->groups[(g * d->own + q) * d->columns + p];
        norm2 += entry * entry;
      }
      count_column(&found, sqrt(norm2), part, y, left, 0);
      solution = fmax(solution, fabs(d->group_solutions[g * d->own + p]));
    }
    count_column(&found, sqrt(d->norms[p]), 0, y, left, solution);
  }
  return found;
}

/* Begins the second turn: in twice the digits, or relative to the solution; then rows relative to 0 may be kept. */
static void begin_again(ulam_context *ctx, design *d, int twice, int keeps) {
  int64_t n = d->shared + 1, size = d->own * d->columns;
  d->twice = twice;
  if (twice) d->block_low = zeros(ctx, d->columns * BLOCK);
  if (twice || keeps) d->width = reduced_width(d->shared), d->padded = 1;
  if (keeps) {
    d->at_0 = d->triangle, d->groups_at_0 = d->groups;
    d->triangle = zeros(ctx, n * n), d->groups = zeros(ctx, d->capacity * size);
  }
  memset(d->triangle, 0, (size_t)(n * n) * sizeof *d->triangle);
  if (d->own && d->span) memset(d->groups, 0, (size_t)(d->span * size) * sizeof *d->groups);
  d->rows = 0;
}

/* All rows have come. If nothing cancels, once is enough. */
ULAM_API void ulam_design_turn(ulam_context *ctx, const int64_t *old, int64_t *state, double *block, int64_t room,
                               const int64_t *keys) {
  design *d = (design *)state;
  if (d->held) ulam_design_rows(ctx, old, state, block, room, keys);
  int64_t n = d->shared + 1, size = d->own * d->columns;
  if (!d->refused && !d->twice) {
    for (int64_t i = 0; i < n * n; ++i) d->triangle[i] += d->rounded[i], d->rounded[i] = 0;
    for (int64_t i = 0; i < d->span * size; ++i) d->groups[i] += d->groups_rounded[i], d->groups_rounded[i] = 0;
  }
  if (d->turn == 0 && !d->refused) {
    solve(d->triangle, d->shared, n, NULL, d->norms + d->own, d->solution);
    for (int64_t g = 0; g < d->span && d->own; ++g)
      solve(d->groups + g * size, d->own, d->columns, d->solution, NULL, d->group_solutions + g * d->own);
    double rows = (double)d->rows;
    cancelling much = what_cancels(d);
    int once = cancels_little(&much, rows);
    int is_relative = are_apart_enough(&much, rows) && larger(much.y, much.fit) <= CLOSE_FIT;
    int is_small = is_small_fit(&much, rows);
    if (!once) begin_again(ctx, d, !is_relative, is_relative && !is_small);
    d->turns = once ? 1 : 2;
    if (!once && is_relative) {
      d->turn = 1;
      return;
    }
    memset(d->solution, 0, (size_t)d->shared * sizeof *d->solution);
    if (d->own && d->span) memset(d->group_solutions, 0, (size_t)(d->span * d->own) * sizeof *d->solution);
  }
  if (d->refused) d->turns = 0;
  d->turn += 1;
}

/* sizes: 0 if the rows are reduced, else why not; whether there are tables; whether the kernel alone reads these; groups
 * then, the first key, and how many groups the table of groups has room for; sizes of the tables below; rows, groups,
 * coefficients, bytes. */
ULAM_API void ulam_design_sizes(ulam_context *ctx, const int64_t *state, int64_t *sizes) {
  (void)ctx;
  design d;
  memcpy(&d, state, sizeof d);
  double reduced = reduced_size((double)d.span, (double)d.own, (double)d.shared);
  double work = d.twice  ? TWOFOLD_CALL + TWOFOLD_WORK * reduced
                : d.at_0 ? TWO_POINTS_CALL + TWO_POINTS_WORK * reduced
                         : LESS_WORK * reduced;
  int is_less = work < (double)d.rows * (double)d.saved;
  int used = !d.refused && is_less;
  int64_t room = used ? (d.span + LANES - 1) & -LANES : 0;
  sizes[0] = d.refused ? d.refused : is_less ? 0 : TOO_FEW_ROWS;
  sizes[1] = used;
  sizes[2] = used && (d.twice || d.at_0);
  sizes[3] = used ? d.span : 0;
  sizes[4] = d.low;
  sizes[5] = room;
  int64_t rows = (d.shared + 1) * d.width, size = d.padded ? reduced_table_size(d.shared) : rows + d.shared;
  int64_t of_groups = group_table_size(room, d.own, d.shared);
  if (d.twice) size += rows, of_groups += room * d.own * d.columns;
  if (d.at_0) size += size + d.width, of_groups += of_groups + room * d.own;
  sizes[6] = used ? size : 0;
  sizes[7] = of_groups;
  sizes[8] = d.rows;
  sizes[9] = d.span;
  sizes[10] = d.shared + d.span * d.own;
  sizes[11] = (sizes[6] + sizes[7]) * (int64_t)sizeof(double);
}

/* Shared rows, then the coefficients that they are relative to, NULL: 0; then columns, if there are any. */
static void put_shared(const design *d, const double *triangle, const double *solution, double *table) {
  int64_t n = d->shared + 1, behind = n * d->width;
  for (int64_t i = 0; i < n; ++i) memcpy(table + i * d->width, triangle + i * n, (size_t)n * sizeof *table);
  if (solution) memcpy(table + behind, solution, (size_t)d->shared * sizeof *table);
  double *by_column = table + behind + d->width;
  if (d->padded && has_columns(d->shared))
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = 0; i <= k; ++i) by_column[k * d->width + i] = table[i * d->width + k];
}

/* The same of the rows of groups: each number for all groups side by side. */
static void put_groups(const design *d, int64_t room, const double *groups, const double *solutions, double *table) {
  int64_t size = d->own * d->columns;
  for (int64_t g = 0; g < d->span; ++g) {
    for (int64_t q = 0; q < size; ++q) table[q * room + g] = groups[g * size + q];
    for (int64_t p = 0; p < d->own && solutions; ++p) table[(size + p) * room + g] = solutions[g * d->own + p];
  }
}

/* The squares of the columns of groups. */
static void put_group_norms(const design *d, int64_t room, double *table) {
  int64_t n = d->columns, size = d->own * n;
  for (int64_t g = 0; g < d->span; ++g)
    for (int64_t p = 0; p < d->own; ++p)
      for (int64_t q = 0; q <= p; ++q) {
        double entry = d->groups[g * size + q * n + p];
        table[p * room + g] += entry * entry;
      }
}

/* What is left, as in reduced_rows.h. */
ULAM_API void ulam_design_tables(ulam_context *ctx, const int64_t *state, double *shared, int64_t shared_size,
                                 double *groups, int64_t group_size) {
  (void)ctx;
  design d;
  memcpy(&d, state, sizeof d);
  memset(shared, 0, (size_t)shared_size * sizeof *shared);
  memset(groups, 0, (size_t)group_size * sizeof *groups);
  int64_t n = d.shared + 1, room = (d.span + LANES - 1) & -LANES;
  int64_t size = reduced_table_size(d.shared), of_groups = group_table_size(room, d.own, d.shared);
  if (shared_size) {
    put_shared(&d, d.triangle, d.solution, shared);
    for (int64_t i = 0; i < n && d.twice; ++i)
      memcpy(shared + size + i * d.width, d.rounded + i * n, (size_t)n * sizeof *shared);
    if (d.at_0) {
      put_shared(&d, d.at_0, NULL, shared + size);
      memcpy(shared + 2 * size, d.norms + d.own, (size_t)d.shared * sizeof *shared);
    }
  }
  if (group_size == 0) return;
  put_groups(&d, room, d.groups, d.group_solutions, groups);
  if (d.twice) put_groups(&d, room, d.groups_rounded, NULL, groups + of_groups);
  if (d.at_0) {
    put_groups(&d, room, d.groups_at_0, NULL, groups + of_groups);
    put_group_norms(&d, room, groups + 2 * of_groups);
  }
}
