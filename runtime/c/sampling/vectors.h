/* Vectors of a chain: padded with zeros to whole groups of numbers, so that loops have no remainder, and aligned.
 *
 * Sums have one accumulator for each place of a group, added up in one order: the same bits on every processor.
 */
#ifndef ULAM_SAMPLING_VECTORS_H
#define ULAM_SAMPLING_VECTORS_H

#include <stdint.h>

#include "dense.h"

typedef double lanes __attribute__((vector_size(64), may_alias));
enum { LANES = 8 };

static inline int64_t groups_of(int64_t n) { return (n + LANES - 1) / LANES; }

/* What a chain has allocated, to be freed all at once: its vectors change their owners. */
typedef struct {
  void **blocks;
  int64_t count, capacity;
} vector_store;

double *vector_new(vector_store *store, int64_t n); /* zeros; NULL if there is no memory */
void vectors_free(vector_store *store);

static inline void vector_swap(double **a, double **b) {
  double *held = *a;
  *a = *b;
  *b = held;
}

static inline void vector_copy(double *to, const double *from, int64_t n) {
  memcpy(to, from, (size_t)groups_of(n) * sizeof(lanes));
}

#define LANES_INLINE static inline __attribute__((always_inline))
LANES_INLINE const lanes *in_lanes(const double *x) { return (const lanes *)x; }
LANES_INLINE lanes *to_lanes(double *x) { return (lanes *)x; }
/* The sum of products of so many groups. */
double lanes_dot(const double *a, const double *b, int64_t groups);
#define SUM_OF_LANES(v) ((((v)[0] + (v)[4]) + ((v)[2] + (v)[6])) + (((v)[1] + (v)[5]) + ((v)[3] + (v)[7])))

#endif
