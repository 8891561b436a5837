/* The arena of a context, and memory of bound data. guard_pages.c has the same for builds with guard pages.
 *
 * The arena is a list of chunks with bump allocation. One evaluation may spread over several chunks; when it is over
 * they become one that is large enough for all of them, so a repeated evaluation meets a single chunk and no malloc.
 */
#ifndef ULAM_GUARD_PAGES

#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <stdlib.h>

#include "memory.h"
#include "services.h"

enum { ALIGNMENT = 64, FIRST_CHUNK = 1 << 16 };

/* Where much is read in any order, pages are looked up more slowly than memory: large ones, as NumPy has them. */
#if defined(__linux__) && defined(MADV_HUGEPAGE)
static void ask_for_large_pages(char *start, char *end) {
  enum { WORTH = 1 << 22, PAGE = 1 << 12 };
  uintptr_t first = ((uintptr_t)start + PAGE - 1) & ~(uintptr_t)(PAGE - 1), last = (uintptr_t)end & ~(uintptr_t)(PAGE - 1);
  if (end - start >= WORTH) madvise((void *)first, last - first, MADV_HUGEPAGE); /* it may be refused */
}
#else
static void ask_for_large_pages(char *start, char *end) { (void)start, (void)end; }
#endif

static ulam_chunk *chunk_new(int64_t bytes) {
  /* The header and the slack of aligning are in the same block; so is that behind the end, for reading ahead. */
  if (bytes < 0 || bytes > INT64_MAX / 4) return NULL;
  if (bytes > ULAM_LARGE_BLOCK && bytes > ulam_available_bytes()) return NULL;
  char *block = malloc(sizeof(ulam_chunk) + ALIGNMENT + ULAM_SLACK + (size_t)bytes);
  if (block == NULL) return NULL;
  ulam_chunk *chunk = (ulam_chunk *)block;
  uintptr_t after_header = (uintptr_t)block + sizeof(ulam_chunk);
  uintptr_t start = (after_header + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
  chunk->previous = NULL;
  chunk->start = (char *)start;
  chunk->end = chunk->start + bytes;
  ask_for_large_pages(chunk->start, chunk->end);
  return chunk;
}

static void enter_chunk(ulam_context *ctx, ulam_chunk *chunk) {
  ctx->services->chunks = chunk;
  ctx->arena_start = ctx->arena_cursor = chunk->start;
  ctx->arena_end = chunk->end;
}

int ulam_arena_begin(ulam_context *ctx, int64_t keep_bytes) {
  struct ulam_services *services = ctx->services;
  ulam_chunk *chunk = chunk_new(FIRST_CHUNK);
  if (chunk == NULL) return 0;
  services->keep_bytes = keep_bytes < FIRST_CHUNK ? FIRST_CHUNK : keep_bytes;
  services->held_bytes = FIRST_CHUNK;
  enter_chunk(ctx, chunk);
  return 1;
}

void ulam_arena_end(ulam_context *ctx) {
  for (ulam_chunk *chunk = ctx->services->chunks, *previous; chunk; chunk = previous) {
    previous = chunk->previous;
    free(chunk);
  }
  free(ctx->services->spare);
}

void *ulam_arena_grow(ulam_context *ctx, int64_t bytes) {
  struct ulam_services *services = ctx->services;
  ulam_mask();
  if (bytes < 0 || bytes > INT64_MAX / 4) ulam_out_of_memory(ctx, bytes);
  int64_t block = (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1);
  ulam_chunk *chunk = services->spare;
  services->spare = NULL;
  if (chunk != NULL && chunk->end - chunk->start < block) {
    services->held_bytes -= chunk->end - chunk->start;
    free(chunk);
    chunk = NULL;
  }
  if (chunk == NULL) {
    int64_t size = services->held_bytes < block ? block : services->held_bytes; /* at least doubles what is held */
    chunk = chunk_new(size);
    if (chunk == NULL && size > block) chunk = chunk_new(size = block);
    if (chunk == NULL) ulam_out_of_memory(ctx, bytes);
    services->held_bytes += size;
  }
  chunk->previous = services->chunks;
  enter_chunk(ctx, chunk);
  ctx->arena_cursor = chunk->start + block;
  ulam_unmask();
  return chunk->start;
}

void ulam_arena_release(ulam_context *ctx, char *mark) {
  struct ulam_services *services = ctx->services;
  ulam_chunk *chunk = services->chunks;
  ulam_mask();
  while (chunk->previous != NULL && !(chunk->start <= mark && mark <= chunk->end)) {
    ulam_chunk *previous = chunk->previous;
    ulam_chunk *discarded = chunk;
    if (services->spare == NULL || services->spare->end - services->spare->start < chunk->end - chunk->start) {
      discarded = services->spare;
      services->spare = chunk;
    }
    if (discarded != NULL) {
      services->held_bytes -= discarded->end - discarded->start;
      free(discarded);
    }
    chunk = previous;
  }
  enter_chunk(ctx, chunk);
  ctx->arena_cursor = mark;
  ulam_unmask();
}

/* The evaluation is over: one chunk for what it needed, but no more than the context may keep. */
void ulam_arena_reset(ulam_context *ctx) {
  struct ulam_services *services = ctx->services;
  ulam_chunk *chunk = services->chunks;
  if (chunk->previous == NULL && services->spare == NULL && services->held_bytes <= services->keep_bytes) {
    ctx->arena_cursor = chunk->start;
    return;
  }
  int64_t size = services->held_bytes < services->keep_bytes ? services->held_bytes : services->keep_bytes;
  while (chunk->previous != NULL) {
    ulam_chunk *previous = chunk->previous;
    free(chunk);
    chunk = previous;
  }
  free(services->spare);
  services->spare = NULL;
  services->held_bytes = chunk->end - chunk->start;
  ulam_chunk *joined = chunk_new(size);
  if (joined != NULL) {
    free(chunk);
    chunk = joined;
    services->held_bytes = size;
  }
  enter_chunk(ctx, chunk);
}

struct ulam_bound_memory {
  ulam_chunk *chunks;
  char *cursor, *end;
};

ulam_bound_memory *ulam_bound_memory_new(void) { return calloc(1, sizeof(ulam_bound_memory)); }

void ulam_bound_memory_free(ulam_bound_memory *memory) {
  if (memory == NULL) return;
  for (ulam_chunk *chunk = memory->chunks, *previous; chunk; chunk = previous) {
    previous = chunk->previous;
    free(chunk);
  }
  free(memory);
}

void *ulam_bound_memory_alloc(ulam_bound_memory *memory, int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 4) return NULL;
  int64_t block = (bytes + ALIGNMENT - 1) & ~(int64_t)(ALIGNMENT - 1);
  if (block == 0) block = ALIGNMENT; /* an address even for nothing: NULL means that there is no memory */
  if (block > memory->end - memory->cursor) {
    ulam_chunk *chunk = chunk_new(block < FIRST_CHUNK ? FIRST_CHUNK : block);
    if (chunk == NULL) return NULL;
    chunk->previous = memory->chunks;
    memory->chunks = chunk;
    memory->cursor = chunk->start;
    memory->end = chunk->end;
  }
  char *result = memory->cursor;
  memory->cursor += block;
  return result;
}

#endif
