/* Matrix product. Small ones run over columns directly; larger ones are packed into panels for a register-blocked
 * inner kernel (Goto and van de Geijn, 2008), of which there is one for each length of the processor's vectors. All of
 * them add in the same order, so they give the same bits.
 */
#include "dense.h"

enum {
  MR = 8, NR = 6,              /* the block of C in registers */
  MC = 96, KC = 192, NC = 480, /* the blocks of A and B in cache */
  SMALL = 1000,                /* products below this many multiplications are not packed */
};

typedef double v8 __attribute__((vector_size(64), aligned(8)));

ULAM_CLONES static void add_scaled(int64_t n, double factor, const double *restrict x, double *restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/* Four columns at a time: a quarter of the loads and stores of y. */
ULAM_CLONES static void add_columns(int64_t m, int64_t k, double alpha, const double *restrict A, int64_t leading,
                                    const double *restrict b, int64_t by, double *restrict y) {
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    const double *a0 = A + p * leading, *a1 = a0 + leading, *a2 = a1 + leading, *a3 = a2 + leading;
    double b0 = alpha * b[p * by], b1 = alpha * b[(p + 1) * by], b2 = alpha * b[(p + 2) * by],
           b3 = alpha * b[(p + 3) * by];
    for (int64_t i = 0; i < m; ++i) y[i] += ((b0 * a0[i] + b1 * a1[i]) + (b2 * a2[i] + b3 * a3[i]));
  }
  for (; p < k; ++p) {
    const double *a = A + p * leading;
    double factor = alpha * b[p * by];
    for (int64_t i = 0; i < m; ++i) y[i] += factor * a[i];
  }
}

ULAM_CLONES static double dot(int64_t n, const double *restrict x, const double *restrict y) {
  v8 sums = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) sums += *(const v8 *)(x + i) * *(const v8 *)(y + i);
  double sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

/* Panels of MR rows (or NR columns), each p-major, the last one filled up with zeros. */
static void pack(int64_t count, int64_t k, int64_t width, dense_view a, double *restrict to) {
  for (int64_t i = 0; i < count; i += width) {
    int64_t present = count - i < width ? count - i : width;
    for (int64_t p = 0; p < k; ++p, to += width) {
      const double *from = &AT(a, i, p);
      for (int64_t r = 0; r < present; ++r) to[r] = from[r * a.rows_by];
      for (int64_t r = present; r < width; ++r) to[r] = 0;
    }
  }
}

/* An MR x NR block, MR numbers for each of its columns: sums[j] = sum over p of a[p] * b[p][j]. So many `rows` of it at
 * a time that its sums, with a column of A, fit into the registers. */
#define REGISTER_BLOCK(name, vector, rows)                                                                         \
  static inline __attribute__((always_inline)) void name(int64_t k, const double *restrict a,                       \
                                                         const double *restrict b, double *restrict sums) {         \
    enum { WIDTH = sizeof(vector) / sizeof(double), HEIGHT = rows / WIDTH };                                        \
    for (int64_t first = 0; first < MR; first += rows) {                                                            \
      const double *restrict x = a + first, *restrict y = b;                                                        \
      vector sum[NR][HEIGHT] = {{{0}}};                                                                             \
      for (int64_t p = 0; p < k; ++p, x += MR, y += NR) {                                                           \
        vector column[HEIGHT];                                                                                      \
        _Pragma("GCC unroll 4") for (int h = 0; h < HEIGHT; ++h) column[h] = *(const vector *)(x + h * WIDTH);      \
        _Pragma("GCC unroll 6") for (int j = 0; j < NR; ++j)                                                        \
          _Pragma("GCC unroll 4") for (int h = 0; h < HEIGHT; ++h) sum[j][h] += column[h] * y[j];                   \
      }                                                                                                             \
      _Pragma("GCC unroll 6") for (int j = 0; j < NR; ++j)                                                          \
        _Pragma("GCC unroll 4") for (int h = 0; h < HEIGHT; ++h)                                                    \
          *(vector *)(sums + j * MR + first + h * WIDTH) = sum[j][h];                                               \
    }                                                                                                               \
  }
typedef double v2 __attribute__((vector_size(16), aligned(8)));
typedef double v4 __attribute__((vector_size(32), aligned(8)));
REGISTER_BLOCK(register_block_of_2, v2, 4)
REGISTER_BLOCK(register_block_of_4, v4, 8)
REGISTER_BLOCK(register_block_of_8, v8, 8)

typedef void register_block(int64_t k, const double *restrict a, const double *restrict b, double *restrict sums);

/* C += alpha times the product of packed panels of A and B. */
static inline __attribute__((always_inline)) void add_products(register_block *multiply_block, int64_t m, int64_t n,
                                                               int64_t k, double alpha, const double *packed_a,
                                                               const double *packed_b, dense_view C) {
  double block[MR * NR] __attribute__((aligned(64)));
  for (int64_t j = 0; j < n; j += NR)
    for (int64_t i = 0; i < m; i += MR) {
      multiply_block(k, packed_a + i * k, packed_b + j * k, block);
      int64_t rows = m - i < MR ? m - i : MR, columns = n - j < NR ? n - j : NR;
      for (int64_t c = 0; c < columns; ++c) {
        double *to = &AT(C, i, j + c);
        if (rows == MR && C.rows_by == 1)
          for (int64_t r = 0; r < MR; ++r) to[r] += alpha * block[c * MR + r];
        else
          for (int64_t r = 0; r < rows; ++r) to[r * C.rows_by] += alpha * block[c * MR + r];
      }
    }
}

#define PANELS \
  int64_t m, int64_t n, int64_t k, double alpha, const double *packed_a, const double *packed_b, dense_view C
#define ADD_PRODUCTS(width) add_products(register_block_of_##width, m, n, k, alpha, packed_a, packed_b, C)
#ifdef ULAM_SEVERAL_PROCESSORS
__attribute__((target("avx512f"))) static void multiply_panels_of_8(PANELS) { ADD_PRODUCTS(8); }
__attribute__((target("avx2"))) static void multiply_panels_of_4(PANELS) { ADD_PRODUCTS(4); }
static void multiply_panels_of_2(PANELS) { ADD_PRODUCTS(2); }
static void multiply_panels(PANELS) {
  (__builtin_cpu_supports("avx512f") ? multiply_panels_of_8
   : __builtin_cpu_supports("avx2")  ? multiply_panels_of_4
                                     : multiply_panels_of_2)(m, n, k, alpha, packed_a, packed_b, C);
}
#elif defined(__AVX512F__)
static void multiply_panels(PANELS) { ADD_PRODUCTS(8); }
#elif defined(__AVX2__)
static void multiply_panels(PANELS) { ADD_PRODUCTS(4); }
#else
static void multiply_panels(PANELS) { ADD_PRODUCTS(2); }
#endif

static void multiply_packed(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A,
                            dense_view B, dense_view C) {
  char *mark = ctx->arena_cursor;
  double *packed_a = ulam_doubles(ctx, (MC + MR) * KC), *packed_b = ulam_doubles(ctx, (NC + NR) * KC);
  for (int64_t j = 0; j < n; j += NC) {
    int64_t columns = n - j < NC ? n - j : NC;
    for (int64_t p = 0; p < k; p += KC) {
      int64_t depth = k - p < KC ? k - p : KC;
      pack(columns, depth, NR, dense_transposed(dense_block(B, p, j)), packed_b);
      for (int64_t i = 0; i < m; i += MC) {
        int64_t rows = m - i < MC ? m - i : MC;
        pack(rows, depth, MR, dense_block(A, i, p), packed_a);
        multiply_panels(rows, columns, depth, alpha, packed_a, packed_b, dense_block(C, i, j));
      }
    }
  }
  ulam_release(ctx, mark);
}

/* One column of C. */
static void multiply_vector(int64_t m, int64_t k, double alpha, dense_view A, const double *b, int64_t b_by, double *c,
                            int64_t c_by) {
  if (A.rows_by == 1 && c_by == 1)
    add_columns(m, k, alpha, A.data, A.columns_by, b, b_by, c);
  else if (A.columns_by == 1 && b_by == 1)
    for (int64_t i = 0; i < m; ++i) c[i * c_by] += alpha * dot(k, A.data + i * A.rows_by, b);
  else
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += AT(A, i, p) * b[p * b_by];
      c[i * c_by] += alpha * sum;
    }
}

void dense_multiply_add(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                        dense_view C) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  if (n == 1) {
    multiply_vector(m, k, alpha, A, B.data, B.rows_by, C.data, C.rows_by);
  } else if (m == 1) {
    multiply_vector(n, k, alpha, dense_transposed(B), A.data, A.columns_by, C.data, C.columns_by);
  } else if (k == 1 && C.rows_by == 1 && A.rows_by == 1) {
    for (int64_t j = 0; j < n; ++j) add_scaled(m, alpha * AT(B, 0, j), A.data, C.data + j * C.columns_by);
  } else if ((double)m * (double)n * (double)k < SMALL) {
    if (C.rows_by != 1 && C.columns_by == 1) {
      dense_view swapped = A;
      A = dense_transposed(B), B = dense_transposed(swapped), C = dense_transposed(C);
      int64_t rows = m;
      m = n, n = rows;
    }
    for (int64_t j = 0; j < n; ++j)
      multiply_vector(m, k, alpha, A, &AT(B, 0, j), B.rows_by, &AT(C, 0, j), C.rows_by);
  } else {
    multiply_packed(ctx, m, n, k, alpha, A, B, C);
  }
}
