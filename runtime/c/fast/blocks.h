/* Dense kernels for levels 3 and 4: fused multiply-adds, and blocks of registers for one length of vectors. A file for
 * each length (blocks_*.c) says what the functions of blocks_of_vectors.h are called, BLOCKS(name), and includes this.
 *
 * All of it rests on one loop, `sums`: a block of rows in vectors times a few columns. A panel is MR rows, p-major:
 * number r of step p is at panel[p * MR + r].
 */
#include <math.h>

#include "blocks_of_vectors.h"

#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

#if defined(__AVX512F__)
enum { W = 8, H = 3, NR = 8 }; /* 24 of 32 registers for sums */
#elif defined(__AVX2__) && defined(__FMA__)
enum { W = 4, H = 3, NR = 4 }; /* 12 of 16 */
#elif defined(__x86_64__)
enum { W = 2, H = 3, NR = 4 }; /* 12 of 16 */
#else
enum { W = 2, H = 3, NR = 6 }; /* 18 of 32 */
#endif
enum {
  MR = W * H,
  MC = 8 * MR, KC = 256, NC = 64 * NR, /* blocks of A and B in cache */
  UNPACKED = 128 * 128,                 /* B of fewer numbers is read where it is */
  FEW = 12,                            /* so small that setting up vectors takes longer */
  DIAGONAL = 32, PULLED = 16,          /* blocks on a diagonal that are factored, or pulled back, by columns */
};

typedef double vec __attribute__((vector_size(W * sizeof(double)), aligned(8)));
typedef int64_t bits __attribute__((vector_size(W * sizeof(double)), aligned(8)));
#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("GCC unroll 8")
/* The numbers of the elements of vector h. */
INLINE bits numbers(int h) {
  bits result;
  UNROLLED for (int w = 0; w < W; ++w) result[w] = h * W + w;
  return result;
}
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* C (rows x columns, of at most height * W x width, rows one after the other) += alpha times the product of k steps, or
 * := that if it is `fresh`. */
#define BLOCK_UPDATE(name, height, width)                                                                              \
  static void name(int64_t k, const double *restrict a, int64_t a_by, const double *restrict b, int64_t b_by,          \
                   int64_t b_columns_by, double alpha, double *restrict c, int64_t c_by, int64_t rows,                 \
                   int64_t columns, int fresh) {                                                                       \
    vec sum[width][height];                                                                                            \
    UNROLLED for (int j = 0; j < width; ++j) UNROLLED for (int h = 0; h < height; ++h) sum[j][h] = (vec){0};           \
    for (int64_t p = 0; p < k; ++p, a += a_by, b += b_by) {                                                            \
      vec column[height];                                                                                              \
      UNROLLED for (int h = 0; h < height; ++h) column[h] = *(const vec *)(a + h * W);                                 \
      UNROLLED for (int j = 0; j < width; ++j) UNROLLED for (int h = 0; h < height; ++h)                               \
        sum[j][h] += column[h] * b[j * b_columns_by];                                                                  \
    }                                                                                                                  \
    if (rows == height * W && fresh) {                                                                                 \
      UNROLLED for (int j = 0; j < width; ++j) if (j < columns) UNROLLED for (int h = 0; h < height; ++h)              \
        *(vec *)(c + j * c_by + h * W) = alpha * sum[j][h];                                                            \
    } else if (rows == height * W) {                                                                                   \
      UNROLLED for (int j = 0; j < width; ++j) if (j < columns) UNROLLED for (int h = 0; h < height; ++h)              \
        *(vec *)(c + j * c_by + h * W) += alpha * sum[j][h];                                                           \
    } else {                                                                                                           \
      double block[width * height * W] __attribute__((aligned(64)));                                                   \
      UNROLLED for (int j = 0; j < width; ++j) UNROLLED for (int h = 0; h < height; ++h)                               \
        *(vec *)(block + (j * height + h) * W) = sum[j][h];                                                            \
      for (int64_t j = 0; j < columns; ++j)                                                                            \
        for (int64_t r = 0; r < rows; ++r)                                                                             \
          c[j * c_by + r] = alpha * block[j * height * W + r] + (fresh ? 0 : c[j * c_by + r]);                         \
    }                                                                                                                  \
  }
BLOCK_UPDATE(update_1_all, 1, NR)
BLOCK_UPDATE(update_2_all, 2, NR)
BLOCK_UPDATE(update_1_half, 1, NR / 2)
BLOCK_UPDATE(update_2_half, 2, NR / 2)
BLOCK_UPDATE(update_1_two, 1, 2)
BLOCK_UPDATE(update_2_two, 2, 2)
BLOCK_UPDATE(update_3_two, 3, 2)
BLOCK_UPDATE(update_1_one, 1, 1)
BLOCK_UPDATE(update_2_one, 2, 1)
BLOCK_UPDATE(update_3_all, 3, NR)
BLOCK_UPDATE(update_3_half, 3, NR / 2)
BLOCK_UPDATE(update_3_one, 3, 1)

/* As many columns as there are, by the smallest block that they fit in. `readable`: columns of b that may be read. */
INLINE void update(int64_t k, const double *a, int64_t a_by, const double *b, int64_t b_by, int64_t b_columns_by,
                   int64_t readable, double alpha, double *c, int64_t c_by, int64_t rows, int64_t columns, int fresh) {
  int64_t height = (rows + W - 1) / W;
#define UPDATE(part, present)                                                                                        \
  (height == 1 ? update_1_##part : height == 2 ? update_2_##part : update_3_##part)(k, a, a_by, b, b_by, b_columns_by, \
                                                                                    alpha, c, c_by, rows, present, fresh)
  if (columns > NR / 2 && readable >= NR) {
    UPDATE(all, columns);
    return;
  }
  while (columns > 0) {
    int64_t width = columns > 2 && readable >= NR / 2 ? NR / 2 : columns > 1 ? 2 : 1, present = least(columns, width);
    if (width > 2)
      UPDATE(half, present);
    else if (width > 1)
      UPDATE(two, present);
    else
      UPDATE(one, present);
    b += width * b_columns_by, c += width * c_by, columns -= width, readable -= width;
  }
}

/* Rows first .. first + rows of A as a panel; the vectors are filled up with zeros. */
INLINE void pack_panel(int64_t rows, int64_t k, dense_view A, double *restrict to) {
  int64_t filled = (rows + W - 1) / W * W;
  if (A.rows_by == 1 && rows == MR) {
    for (int64_t p = 0; p < k; ++p, to += MR)
      UNROLLED for (int h = 0; h < H; ++h) *(vec *)(to + h * W) = *(const vec *)(A.data + p * A.columns_by + h * W);
  } else if (A.columns_by == 1) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t p = 0; p < k; ++p) to[p * MR + r] = A.data[r * A.rows_by + p];
    for (int64_t p = 0; p < k; ++p)
      for (int64_t r = rows; r < filled; ++r) to[p * MR + r] = 0;
  } else {
    for (int64_t p = 0; p < k; ++p, to += MR) {
      for (int64_t r = 0; r < rows; ++r) to[r] = AT(A, r, p);
      for (int64_t r = rows; r < filled; ++r) to[r] = 0;
    }
  }
}
static void pack_rows(int64_t m, int64_t k, dense_view A, double *to) {
  for (int64_t i = 0; i < m; i += MR, to += MR * k) pack_panel(least(MR, m - i), k, dense_block(A, i, 0), to);
}
/* Columns of B, NR at a time, p-major, the last ones filled up with zeros. */
static void pack_columns(int64_t n, int64_t k, dense_view B, double *restrict to) {
  for (int64_t j = 0; j < n; j += NR, to += NR * k) {
    int64_t present = least(NR, n - j);
    const double *from = &AT(B, 0, j);
    if (B.rows_by == 1) {
      for (int64_t c = 0; c < present; ++c)
        for (int64_t p = 0; p < k; ++p) to[p * NR + c] = from[p + c * B.columns_by];
    } else if (present == NR) {
      for (int64_t p = 0; p < k; ++p)
        UNROLLED for (int c = 0; c < NR; ++c) to[p * NR + c] = from[p * B.rows_by + c * B.columns_by];
      continue;
    } else {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t c = 0; c < present; ++c) to[p * NR + c] = from[p * B.rows_by + c * B.columns_by];
    }
    for (int64_t p = 0; p < k; ++p)
      for (int64_t c = present; c < NR; ++c) to[p * NR + c] = 0;
  }
}

/* C, whose rows are one after the other, += alpha A B; `how` as of `multiply_add`. */
static void multiply(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                     dense_view C, int how) {
  int lower = how & DENSE_LOWER, fresh = how & DENSE_FRESH;
  char *mark = ctx->arena_cursor;
  int direct = A.rows_by == 1 && (m * k <= UNPACKED || n <= 4 * NR); /* A is read often enough for a copy, or not */
  if (n * k <= UNPACKED && (k <= KC || direct)) {
    double *panel = direct && m % W == 0 ? NULL : ulam_doubles(ctx, MR * k);
    for (int64_t i = 0; i < m;) {
      int64_t rows = least(MR, m - i);
      const double *a = &AT(A, i, 0);
      int64_t a_by = A.columns_by;
      if (direct && rows > W) rows = rows / W * W; /* whole vectors first */
      if (!direct || rows < W) {
        pack_panel(rows, k, dense_block(A, i, 0), panel);
        a = panel, a_by = MR;
      }
      for (int64_t j = 0; j < (lower ? least(n, i + rows) : n); j += NR)
        update(k, a, a_by, &AT(B, 0, j), B.rows_by, B.columns_by, n - j, alpha, &AT(C, i, j), C.columns_by, rows,
               least(NR, n - j), fresh);
      i += rows;
    }
  } else {
    double *packed_a = ulam_doubles(ctx, MC * least(k, KC)),
           *packed_b = ulam_doubles(ctx, (least(n, NC) + NR) * least(k, KC));
    for (int64_t j = 0; j < n; j += NC) {
      int64_t columns = least(NC, n - j);
      for (int64_t p = 0; p < k; p += KC) {
        int64_t depth = least(KC, k - p);
        pack_columns(columns, depth, dense_block(B, p, j), packed_b);
        for (int64_t i = lower ? j / MC * MC : 0; i < m; i += MC) {
          int64_t rows = least(MC, m - i);
          pack_rows(rows, depth, dense_block(A, i, p), packed_a);
          for (int64_t c = 0; c < columns; c += NR)
            for (int64_t r = 0; r < rows; r += MR) {
              if (lower && i + least(r + MR, rows) <= j + c) continue;
              update(depth, packed_a + r * depth, MR, packed_b + c * depth, NR, 1, NR, alpha, &AT(C, i + r, j + c),
                     C.columns_by, least(MR, rows - r), least(NR, columns - c), fresh && p == 0);
            }
        }
      }
    }
  }
  ulam_release(ctx, mark);
}

/* y += alpha A x. */
static void multiply_vector(int64_t m, int64_t k, double alpha, dense_view A, const double *x, int64_t x_by,
                            double *y, int64_t y_by) {
  if (A.rows_by == 1 && y_by == 1) {
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const double *restrict a0 = &AT(A, 0, p), *restrict a1 = a0 + A.columns_by, *restrict a2 = a1 + A.columns_by,
                   *restrict a3 = a2 + A.columns_by;
      double x0 = alpha * x[p * x_by], x1 = alpha * x[(p + 1) * x_by], x2 = alpha * x[(p + 2) * x_by],
             x3 = alpha * x[(p + 3) * x_by];
      double *restrict to = y;
      int64_t i = 0;
      for (; i + W <= m; i += W)
        *(vec *)(to + i) += (x0 * *(const vec *)(a0 + i) + x1 * *(const vec *)(a1 + i)) +
                            (x2 * *(const vec *)(a2 + i) + x3 * *(const vec *)(a3 + i));
      for (; i < m; ++i) to[i] += (x0 * a0[i] + x1 * a1[i]) + (x2 * a2[i] + x3 * a3[i]);
    }
    for (; p < k; ++p) {
      const double *restrict a = &AT(A, 0, p);
      double *restrict to = y, factor = alpha * x[p * x_by];
      for (int64_t i = 0; i < m; ++i) to[i] += factor * a[i];
    }
  } else if (A.columns_by == 1 && x_by == 1) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
      const double *a0 = &AT(A, i, 0), *a1 = a0 + A.rows_by, *a2 = a1 + A.rows_by, *a3 = a2 + A.rows_by;
      vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
      int64_t p = 0;
      for (; p + W <= k; p += W) {
        vec xs = *(const vec *)(x + p);
        s0 += *(const vec *)(a0 + p) * xs, s1 += *(const vec *)(a1 + p) * xs;
        s2 += *(const vec *)(a2 + p) * xs, s3 += *(const vec *)(a3 + p) * xs;
      }
      double t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      UNROLLED for (int w = 0; w < W; ++w) t0 += s0[w], t1 += s1[w], t2 += s2[w], t3 += s3[w];
      for (; p < k; ++p) t0 += a0[p] * x[p], t1 += a1[p] * x[p], t2 += a2[p] * x[p], t3 += a3[p] * x[p];
      y[i * y_by] += alpha * t0, y[(i + 1) * y_by] += alpha * t1, y[(i + 2) * y_by] += alpha * t2,
          y[(i + 3) * y_by] += alpha * t3;
    }
    for (; i < m; ++i) {
      const double *a = &AT(A, i, 0);
      vec s = {0};
      int64_t p = 0;
      for (; p + W <= k; p += W) s += *(const vec *)(a + p) * *(const vec *)(x + p);
      double t = 0;
      UNROLLED for (int w = 0; w < W; ++w) t += s[w];
      for (; p < k; ++p) t += a[p] * x[p];
      y[i * y_by] += alpha * t;
    }
  } else {
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += AT(A, i, p) * x[p * x_by];
      y[i * y_by] += alpha * sum;
    }
  }
}

static void set_zero(int64_t m, int64_t n, dense_view C) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) AT(C, i, j) = 0;
}

void BLOCKS(multiply_add)(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                          dense_view C, int how) {
  int blocks = m > 1 && n > 1 && k > 1;
  if ((how & DENSE_FRESH) && !(blocks && (C.rows_by == 1 || C.columns_by == 1))) set_zero(m, n, C);
  if (m <= 0 || n <= 0 || k <= 0) return;
  if (n == 1) {
    multiply_vector(m, k, alpha, A, B.data, B.rows_by, C.data, C.rows_by);
  } else if (m == 1) {
    multiply_vector(n, k, alpha, dense_transposed(B), A.data, A.columns_by, C.data, C.columns_by);
  } else if (k == 1) {
    for (int64_t j = 0; j < n; ++j) {
      double factor = alpha * AT(B, 0, j);
      if (C.rows_by == 1 && A.rows_by == 1) {
        const double *restrict a = A.data;
        double *restrict c = &AT(C, 0, j);
        for (int64_t i = how & DENSE_LOWER ? j : 0; i < m; ++i) c[i] += factor * a[i];
      } else {
        for (int64_t i = how & DENSE_LOWER ? j : 0; i < m; ++i) AT(C, i, j) += factor * AT(A, i, 0);
      }
    }
  } else if (C.rows_by == 1) {
    multiply(ctx, m, n, k, alpha, A, B, C, how);
  } else if (C.columns_by == 1) {
    multiply(ctx, n, m, k, alpha, dense_transposed(B), dense_transposed(A), dense_transposed(C), how & DENSE_FRESH);
  } else {
    char *mark = ctx->arena_cursor;
    double *product = ulam_doubles(ctx, m * n);
    multiply(ctx, m, n, k, alpha, A, B, dense_of(product, m), DENSE_FRESH);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) AT(C, i, j) += product[i + j * m];
    ulam_release(ctx, mark);
  }
}

/* x := T^-1 x, T lower. */
static void solve_vector(int64_t n, dense_view T, int unit_diagonal, double *x, int64_t by) {
  enum { SIZE = 8 };
  for (int64_t j = 0; j < n; j += SIZE) {
    int64_t size = least(SIZE, n - j);
    if (T.columns_by == 1 && j) multiply_vector(size, j, -1.0, dense_block(T, j, 0), x, by, x + j * by, by);
    for (int64_t i = j; i < j + size; ++i) {
      double value = x[i * by];
      for (int64_t p = j; p < i; ++p) value -= AT(T, i, p) * x[p * by];
      x[i * by] = unit_diagonal ? value : value / AT(T, i, i);
    }
    if (T.columns_by != 1)
      multiply_vector(n - j - size, size, -1.0, dense_block(T, j + size, j), x + j * by, by, x + (j + size) * by, by);
  }
}

/* B := T^-1 B, T lower: columns of B in lanes, MR of them a panel; the rows above are subtracted by `update`. `T` is
 * packed, NR rows a time: before each group's own triangle come all columns to the left of it. */
static void solve_panel(int64_t n, dense_view T, const double *packed, int unit_diagonal, double *x) {
  for (int64_t i = 0; i < n; i += NR) {
    int64_t size = least(NR, n - i);
    if (i) update(i, x, MR, packed, NR, 1, NR, -1.0, x + i * MR, MR, MR, size, 0);
    packed += i * NR;
    for (int64_t c = 0; c < size; ++c) {
      double *target = x + (i + c) * MR;
      vec value[H];
      UNROLLED for (int h = 0; h < H; ++h) value[h] = *(const vec *)(target + h * W);
      for (int64_t p = 0; p < c; ++p) {
        double factor = AT(T, i + c, i + p);
        UNROLLED for (int h = 0; h < H; ++h) value[h] -= factor * *(const vec *)(x + (i + p) * MR + h * W);
      }
      if (!unit_diagonal) UNROLLED for (int h = 0; h < H; ++h) value[h] /= AT(T, i + c, i + c);
      UNROLLED for (int h = 0; h < H; ++h) *(vec *)(target + h * W) = value[h];
    }
  }
}

static void solve_lanes(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  char *mark = ctx->arena_cursor;
  double *x = ulam_doubles(ctx, n * MR), *packed = ulam_doubles(ctx, (n / NR + 1) * (n + NR) / 2 * NR), *to = packed;
  for (int64_t i = 0; i < n; to += i * NR, i += NR)
    pack_columns(least(NR, n - i), i, dense_transposed(dense_block(T, i, 0)), to);
  dense_view across = dense_transposed(B);
  for (int64_t c = 0; c < m; c += MR) {
    int64_t present = least(MR, m - c);
    dense_view columns = dense_block(across, c, 0);
    if (present < MR) memset(x, 0, (size_t)(n * MR) * sizeof *x);
    pack_panel(present, n, columns, x);
    solve_panel(n, T, packed, unit_diagonal, x);
    if (columns.columns_by == 1)
      for (int64_t r = 0; r < present; ++r)
        for (int64_t p = 0; p < n; ++p) columns.data[r * columns.rows_by + p] = x[p * MR + r];
    else
      for (int64_t p = 0; p < n; ++p)
        for (int64_t r = 0; r < present; ++r) AT(columns, r, p) = x[p * MR + r];
  }
  ulam_release(ctx, mark);
}

void BLOCKS(solve_lower)(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  enum { SIZE = 256 };
  if (n <= 0 || m <= 0) return;
  if (m == 1) {
    solve_vector(n, T, unit_diagonal, B.data, B.rows_by);
    return;
  }
  for (int64_t j = 0; j < n; j += SIZE) {
    int64_t size = least(SIZE, n - j), below = n - j - size;
    dense_view solved = dense_block(B, j, 0);
    solve_lanes(ctx, size, m, dense_block(T, j, j), unit_diagonal, solved);
    BLOCKS(multiply_add)(ctx, below, m, size, -1.0, dense_block(T, j + size, j), solved, dense_block(B, j + size, 0), 0);
  }
}

/* An upper triangle is a lower one in reversed order. */
void BLOCKS(solve_upper)(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  if (n <= 0 || m <= 0) return;
  dense_view reversed = {&AT(T, n - 1, n - 1), -T.rows_by, -T.columns_by};
  dense_view rows = {&AT(B, n - 1, 0), -B.rows_by, B.columns_by};
  BLOCKS(solve_lower)(ctx, n, m, reversed, unit_diagonal, rows);
}

/* Columns of a block in buffers of whole vectors. Where the matrix goes on behind a column, that is read, too. */
#define LOAD_COLUMN(height, to, from, leading, n, j)                                                 \
  if ((n - 1 - j) * leading + n >= height * W) {                                                     \
    UNROLLED for (int h = 0; h < height; ++h) *(vec *)(to + h * W) = *(const vec *)(from + h * W);   \
  } else {                                                                                           \
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];                                                 \
    for (int64_t i = n; i < height * W; ++i) to[i] = 0;                                              \
  }

/* Column j of a block without what those before it are in it, in registers; the root of its pivot is taken at the end. */
#define ELIMINATE(height, j, value, columns, inverses, far)                                           \
  for (int64_t p = 0; p < j; ++p) {                                                                   \
    const double *restrict left = columns + p * (height) * W;                                         \
    double scale = left[j] * inverses[p];                                                             \
    UNROLLED for (int h = 0; h < height; ++h) value[h] -= scale * *(const vec *)(left + h * W);       \
  }                                                                                                   \
  UNROLLED for (int h = 0; h < height; ++h) *(vec *)(columns + j * (height) * W + h * W) = value[h];  \
  double pivot = columns[j * (height) * W + j];                                                       \
  if (!(pivot > 1e-280 && pivot < 1e280)) return far;                                                 \
  inverses[j] = 1 / pivot;

/* The Cholesky factor L of a block A of at most `height` vectors of rows, column by column, each in registers. What is
 * above the diagonal is written, too. Columns are divided by the roots of their pivots at the end: no column waits for a
 * root, as it does not in an L D L' factorisation. Pivots are far from overflow and underflow, or `bad` is `FAR`. */
enum { FAR = -2 };
#define FACTOR(name, height)                                                                                         \
  static int64_t name(int64_t n, const double *A, int64_t leading, double *L) {                                      \
    enum { ROWS = height * W };                                                                                      \
    double columns[ROWS * ROWS] __attribute__((aligned(64))), inverses[ROWS];                                        \
    for (int64_t j = 0; j < n; ++j) {                                                                                \
      double *restrict column = columns + j * ROWS;                                                                  \
      const double *from = A + j * leading;                                                                          \
      vec value[height];                                                                                             \
      LOAD_COLUMN(height, column, from, leading, n, j)                                                               \
      UNROLLED for (int h = 0; h < height; ++h) value[h] = *(const vec *)(column + h * W);                           \
      ELIMINATE(height, j, value, columns, inverses, FAR)                                                            \
    }                                                                                                                \
    for (int64_t j = 0; j < n; ++j) {                                                                                \
      double *restrict to = L + j * leading, *restrict column = columns + j * ROWS, root = sqrt(column[j]),          \
             inverse = 1 / root;                                                                                     \
      UNROLLED for (int h = 0; h < height; ++h) {                                                                    \
        bits below = numbers(h) > j, here = numbers(h) == j;                                                         \
        vec quotient = *(const vec *)(column + h * W) * inverse;                                                     \
        *(bits *)(column + h * W) = ((bits)quotient & below) | ((bits)(root + (vec){0}) & here);                     \
      }                                                                                                              \
      if (leading == n && (n - j) * n >= ROWS) { /* what is written behind a column is overwritten by the next ones */ \
        UNROLLED for (int h = 0; h < height; ++h) *(vec *)(to + h * W) = *(const vec *)(column + h * W);             \
      } else {                                                                                                       \
        for (int64_t i = 0; i < n; ++i) to[i] = column[i];                                                           \
      }                                                                                                              \
    }                                                                                                                \
    return -1;                                                                                                       \
  }
FACTOR(factor_8, 8 / W)
FACTOR(factor_16, 16 / W)
FACTOR(factor_32, 32 / W)

/* The same with pivots of any size; L may be A. */
static int64_t factor_far(int64_t n, const double *A, int64_t leading, double *L) {
  for (int64_t j = 0; j < n; ++j) {
    double *column = L + j * leading;
    for (int64_t i = 0; i < j; ++i) column[i] = 0;
    for (int64_t i = j; i < n; ++i) column[i] = A[i + j * leading];
    for (int64_t p = 0; p < j; ++p)
      for (int64_t i = j; i < n; ++i) column[i] -= L[j + p * leading] * L[i + p * leading];
    if (!(column[j] > 0) || isinf(column[j])) return j;
    column[j] = sqrt(column[j]);
    for (int64_t i = j + 1; i < n; ++i) column[i] /= column[j];
  }
  return -1;
}

static int64_t factor_block(int64_t n, const double *A, int64_t leading, double *L) {
  int64_t bad = (n <= 8 ? factor_8 : n <= 16 ? factor_16 : factor_32)(n, A, leading, L);
  return bad == FAR ? factor_far(n, A, leading, L) : bad;
}

int64_t BLOCKS(factor)(ulam_context *ctx, int64_t n, const double *A, double *L) {
  if (n <= DIAGONAL) return factor_block(n, A, n, L);
  for (int64_t j = 0; j < n; ++j) memcpy(L + j + j * n, A + j + j * n, (size_t)(n - j) * sizeof *L);
  dense_view whole = dense_of(L, n);
  for (int64_t j = 0; j < n; j += DIAGONAL) {
    int64_t size = least(DIAGONAL, n - j), below = n - j - size;
    double *diagonal = &AT(whole, j, j);
    int64_t bad = factor_block(size, diagonal, n, diagonal);
    if (bad >= 0) return j + bad;
    dense_view panel = dense_block(whole, j + size, j);
    BLOCKS(solve_lower)(ctx, size, below, dense_block(whole, j, j), 0, dense_transposed(panel));
    BLOCKS(multiply_add)(ctx, below, below, size, -1.0, panel, dense_transposed(panel), dense_block(whole, j + size, j + size), DENSE_LOWER);
  }
  for (int64_t j = 0; j < n; ++j) memset(L + j * n, 0, (size_t)j * sizeof *L); /* the updates wrote there */
  return -1;
}

/* From the adjoint G of a factor (lower triangle) to that of the matrix, in place, for a block: the statements of the
 * factorisation by columns, in reverse. Both are kept by rows, so that all rows are vectors of what is on the left; what
 * is right of a row's column is not used again. */
#define PULL_BACK(name, height)                                                                                  \
  static void name(int64_t n, const double *restrict L, double *restrict G, int64_t leading, int64_t g_leading) { \
    enum { ROW = height * W };                                                                                   \
    double rows[ROW * ROW] __attribute__((aligned(64))), adjoints[ROW * ROW] __attribute__((aligned(64)));       \
    for (int64_t i = 0; i < n; ++i) UNROLLED for (int h = 0; h < height; ++h)                                    \
      *(vec *)(rows + i * ROW + h * W) = *(vec *)(adjoints + i * ROW + h * W) = (vec){0};                        \
    for (int64_t j = 0; j < n; ++j) {                                                                            \
      const double *restrict column = L + j * leading, *restrict adjoint = G + j * g_leading;                    \
      for (int64_t i = j; i < n; ++i) {                                                                          \
        rows[i * ROW + j] = column[i];                                                                           \
        adjoints[i * ROW + j] = adjoint[i];                                                                      \
      }                                                                                                          \
    }                                                                                                            \
    for (int64_t j = n - 1; j >= 0; --j) {                                                                       \
      double inverse = 1 / rows[j * ROW + j], of_diagonal = adjoints[j * ROW + j];                               \
      double *restrict result = G + j * g_leading;                                                               \
      vec row[height], sum[height];                                                                              \
      UNROLLED for (int h = 0; h < height; ++h) {                                                                \
        row[h] = *(const vec *)(rows + j * ROW + h * W);                                                         \
        row[h] = (vec)((bits)row[h] & (numbers(h) < j));                                                         \
        sum[h] = *(const vec *)(adjoints + j * ROW + h * W);                                                     \
      }                                                                                                          \
      for (int64_t i = j + 1; i < n; ++i) {                                                                      \
        const double *restrict below = rows + i * ROW;                                                           \
        double *restrict adjoint = adjoints + i * ROW;                                                           \
        double element = adjoint[j] * inverse;                                                                   \
        of_diagonal -= element * below[j];                                                                       \
        UNROLLED for (int h = 0; h < height; ++h) {                                                              \
          sum[h] -= element * *(const vec *)(below + h * W);                                                     \
          *(vec *)(adjoint + h * W) -= element * row[h];                                                         \
        }                                                                                                        \
        result[i] = element;                                                                                     \
      }                                                                                                          \
      of_diagonal *= inverse;                                                                                    \
      UNROLLED for (int h = 0; h < height; ++h)                                                                  \
        *(vec *)(adjoints + j * ROW + h * W) = sum[h] - of_diagonal * row[h];                                    \
      result[j] = 0.5 * of_diagonal;                                                                             \
    }                                                                                                            \
  }
PULL_BACK(pull_back_16, 16 / W)

/* The same for a few rows, by scalars. */
static void pull_back_few(int64_t n, const double *restrict L, double *restrict G, int64_t leading, int64_t g_leading) {
  for (int64_t j = n - 1; j >= 0; --j) {
    double inverse = 1 / L[j + j * leading], of_diagonal = G[j + j * g_leading];
    for (int64_t i = n - 1; i > j; --i) {
      double element = G[i + j * g_leading] * inverse;
      of_diagonal -= element * L[i + j * leading];
      G[i + j * g_leading] = element;
      for (int64_t k = 0; k < j; ++k) {
        G[i + k * g_leading] -= element * L[j + k * leading];
        G[j + k * g_leading] -= element * L[i + k * leading];
      }
    }
    of_diagonal *= inverse;
    G[j + j * g_leading] = 0.5 * of_diagonal;
    for (int64_t k = 0; k < j; ++k) G[j + k * g_leading] -= of_diagonal * L[j + k * leading];
  }
}

static void pull_back_block(int64_t n, const double *L, double *G, int64_t leading, int64_t g_leading) {
  (n <= FEW ? pull_back_few : pull_back_16)(n, L, G, leading, g_leading);
}

/* The same for any size, by blocks from the last to the first: twice the work of the factorisation, nearly all of it
 * products. Murray (2016), "Differentiation of the Cholesky decomposition", section 4.2. */
void BLOCKS(pull_back)(ulam_context *ctx, int64_t n, const double *L, double *G) {
  char *mark = ctx->arena_cursor;
  double *symmetric = ulam_doubles(ctx, PULLED * PULLED);
  dense_view factor = dense_of(L, n), adjoint = dense_of(G, n);
  for (int64_t end = n; end > 0;) {
    int64_t size = end % PULLED ? end % PULLED : PULLED, begin = end - size, below = n - end;
    dense_view left = dense_block(factor, begin, 0), left_adj = dense_block(adjoint, begin, 0),
               panel = dense_block(factor, end, begin), panel_adj = dense_block(adjoint, end, begin),
               diagonal = dense_block(factor, begin, begin), diagonal_adj = dense_block(adjoint, begin, begin);
    BLOCKS(solve_upper)(ctx, size, below, dense_transposed(diagonal), 0, dense_transposed(panel_adj));
    BLOCKS(multiply_add)(ctx, below, begin, size, -1.0, panel_adj, left, dense_block(adjoint, end, 0), 0);
    BLOCKS(multiply_add)(ctx, size, size, below, -1.0, dense_transposed(panel_adj), panel, diagonal_adj, DENSE_LOWER);
    pull_back_block(size, diagonal.data, diagonal_adj.data, n, n);
    for (int64_t j = 0; j < size; ++j)
      for (int64_t i = j; i < size; ++i) {
        double element = AT(diagonal_adj, i, j);
        symmetric[i + j * size] = symmetric[j + i * size] = i == j ? 2 * element : element;
      }
    BLOCKS(multiply_add)(ctx, size, begin, below, -1.0, dense_transposed(panel_adj), dense_block(factor, end, 0), left_adj, 0);
    BLOCKS(multiply_add)(ctx, size, begin, size, -1.0, dense_of(symmetric, size), left, left_adj, 0);
    end = begin;
  }
  ulam_release(ctx, mark);
}

#include "blocks_of_terms.h"
#include "blocks_of_eigenvectors.h"
#include "blocks_of_columns.h"
