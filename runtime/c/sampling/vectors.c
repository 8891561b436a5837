#include "vectors.h"

#include <stdlib.h>

double *vector_new(vector_store *store, int64_t n) {
  if (store->count == store->capacity) {
    int64_t capacity = 2 * store->capacity + 32;
    void **grown = realloc(store->blocks, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return NULL;
    store->blocks = grown;
    store->capacity = capacity;
  }
  char *block = calloc((size_t)groups_of(n) + 1, sizeof(lanes));
  if (block == NULL) return NULL;
  store->blocks[store->count++] = block;
  return (double *)(block + (-(uintptr_t)block & (sizeof(lanes) - 1)));
}

ULAM_CLONES double lanes_dot(const double *a, const double *b, int64_t groups) {
  lanes sum = {0};
  for (int64_t k = 0; k < groups; ++k) sum += in_lanes(a)[k] * in_lanes(b)[k];
  return SUM_OF_LANES(sum);
}

void vectors_free(vector_store *store) {
  for (int64_t i = 0; i < store->count; ++i) free(store->blocks[i]);
  free(store->blocks);
}
