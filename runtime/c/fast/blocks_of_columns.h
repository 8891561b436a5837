/* Products of some rows of columns, wherever these are, and numbers, for one length of vectors: see dense_columns in
 * dense.h. Eight columns at a time, or four for two sides, so that what belongs to a row is read and written once for
 * all of them. Columns of successive turns lie one behind the other where a matrix has few rows: so many streams, which
 * processors fetch ahead. */

enum { TOGETHER = 8, SIDES = 2 };
typedef double half __attribute__((vector_size(W * sizeof(double) / 2), aligned(8)));

#define VALUES(type, from) (*(const type *)(from))
/* Lets what several sums need be read once: compilers prefer to read it again as an operand of each. */
#ifdef __x86_64__
#define KEEP(value) __asm__("" : "+x"(value))
#else
#define KEEP(value) (void)(value)
#endif

/* All columns in turns: turn(so many, all, the first, how far each is from the one before, sides, ...). */
#define IN_TURNS(turn, sides, ...)                                                                      \
  do {                                                                                                  \
    int64_t groups = all->count * sides / TOGETHER, rest = groups * TOGETHER / sides;                   \
    for (int64_t group = 0; group < groups; ++group)                                                    \
      turn(TOGETHER / sides, all, group, groups, sides, __VA_ARGS__);                                   \
    int64_t left = all->count - rest;                                                                   \
    if (left & 4) turn(4, all, rest, 1, sides, __VA_ARGS__);                                            \
    if (left & 2) turn(2, all, rest + (left & 4), 1, sides, __VA_ARGS__);                               \
    if (left & 1) turn(1, all, all->count - 1, 1, sides, __VA_ARGS__);                                  \
  } while (0)

INLINE int64_t number_of(const dense_columns *all, int64_t place) {
  return all->numbers ? all->numbers[place] : place;
}

INLINE void add_rows(int count, int sides, int64_t rows, int64_t stride, const double *const *x,
                     const double (*factors)[TOGETHER], int fresh, double *const *sums) {
  double *restrict y = sums[0], *restrict z = sums[sides - 1];
  int64_t i = 0;
#define ADD(type, width)                                                                                              \
  for (; i + width <= rows; i += width) {                                                                             \
    type sum = fresh ? (type){0} : VALUES(type, y + i), other = {0}, beside = {0};                                    \
    if (sides == 2 && !fresh) beside = VALUES(type, z + i);                                                           \
    UNROLLED for (int c = 0; c < count; ++c) {                                                                        \
      type entry = VALUES(type, x[c] + i);                                                                            \
      if (sides == 2 && width == W) KEEP(entry);                                                                      \
      if (sides == 2)                                                                                                 \
        sum += entry * factors[0][c], beside += entry * factors[1][c];                                                \
      else if (c & 1)                                                                                                 \
        other += entry * factors[0][c];                                                                               \
      else                                                                                                            \
        sum += entry * factors[0][c];                                                                                 \
    }                                                                                                                 \
    *(type *)(y + i) = count > 1 && sides == 1 ? sum + other : sum;                                                   \
    if (sides == 2) *(type *)(z + i) = beside;                                                                        \
  }
  if (stride == 1) {
    ADD(vec, W)
    ADD(half, W / 2)
  }
#undef ADD
  for (; i < rows; ++i)
    UNROLLED for (int side = 0; side < sides; ++side) {
      double sum = fresh ? 0 : sums[side][i];
      UNROLLED for (int c = 0; c < count; ++c) sum += x[c][i * stride] * factors[side][c];
      sums[side][i] = sum;
    }
}

INLINE void add_turn(int count, const dense_columns *all, int64_t first, int64_t by, int sides,
                     const double *const *factors, double *const *y) {
  const double *x[TOGETHER];
  double f[SIDES][TOGETHER];
  UNROLLED for (int c = 0; c < count; ++c) {
    int64_t number = number_of(all, first + c * by);
    x[c] = all->x + all->offsets[number];
    UNROLLED for (int side = 0; side < sides; ++side) f[side][c] = factors[side][number];
  }
  if (first == 0)
    add_rows(count, sides, all->rows, all->stride, x, (const double(*)[TOGETHER])f, 1, y);
  else
    add_rows(count, sides, all->rows, all->stride, x, (const double(*)[TOGETHER])f, 0, y);
}

void BLOCKS(add_columns)(const dense_columns *all, int sides, const double *const *factors, double *const *y) {
  for (int side = 0; side < sides && all->count == 0; ++side) memset(y[side], 0, (size_t)all->rows * sizeof(double));
  if (sides == 1) IN_TURNS(add_turn, 1, factors, y);
  if (sides == 2) IN_TURNS(add_turn, 2, factors, y);
}

/* The sums of the elements of four vectors. */
INLINE void sums_of_four(const vec *v, double *sums) {
#if (defined(__AVX512F__) || defined(__AVX2__)) && !defined(__clang__)
  vec s[4];
  bits even, odd, low, high;
  UNROLLED for (int w = 0; w < W; ++w) {
    even[w] = (w & 2) + (w & 1) * W, odd[w] = even[w] + 1;
    low[w] = (w & 1) + (w >> 1 & 1) * W, high[w] = low[w] + 2;
  }
  UNROLLED for (int c = 0; c < 4; ++c) s[c] = W == 8 ? v[c] + __builtin_shuffle(v[c], numbers(0) ^ 4) : v[c];
  vec first = __builtin_shuffle(s[0], s[1], even) + __builtin_shuffle(s[0], s[1], odd),
      second = __builtin_shuffle(s[2], s[3], even) + __builtin_shuffle(s[2], s[3], odd),
      all = __builtin_shuffle(first, second, low) + __builtin_shuffle(first, second, high);
  UNROLLED for (int c = 0; c < 4; ++c) sums[c] = all[c];
#else
  UNROLLED for (int c = 0; c < 4; ++c) {
    sums[c] = 0;
    UNROLLED for (int w = 0; w < W / 2; ++w) sums[c] += v[c][w] + v[c][w + W / 2];
  }
#endif
}

INLINE void dot_rows(int count, int sides, int64_t rows, int64_t stride, const double *const *x, const double *const *y,
                     double *found) {
  vec sums[TOGETHER];
  UNROLLED for (int c = 0; c < TOGETHER; ++c) sums[c] = (vec){0};
  int64_t i = 0;
  if (stride == 1)
    for (; i + W <= rows; i += W)
      UNROLLED for (int c = 0; c < count; ++c) {
        vec entry = VALUES(vec, x[c] + i);
        if (sides == 2) KEEP(entry);
        UNROLLED for (int side = 0; side < sides; ++side) sums[side * 4 + c] += entry * VALUES(vec, y[side] + i);
      }
  sums_of_four(sums, found);
  if (count > 4 || sides > 1) sums_of_four(sums + 4, found + 4);
  for (; stride == 1 && i + W / 2 <= rows; i += W / 2)
    UNROLLED for (int c = 0; c < count; ++c) UNROLLED for (int side = 0; side < sides; ++side) {
      half rest = VALUES(half, x[c] + i) * VALUES(half, y[side] + i);
      UNROLLED for (int w = 0; w < W / 2; ++w) found[side * 4 + c] += rest[w];
    }
  for (; i < rows; ++i)
    UNROLLED for (int c = 0; c < count; ++c) UNROLLED for (int side = 0; side < sides; ++side)
      found[side * 4 + c] += x[c][i * stride] * y[side][i];
}

INLINE void dot_turn(int count, const dense_columns *all, int64_t first, int64_t by, int sides, const double *const *y,
                     double *const *factors_adj) {
  const double *x[TOGETHER];
  double found[TOGETHER];
  UNROLLED for (int c = 0; c < count; ++c) x[c] = all->x + all->offsets[number_of(all, first + c * by)];
  dot_rows(count, sides, all->rows, all->stride, x, y, found);
  UNROLLED for (int c = 0; c < count; ++c) {
    int64_t number = number_of(all, first + c * by);
    UNROLLED for (int side = 0; side < sides; ++side) factors_adj[side][number] += found[side * 4 + c];
  }
}

void BLOCKS(dot_columns)(const dense_columns *all, int sides, const double *const *y, double *const *factors_adj) {
  if (sides == 1) IN_TURNS(dot_turn, 1, y, factors_adj);
  if (sides == 2) IN_TURNS(dot_turn, 2, y, factors_adj);
}
