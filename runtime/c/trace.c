#include "trace_records.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "services.h"

static const int64_t no_draws = 0;

ulam_trace *ulam_trace_new(int64_t chunk_bytes, int64_t limit, int32_t mode, const char *spill_path,
                          const char *side_path) {
  ulam_trace *trace = calloc(1, sizeof *trace);
  if (trace == NULL) return NULL;
  trace->chunk_bytes = chunk_bytes;
  trace->limit = limit;
  trace->mode = mode;
  trace->spare = calloc(1, (size_t)chunk_bytes);
  trace->file = mode == ULAM_TRACE_SPILL ? open(spill_path, O_RDWR | O_CLOEXEC) : -1;
  trace->side_file = mode == ULAM_TRACE_SPILL ? open(side_path, O_RDWR | O_CLOEXEC) : -1;
  if (trace->spare == NULL || (mode == ULAM_TRACE_SPILL && (trace->file < 0 || trace->side_file < 0))) {
    ulam_trace_free(trace);
    return NULL;
  }
  return trace;
}

/* ---------------------------------------------------------------- chunks */

int trace_reserve(int file, int64_t offset, int64_t bytes, const char *zeros, int64_t zero_bytes) {
  for (int64_t done = 0; done < bytes;) {
    int64_t wanted = bytes - done < zero_bytes ? bytes - done : zero_bytes;
    ssize_t written = pwrite(file, zeros, (size_t)wanted, (off_t)(offset + done));
    if (written <= 0) return 0;
    done += written;
  }
  return 1;
}

/* The memory of chunk `number` of the file; NULL if there is none. */
static char *map_chunk(ulam_trace *trace, int64_t number) {
  if (number < trace->mapped) return trace->maps[number];
  if (trace->mapped == trace->map_capacity) {
    int64_t capacity = 2 * trace->map_capacity + 16;
    char **maps = realloc(trace->maps, (size_t)capacity * sizeof *maps);
    if (maps == NULL) return NULL;
    trace->maps = maps;
    trace->map_capacity = capacity;
  }
  int64_t offset = number * trace->chunk_bytes;
  if (!trace_reserve(trace->file, offset, trace->chunk_bytes, trace->spare, trace->chunk_bytes)) return NULL;
  char *base = mmap(NULL, (size_t)trace->chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, trace->file, (off_t)offset);
  if (base == MAP_FAILED) return NULL;
  return trace->maps[trace->mapped++] = base;
}

/* Gives back what is mapped beyond so many bytes. */
static void unmap_beyond(ulam_trace *trace, int64_t bytes) {
  int64_t kept = bytes / trace->chunk_bytes;
  if (trace->mapped <= kept) return;
  while (trace->mapped > kept) munmap(trace->maps[--trace->mapped], (size_t)trace->chunk_bytes);
  if (ftruncate(trace->file, (off_t)(kept * trace->chunk_bytes)) != 0) return; /* the file stays as long as it is */
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
  if (trace->file >= 0) {
    unmap_beyond(trace, 0);
    close(trace->file);
  }
  free(trace->spare);
  free(trace->maps);
  free(trace->idle);
  free(trace->chunks);
  trace_contents_free(trace);
  free(trace->edges);
  free(trace->open.frames);
  free(trace);
}

int32_t ulam_trace_begin(ulam_trace *trace, const ulam_trace_block *blocks, int64_t count) {
  forget_all(trace);
  trace->blocks = blocks;
  trace->block_count = count;
  trace->dropped = trace->edge_bytes = 0;
  trace_contents_begin(trace);
  trace->open.depth = trace->walked = 0;
  trace->edge_width = count <= 256 ? 1 : count <= 65536 ? 2 : 4;
  trace->failed = 0;
  trace->drawn = &no_draws;
  trace->entered = 0;
  trace->callback = NULL;
  if (trace->file >= 0) unmap_beyond(trace, trace->limit);
  for (int64_t i = 1; i < count; ++i)
    if (blocks[i].bytes > trace->chunk_bytes) return 1;
  return 0;
}

void ulam_trace_watch(ulam_trace *trace, const int64_t *drawn) { trace->drawn = drawn ? drawn : &no_draws; }

void ulam_trace_listen(ulam_trace *trace, ulam_context *ctx, ulam_trace_callback callback) {
  trace->ctx = ctx;
  trace->callback = callback;
}

void ulam_trace_hook(ulam_trace *trace, int64_t number, int64_t count, int64_t kinds, ...) {
  if (trace->callback == NULL) return;
  int64_t values[ULAM_HOOK_MOST] = {0};
  va_list given;
  va_start(given, kinds);
  for (int64_t i = 0; i < count && i < ULAM_HOOK_MOST; ++i) {
    int kind = (int)((uint64_t)kinds >> (2 * i) & 3);
    if (kind == ULAM_HOOK_REAL) {
      double real = va_arg(given, double);
      memcpy(&values[i], &real, sizeof real);
    } else {
      values[i] = kind == ULAM_HOOK_INT ? va_arg(given, int32_t) : va_arg(given, int64_t);
    }
  }
  va_end(given);
  ulam_mask();
  const int32_t ends = trace->callback(number, values);
  ulam_unmask();
  if (ends == 0) return;
  ulam_fail(trace->ctx, ULAM_FATAL, "a hook has ended the run");
  ulam_leave(trace->ctx);
}

static char *take(ulam_trace *trace) {
  if (trace->file >= 0) return map_chunk(trace, trace->count);
  if (trace->idle_count > 0) return trace->idle[--trace->idle_count];
  return malloc((size_t)trace->chunk_bytes);
}

static void touch_pages(char *base, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 4096) ((volatile char *)base)[at] = 0;
}

void ulam_trace_touch(ulam_trace *trace, int64_t bytes) {
  int64_t wanted = (bytes + trace->chunk_bytes - 1) / trace->chunk_bytes;
  for (int64_t i = trace->mapped; trace->file >= 0 && i < wanted; ++i) {
    char *base = map_chunk(trace, i);
    if (base == NULL) return;
    touch_pages(base, trace->chunk_bytes);
  }
  for (int64_t i = trace->idle_count; trace->file < 0 && i < wanted; ++i) {
    chunk fresh = {malloc((size_t)trace->chunk_bytes), 0, 0};
    if (fresh.base == NULL) return;
    touch_pages(fresh.base, trace->chunk_bytes);
    trace->held += trace->chunk_bytes;
    forget(trace, &fresh);
  }
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

/* ---------------------------------------------------------------- calls that are open */

int trace_enter_record(open_calls *calls, const ulam_trace_block *block, int64_t place) {
  if (calls->depth == 0 || calls->frames[calls->depth - 1].left > 0) {
    if (calls->depth > 0) --calls->frames[calls->depth - 1].left;
    if (calls->depth == calls->capacity) {
      int64_t capacity = 2 * calls->capacity + 64;
      open_frame *frames = realloc(calls->frames, (size_t)capacity * sizeof *frames);
      if (frames == NULL) return 0;
      calls->frames = frames;
      calls->capacity = capacity;
    }
    calls->frames[calls->depth++] = (open_frame){place, place, 0, 0, 0, 0};
  }
  open_frame *top = &calls->frames[calls->depth - 1];
  top->latest = place;
  ++top->steps;
  top->position += block->nodes;
  top->left = block->children;
  top->returning = block->returns;
  return 1;
}

static void leave_calls(open_calls *calls) {
  while (calls->depth > 0 && calls->frames[calls->depth - 1].returning && calls->frames[calls->depth - 1].left == 0)
    --calls->depth;
}

/* What the blocks of one call did, one after the other, while the walk is in it. */
typedef struct {
  int64_t latest, steps, position;
} progress;

static void note(open_frame *top, progress *done) {
  if (top == NULL || done->steps == 0) return;
  top->latest = done->latest;
  top->steps += done->steps;
  top->position += done->position;
  *done = (progress){0, 0, 0};
}

/* Follows the calls through a chunk; returns how many nodes it has. */
static int64_t walk_chunk(ulam_trace *trace, int64_t number) {
  int64_t nodes = 0;
  const chunk *done = &trace->chunks[number];
  const ulam_trace_block *blocks = trace->blocks;
  const char *base = done->base;
  const int64_t used = done->used, first = number * trace->chunk_bytes;
  open_calls *open = &trace->open;
  open_frame *top = open->depth > 0 ? &open->frames[open->depth - 1] : NULL;
  int32_t begins = top == NULL || top->left > 0; /* whether the next record begins a call */
  progress since = {0, 0, 0}; /* not in `top`, so that it can be in registers: bytes of edges may alias anything */
  unsigned char *edges = NULL;
  const int32_t width = trace->edge_width;
  if (trace->mode == ULAM_TRACE_EDGES && (edges = room_for_edges(trace, done)) == NULL) trace->failed = 1;
  for (int64_t offset = 0; offset < used;) {
    int32_t block = block_of(trace, base + offset);
    if (block == 0) break;
    const ulam_trace_block row = blocks[block];
    if ((begins | row.children | row.returns) == 0) {
      since.latest = first + offset; /* by far the most: one block of a call follows another */
      ++since.steps;
      since.position += row.nodes;
    } else {
      note(top, &since);
      if (!trace_enter_record(open, &blocks[block], first + offset)) {
        trace->failed = 1;
        break;
      }
      leave_calls(open);
      top = open->depth > 0 ? &open->frames[open->depth - 1] : NULL;
      begins = top == NULL || top->left > 0;
    }
    if (edges != NULL) {
      if (width == 1) {
        *edges++ = (unsigned char)block;
      } else {
        memcpy(edges, &block, (size_t)width); /* the low bytes come first on the machines that we emit for */
        edges += width;
      }
    }
    nodes += row.nodes;
    offset += row.bytes;
  }
  note(top, &since);
  if (edges != NULL) trace->edge_bytes = edges - trace->edges;
  return nodes;
}

/* Follows the calls up to the end of chunk `number`. Returns whether a record in that chunk is still being written: the
 * results of calls that are open go there, so its memory must stay. */
static int walk(ulam_trace *trace, int64_t number) {
  while (trace->walked <= number) trace->walked_nodes = walk_chunk(trace, trace->walked++);
  for (int64_t i = 0; i < trace->open.depth; ++i) {
    const open_frame *frame = &trace->open.frames[i];
    int is_in_call = i < trace->open.depth - 1 || frame->left > 0;
    if (is_in_call && frame->latest / trace->chunk_bytes == number) return 1;
  }
  return 0;
}

/* Lets a chunk go, unless something is still written to it. */
static void drop(ulam_trace *trace, int64_t number) {
  chunk *old = &trace->chunks[number];
  if (walk(trace, number) || (trace->mode == ULAM_TRACE_EDGES && number == 0)) return; /* the first has the result */
  trace->dropped += trace->walked_nodes;
  forget(trace, old);
}

/* The chunk in use is full, or the run is over. */
static void end_chunk(ulam_trace *trace, int is_last) {
  if (trace->count == 0) return;
  int64_t number = trace->count - 1;
  chunk *full = &trace->chunks[number];
  if (full->base == NULL || trace->failed) return;
  full->used = trace->cursor - full->base;
  switch (trace->mode) {
    case ULAM_TRACE_EDGES:
      drop(trace, number);
      trace->first_kept = trace->count;
      break;
    case ULAM_TRACE_SPILL:
      break; /* its memory is the file */
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
  (void)bytes; /* no record is longer than a chunk: see ulam_trace_begin */
  ulam_mask();
  end_chunk(trace, 0);
  char *base = trace->failed || !room_for_chunk(trace) ? NULL : take(trace);
  if (base == NULL) { /* the run goes on; its records are written to the same place again and again */
    trace->failed = 1;
    trace->cursor = trace->spare;
  } else {
    int borrowed = trace->file >= 0;
    if (!borrowed) trace->held += trace->chunk_bytes;
    trace->chunks[trace->count++] = (chunk){base, 0, borrowed};
    trace->cursor = base;
  }
  trace->end = trace->cursor + trace->chunk_bytes;
  ulam_unmask();
}

int32_t ulam_trace_finish(ulam_trace *trace) {
  end_chunk(trace, 1);
  return trace->failed;
}

void ulam_trace_describe(const ulam_trace *trace, ulam_trace_info *info) {
  *info = (ulam_trace_info){
      .chunk_bytes = trace->chunk_bytes, .chunks = trace->count, .first_kept = trace->first_kept,
      .bytes = trace->held, .dropped = trace->dropped,
      .side_first = trace->side_first, .side_bytes = trace->side_bytes,
      .edge_bytes = trace->edge_bytes, .edge_width = trace->edge_width,
      .side = trace->side, .edges = trace->edges,
  };
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

/* ---------------------------------------------------------------- reading */

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
  for (int64_t i = 0; i < trace->open.depth; ++i) {
    const open_frame *frame = &trace->open.frames[i];
    if (frame->first != first) continue;
    *place = trace->first_kept * trace->chunk_bytes;
    *steps = frame->steps;
    *position = frame->position;
    int64_t inside = trace->open.depth - i - 1;
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
