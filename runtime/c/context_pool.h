/* Idle contexts, for any number of threads at once. */
#ifndef ULAM_CONTEXT_POOL_H
#define ULAM_CONTEXT_POOL_H

#include "context.h"

enum { ULAM_POOLED = 64 }; /* as many as threads evaluated at once, up to this */

/* All zero: there are none. */
typedef struct {
  ulam_context *idle[ULAM_POOLED]; /* taken and given back by exchanging one of them with NULL */
} ulam_context_pool;

ulam_context *ulam_pool_take(ulam_context_pool *pool); /* NULL: out of memory */
void ulam_pool_give(ulam_context_pool *pool, ulam_context *ctx);
void ulam_pool_clear(ulam_context_pool *pool);

#endif
