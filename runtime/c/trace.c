#include "trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "services.h"

typedef struct {
  char *base; /* NULL: gone */
  int64_t used;
  int32_t borrowed; /* not ours: mapped from a file, or read from a saved trace */
} chunk;

/* A call that is open where records begin, because those before were dropped. */
typedef struct {
  int32_t left, returning;
} open_call;

/* The same with what tells where it went on. `latest`: the place of its last record; positions without parameters. */
typedef struct {
  int64_t first, latest, steps, position;
  int32_t left, returning;
} open_frame;

struct ulam_trace {
  char *cursor, *end; /* read and written by emitted code: the first two fields */
  const int64_t *drawn; /* read by emitted code: how many random numbers were taken */
  int32_t mode;
  int64_t chunk_bytes, limit;
  chunk *chunks;
  int64_t count, capacity, first_kept;
  char **idle; /* chunks for later */
  int64_t idle_count, idle_capacity;
  int64_t held; /* bytes of chunks in memory, idle ones apart */
  int64_t dropped;
  open_frame *open; /* the calls that were open at the end of chunk `walked` - 1 */
  int64_t depth, open_capacity, walked, walked_nodes; /* the last: of the chunk walked last */
  const ulam_trace_block *blocks;
  int64_t block_count;
  char *side; /* contents of containers */
  int64_t side_bytes, side_capacity;
  unsigned char *edges;
  int64_t edge_bytes, edge_capacity, edge_width;
  FILE *file;
  int32_t failed;
};

_Static_assert(offsetof(struct ulam_trace, cursor) == 0 && offsetof(struct ulam_trace, end) == 8 &&
                   offsetof(struct ulam_trace, drawn) == 16,
               "emitted code");

static const int64_t no_draws = 0;

ulam_trace *ulam_trace_new(int64_t chunk_bytes, int64_t limit, int32_t mode, const char *spill_path) {
  ulam_trace *trace = calloc(1, sizeof *trace);
  if (trace == NULL) return NULL;
  trace->chunk_bytes = chunk_bytes;
  trace->limit = limit;
  trace->mode = mode;
  if (mode == ULAM_TRACE_SPILL) {
    trace->file = fopen(spill_path, "w+b");
    if (trace->file == NULL) {
      free(trace);
      return NULL;
    }
    setvbuf(trace->file, NULL, _IONBF, 0); /* chunks are large enough */
  }
  return trace;
}

static void forget(ulam_trace *trace, chunk *old) {
  if (old->base == NULL) return;
  if (old->borrowed) {
    old->base = NULL;
    return;
  }
  if (trace->idle_count == trace->idle_capacity) {
    int64_t capacity = 2 * trace->idle_capacity + 16;
    char **idle = realloc(trace->idle, (size_t)capacity * sizeof *idle);
    if (idle == NULL) {
      free(old->base);
      old->base = NULL;
      return;
    }
    trace->idle = idle;
    trace->idle_capacity = capacity;
  }
  trace->idle[trace->idle_count++] = old->base;
  old->base = NULL;
  trace->held -= trace->chunk_bytes;
}

static void forget_all(ulam_trace *trace) {
  for (int64_t i = trace->count; i-- > 0;) forget(trace, &trace->chunks[i]);
  trace->count = trace->first_kept = 0;
  trace->cursor = trace->end = NULL;
}

void ulam_trace_free(ulam_trace *trace) {
  if (trace == NULL) return;
  forget_all(trace);
  for (int64_t i = 0; i < trace->idle_count; ++i) free(trace->idle[i]);
  if (trace->file) fclose(trace->file);
  free(trace->idle);
  free(trace->chunks);
  free(trace->side);
  free(trace->edges);
  free(trace->open);
  free(trace);
}

void ulam_trace_begin(ulam_trace *trace, const ulam_trace_block *blocks, int64_t count) {
  forget_all(trace);
  trace->blocks = blocks;
  trace->block_count = count;
  trace->dropped = trace->side_bytes = trace->edge_bytes = 0;
  trace->depth = trace->walked = 0;
  trace->edge_width = count <= 256 ? 1 : count <= 65536 ? 2 : 4;
  trace->failed = 0;
  trace->drawn = &no_draws;
  if (trace->file) rewind(trace->file);
}

void ulam_trace_watch(ulam_trace *trace, const int64_t *drawn) { trace->drawn = drawn ? drawn : &no_draws; }

static char *take(ulam_trace *trace) {
  if (trace->idle_count > 0) return trace->idle[--trace->idle_count];
  return malloc((size_t)trace->chunk_bytes);
}

void ulam_trace_touch(ulam_trace *trace, int64_t bytes) {
  int64_t wanted = (bytes + trace->chunk_bytes - 1) / trace->chunk_bytes;
  for (int64_t i = trace->idle_count; i < wanted; ++i) {
    chunk fresh = {malloc((size_t)trace->chunk_bytes), 0, 0};
    if (fresh.base == NULL) return;
    for (int64_t at = 0; at < trace->chunk_bytes; at += 4096) ((volatile char *)fresh.base)[at] = 0;
    trace->held += trace->chunk_bytes;
    forget(trace, &fresh);
  }
}

/* A record's block; a damaged one ends the reading. */
static inline int32_t block_of(const ulam_trace *trace, const char *record) {
  int32_t number;
  memcpy(&number, record, sizeof number);
  return number > 0 && number < trace->block_count ? number : 0;
}

static int append(char **bytes, int64_t *length, int64_t *capacity, const void *data, int64_t size) {
  if (*length + size > *capacity) {
    int64_t larger = 2 * *capacity + size + 4096;
    char *grown = realloc(*bytes, (size_t)larger);
    if (grown == NULL) return 0;
    *bytes = grown;
    *capacity = larger;
  }
  memcpy(*bytes + *length, data, (size_t)size);
  *length += size;
  return 1;
}

/* Room for the numbers of all blocks of a chunk; where they go. NULL if there is no memory. */
static unsigned char *room_for_edges(ulam_trace *trace, const chunk *full) {
  int64_t most = trace->edge_bytes + full->used / 8 * trace->edge_width;
  if (most > trace->edge_capacity) {
    int64_t capacity = trace->edge_capacity + (trace->edge_capacity >> 2) + most - trace->edge_bytes;
    unsigned char *grown = realloc(trace->edges, (size_t)capacity);
    if (grown == NULL) return NULL;
    trace->edges = grown;
    trace->edge_capacity = capacity;
  }
  return trace->edges + trace->edge_bytes;
}

static void out_of_memory(void) {
  fprintf(stderr, "ulam: no memory for a trace\n");
  abort();
}

static void walk_record(ulam_trace *trace, const ulam_trace_block *block, int64_t place) {
  if (trace->depth == 0 || trace->open[trace->depth - 1].left > 0) {
    if (trace->depth > 0) --trace->open[trace->depth - 1].left;
    if (trace->depth == trace->open_capacity) {
      trace->open_capacity = 2 * trace->open_capacity + 64;
      trace->open = realloc(trace->open, (size_t)trace->open_capacity * sizeof *trace->open);
      if (trace->open == NULL) out_of_memory();
    }
    trace->open[trace->depth++] = (open_frame){place, place, 0, 0, 0, 0};
  }
  open_frame *top = &trace->open[trace->depth - 1];
  top->latest = place;
  ++top->steps;
  top->position += block->nodes;
  top->left = block->children;
  top->returning = block->returns;
  while (trace->depth > 0 && trace->open[trace->depth - 1].returning && trace->open[trace->depth - 1].left == 0)
    --trace->depth;
}

/* Follows the calls through a chunk; returns how many nodes it has. */
static int64_t walk_chunk(ulam_trace *trace, int64_t number) {
  int64_t nodes = 0;
  const chunk *done = &trace->chunks[number];
  const ulam_trace_block *blocks = trace->blocks;
  open_frame *top = trace->depth > 0 ? &trace->open[trace->depth - 1] : NULL;
  unsigned char *edges = NULL;
  if (trace->mode == ULAM_TRACE_EDGES && (edges = room_for_edges(trace, done)) == NULL) trace->failed = 1;
  for (int64_t offset = 0; offset < done->used;) {
    int32_t block = block_of(trace, done->base + offset);
    if (block == 0) break;
    int64_t place = number * trace->chunk_bytes + offset;
    if (top != NULL && (top->left | blocks[block].children | blocks[block].returns) == 0) {
      top->latest = place; /* by far the most: one block of a call follows another */
      ++top->steps;
      top->position += blocks[block].nodes;
    } else {
      walk_record(trace, &blocks[block], place);
      top = trace->depth > 0 ? &trace->open[trace->depth - 1] : NULL;
    }
    if (edges != NULL) {
      if (trace->edge_width == 1) {
        *edges++ = (unsigned char)block;
      } else {
        memcpy(edges, &block, (size_t)trace->edge_width); /* the low bytes come first on the machines that we emit for */
        edges += trace->edge_width;
      }
    }
    nodes += blocks[block].nodes;
    offset += blocks[block].bytes;
  }
  if (edges != NULL) trace->edge_bytes = edges - trace->edges;
  return nodes;
}

/* Follows the calls up to the end of chunk `number`. Returns whether a record in that chunk is still being written: the
 * results of calls that are open go there, so its memory must stay. */
static int walk(ulam_trace *trace, int64_t number) {
  while (trace->walked <= number) trace->walked_nodes = walk_chunk(trace, trace->walked++);
  for (int64_t i = 0; i < trace->depth; ++i) {
    const open_frame *frame = &trace->open[i];
    int is_in_call = i < trace->depth - 1 || frame->left > 0;
    if (is_in_call && frame->latest / trace->chunk_bytes == number) return 1;
  }
  return 0;
}

/* Lets a chunk go, unless something is still written to it. */
static void drop(ulam_trace *trace, int64_t number) {
  chunk *old = &trace->chunks[number];
  if (walk(trace, number) || (trace->mode == ULAM_TRACE_EDGES && number == 0)) return; /* the first has the result */
  if (trace->mode != ULAM_TRACE_SPILL) trace->dropped += trace->walked_nodes;
  forget(trace, old);
}

/* The chunk in use is full, or the run is over. */
static void end_chunk(ulam_trace *trace, int is_last) {
  if (trace->count == 0) return;
  int64_t number = trace->count - 1;
  chunk *full = &trace->chunks[number];
  if (full->base == NULL) return;
  full->used = trace->cursor - full->base;
  switch (trace->mode) {
    case ULAM_TRACE_EDGES:
      drop(trace, number);
      trace->first_kept = trace->count;
      break;
    case ULAM_TRACE_SPILL:
      if (is_last) break;
      if (fseek(trace->file, (long)(number * trace->chunk_bytes), SEEK_SET) != 0 ||
          fwrite(full->base, 1, (size_t)full->used, trace->file) != (size_t)full->used)
        trace->failed = 1;
      drop(trace, number);
      break;
    case ULAM_TRACE_RING:
      if (!is_last && trace->held >= trace->limit) drop(trace, trace->first_kept++);
      break;
    default:
      if (trace->held > trace->limit) drop(trace, number);
  }
}

static int room_for_chunk(ulam_trace *trace) {
  if (trace->count < trace->capacity) return 1;
  int64_t capacity = 2 * trace->capacity + 16;
  chunk *chunks = realloc(trace->chunks, (size_t)capacity * sizeof *chunks);
  if (chunks == NULL) return 0;
  trace->chunks = chunks;
  trace->capacity = capacity;
  return 1;
}

void ulam_trace_grow(ulam_trace *trace, int64_t bytes) {
  end_chunk(trace, 0);
  if (!room_for_chunk(trace)) out_of_memory();
  char *base = take(trace);
  if (base == NULL || bytes > trace->chunk_bytes) out_of_memory();
  trace->held += trace->chunk_bytes;
  trace->chunks[trace->count++] = (chunk){base, 0, 0};
  trace->cursor = base;
  trace->end = base + trace->chunk_bytes;
}

int32_t ulam_trace_finish(ulam_trace *trace) {
  end_chunk(trace, 1);
  if (trace->file && fflush(trace->file) != 0) trace->failed = 1;
  return trace->failed;
}

/* The contents, if there are at most `most` elements; else their number, least, greatest, how many are NaN and infinite,
 * the first three and the last. */
void ulam_trace_container(ulam_trace *trace, int64_t *slot, const void *data, int64_t count, int32_t element_bytes,
                          int64_t most) {
  *slot = -1;
  if (trace->side_bytes > trace->limit) return;
  int64_t start = trace->side_bytes;
  int64_t head[2] = {count <= most ? 0 : 1, count};
  int fine = append(&trace->side, &trace->side_bytes, &trace->side_capacity, head, sizeof head);
  if (count <= most) {
    fine = fine && append(&trace->side, &trace->side_bytes, &trace->side_capacity, data, count * element_bytes);
  } else {
    double digest[8] = {INFINITY, -INFINITY, 0, 0};
    for (int64_t i = 0; i < count; ++i) {
      double x = element_bytes == 8 ? ((const double *)data)[i] : (double)((const int32_t *)data)[i];
      if (isnan(x)) digest[2] += 1;
      if (isinf(x)) digest[3] += 1;
      if (x < digest[0]) digest[0] = x;
      if (x > digest[1]) digest[1] = x;
      if (i < 3) digest[4 + i] = x;
      digest[7] = x;
    }
    fine = fine && append(&trace->side, &trace->side_bytes, &trace->side_capacity, digest, sizeof digest);
  }
  trace->side_bytes = (trace->side_bytes + 7) & ~(int64_t)7;
  if (fine && trace->side_bytes <= trace->side_capacity) *slot = start;
}

void ulam_trace_describe(const ulam_trace *trace, ulam_trace_info *info) {
  *info = (ulam_trace_info){trace->chunk_bytes, trace->count,      trace->first_kept, trace->held,
                            trace->dropped,     trace->side_bytes, trace->edge_bytes, trace->edge_width,
                            trace->side,        trace->edges};
}

const char *ulam_trace_chunk(const ulam_trace *trace, int64_t number, int64_t *used) {
  if (number < 0 || number >= trace->count) return NULL;
  *used = trace->chunks[number].used;
  return trace->chunks[number].base;
}

int32_t ulam_trace_lend(ulam_trace *trace, int64_t number, const char *base, int64_t used) {
  if (number == trace->count) {
    if (!room_for_chunk(trace)) return 0;
    ++trace->count;
    trace->chunks[number] = (chunk){NULL, used, 1};
  }
  if (number < 0 || number >= trace->count || trace->chunks[number].base != NULL) return 0;
  trace->chunks[number].base = (char *)base;
  trace->chunks[number].borrowed = 1;
  return 1;
}

int32_t ulam_trace_lend_side(ulam_trace *trace, const char *bytes, int64_t count) {
  trace->side_bytes = 0;
  return append(&trace->side, &trace->side_bytes, &trace->side_capacity, bytes, count);
}

/* ---------------------------------------------------------------- reading */

static const char *record_at(const ulam_trace *trace, int64_t *place) {
  int64_t number = *place / trace->chunk_bytes, offset = *place % trace->chunk_bytes;
  if (number < trace->count && offset >= trace->chunks[number].used) {
    ++number;
    offset = 0;
    *place = number * trace->chunk_bytes;
  }
  if (number >= trace->count || trace->chunks[number].base == NULL) return NULL;
  return trace->chunks[number].base + offset;
}

/* Passes over the rest of the calls `open`, the innermost last, or, if there are none, over a call that begins here.
 * Returns 0 where the records end before. */
static int skip_calls(const ulam_trace *trace, int64_t *place, const open_frame *open, int64_t count) {
  int64_t depth = 0, capacity = count + 64;
  open_call *stack = malloc((size_t)capacity * sizeof *stack);
  int fine = stack != NULL;
  if (fine && count == 0) stack[depth++] = (open_call){0, 0};
  for (int64_t i = 0; fine && i < count; ++i) stack[depth++] = (open_call){open[i].left, open[i].returning};
  while (fine && depth > 0) {
    open_call *top = &stack[depth - 1];
    if (top->left == 0 && top->returning) {
      --depth;
      continue;
    }
    if (top->left > 0) {
      --top->left;
      if (depth == capacity) {
        open_call *larger = realloc(stack, (size_t)(2 * capacity) * sizeof *stack);
        fine = larger != NULL;
        if (!fine) break;
        stack = larger;
        capacity *= 2;
      }
      stack[depth++] = (open_call){0, 0};
      continue;
    }
    const char *record = record_at(trace, place);
    int32_t number = record ? block_of(trace, record) : 0;
    if (number == 0) {
      fine = 0;
      break;
    }
    top->left = trace->blocks[number].children;
    top->returning = trace->blocks[number].returns;
    *place += trace->blocks[number].bytes;
  }
  free(stack);
  return fine;
}

int32_t ulam_trace_resume(const ulam_trace *trace, int64_t first, int64_t *place, int64_t *steps, int64_t *position) {
  if (trace->first_kept >= trace->count || trace->walked != trace->first_kept) return 0;
  for (int64_t i = 0; i < trace->depth; ++i) {
    const open_frame *frame = &trace->open[i];
    if (frame->first != first) continue;
    *place = trace->first_kept * trace->chunk_bytes;
    *steps = frame->steps;
    *position = frame->position;
    int64_t inside = trace->depth - i - 1;
    if (inside > 0 && !skip_calls(trace, place, frame + 1, inside)) return 0;
    /* Its block had calls left: they come before the next block. */
    for (int32_t n = 0; n < frame->left; ++n)
      if (!skip_calls(trace, place, NULL, 0)) return 0;
    return !frame->returning;
  }
  return 0;
}

int64_t ulam_trace_scan(const ulam_trace *trace, int64_t *place, int64_t *state, int32_t *blocks, int64_t *places,
                        int64_t capacity) {
  int64_t found = 0;
  while (found < capacity && *state >= 0) {
    const char *record = record_at(trace, place);
    int32_t number = record ? block_of(trace, record) : 0;
    if (number == 0) {
      *state = -2;
      break;
    }
    const ulam_trace_block *block = &trace->blocks[number];
    blocks[found] = number;
    places[found++] = *place;
    *place += block->bytes;
    if (block->returns) *state = -1; /* what it calls need not be passed over */
    for (int32_t i = 0; i < block->children && *state >= 0; ++i)
      if (!skip_calls(trace, place, NULL, 0)) *state = -2;
  }
  return found;
}

int64_t ulam_trace_children(const ulam_trace *trace, int64_t place, int64_t *places, int64_t capacity) {
  const char *record = record_at(trace, &place);
  int32_t number = record ? block_of(trace, record) : 0;
  if (number == 0) return 0;
  int32_t count = trace->blocks[number].children;
  place += trace->blocks[number].bytes;
  int fine = 1;
  for (int32_t i = 0; i < count && i < capacity; ++i) {
    places[i] = fine && record_at(trace, &place) != NULL ? place : -1;
    fine = fine && places[i] >= 0 && (i + 1 == count || skip_calls(trace, &place, NULL, 0));
  }
  return count;
}
