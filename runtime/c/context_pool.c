#include "context_pool.h"

#include "interrupts.h"

static const int64_t keep_bytes = (int64_t)256 << 20; /* of arena memory, by a context */

/* Where the calling thread begins to look, so that threads do not take turns at one place. */
static int first_place(void) {
  static ULAM_THREAD_LOCAL int own = -1;
  static int threads = 0;
  if (own < 0) own = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED) & (ULAM_POOLED - 1);
  return own;
}

ulam_context *ulam_pool_take(ulam_context_pool *pool) {
  for (int i = 0, place = first_place(); i < ULAM_POOLED; ++i, place = (place + 1) & (ULAM_POOLED - 1)) {
    if (__atomic_load_n(&pool->idle[place], __ATOMIC_RELAXED) == NULL) continue;
    ulam_context *found = __atomic_exchange_n(&pool->idle[place], NULL, __ATOMIC_ACQUIRE);
    if (found) return found;
  }
  return ulam_context_new(keep_bytes);
}

void ulam_pool_give(ulam_context_pool *pool, ulam_context *ctx) {
  for (int i = 0, place = first_place(); i < ULAM_POOLED; ++i, place = (place + 1) & (ULAM_POOLED - 1)) {
    ulam_context *expected = NULL;
    if (__atomic_compare_exchange_n(&pool->idle[place], &expected, ctx, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      return;
  }
  ulam_context_free(ctx);
}

void ulam_pool_clear(ulam_context_pool *pool) {
  for (int i = 0; i < ULAM_POOLED; ++i) {
    ulam_context_free(pool->idle[i]);
    pool->idle[i] = NULL;
  }
}
