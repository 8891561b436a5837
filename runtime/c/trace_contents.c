/* The contents of containers: beside the records, which have their places.
 *
 * Places count on from the beginning of the run, also where what is before them is gone: with `ring` and `edges` the
 * latest `limit` bytes are kept, with `stop` the first (and the result of the traced call, which its first record has),
 * with `spill` all, in a file.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interrupts.h"
#include "trace_records.h"

enum { DIGEST_VALUES = 8 };

static void unmap_side(ulam_trace *trace) {
  if (trace->side != NULL) munmap(trace->side, (size_t)trace->side_capacity);
  trace->side = NULL;
  trace->side_capacity = 0;
}

void trace_contents_begin(ulam_trace *trace) {
  trace->side_first = trace->side_bytes = 0;
  if (trace->side_file < 0 || trace->side_capacity <= trace->limit) return;
  unmap_side(trace);
  if (ftruncate(trace->side_file, 0) != 0) return; /* the file stays as long as it is */
}

void trace_contents_free(ulam_trace *trace) {
  if (trace->side_file >= 0) {
    unmap_side(trace);
    close(trace->side_file);
  }
  free(trace->side);
}

/* Room for more of the file. */
static int map_side(ulam_trace *trace, int64_t capacity) {
  const int64_t page = 1 << 16;
  capacity = (capacity + page - 1) / page * page;
  int64_t before = trace->side_capacity;
  if (!trace_reserve(trace->side_file, before, capacity - before, trace->spare, trace->chunk_bytes)) return 0;
  char *base = mmap(NULL, (size_t)capacity, PROT_READ | PROT_WRITE, MAP_SHARED, trace->side_file, 0);
  if (base == MAP_FAILED) return 0;
  unmap_side(trace);
  trace->side = base;
  trace->side_capacity = capacity;
  return 1;
}

/* Room for `bytes` more; 0 if there is none. */
static int make_room(ulam_trace *trace, int64_t bytes) {
  int64_t held = trace->side_bytes - trace->side_first;
  if (held + bytes <= trace->side_capacity) return 1;
  int64_t capacity = 2 * trace->side_capacity + bytes + 4096;
  if (trace->side_file >= 0) return map_side(trace, capacity);
  char *grown = realloc(trace->side, (size_t)capacity);
  if (grown == NULL) return 0;
  trace->side = grown;
  trace->side_capacity = capacity;
  return 1;
}

/* Forgets the older half of what is kept, once there is too much. */
static void forget_older(ulam_trace *trace, int64_t bytes) {
  int64_t held = trace->side_bytes - trace->side_first;
  if (held + bytes <= trace->limit) return;
  int64_t kept = trace->limit / 2 & ~(int64_t)7;
  if (kept > held) kept = held;
  memmove(trace->side, trace->side + (held - kept), (size_t)kept);
  trace->side_first += held - kept;
}

static int is_of_first_record(const ulam_trace *trace, const int64_t *slot) {
  if (trace->count == 0 || trace->chunks[0].base == NULL) return 0;
  const char *record = trace->chunks[0].base;
  const char *end = record + trace->blocks[block_of(trace, record)].bytes;
  return (const char *)slot >= record && (const char *)slot < end;
}

static void put(ulam_trace *trace, const void *data, int64_t bytes) {
  if (bytes == 0) return;
  memcpy(trace->side + (trace->side_bytes - trace->side_first), data, (size_t)bytes);
  trace->side_bytes += bytes;
}

static double element(const void *data, int64_t number, int32_t element_bytes) {
  return element_bytes == 8 ? ((const double *)data)[number] : (double)((const int32_t *)data)[number];
}

/* Least, greatest, how many are NaN and infinite, the first three and the last. */
static void summarize(const void *data, int64_t count, int32_t element_bytes, double digest[DIGEST_VALUES]) {
  digest[0] = INFINITY;
  digest[1] = -INFINITY;
  for (int i = 2; i < DIGEST_VALUES; ++i) digest[i] = 0;
  for (int64_t i = 0; i < count; ++i) {
    double x = element(data, i, element_bytes);
    if (isnan(x)) digest[2] += 1;
    if (isinf(x)) digest[3] += 1;
    if (x < digest[0]) digest[0] = x;
    if (x > digest[1]) digest[1] = x;
    if (i < 3) digest[4 + i] = x;
    digest[7] = x;
  }
}

static void record(ulam_trace *trace, int64_t *slot, const void *data, int64_t count, int32_t element_bytes,
                   int64_t most) {
  double digest[DIGEST_VALUES];
  int64_t head[2] = {count > most, count};
  int64_t body = head[0] ? (int64_t)sizeof digest : count * element_bytes;
  int64_t bytes = ((int64_t)sizeof head + body + 7) & ~(int64_t)7;
  if (trace->mode == ULAM_TRACE_RING || trace->mode == ULAM_TRACE_EDGES)
    forget_older(trace, bytes);
  else if (trace->mode == ULAM_TRACE_STOP && trace->side_bytes > trace->limit && !is_of_first_record(trace, slot))
    return;
  if (!make_room(trace, bytes)) {
    trace->failed = 1;
    return;
  }
  int64_t start = trace->side_bytes;
  put(trace, head, sizeof head);
  if (head[0]) {
    summarize(data, count, element_bytes, digest);
    put(trace, digest, sizeof digest);
  } else {
    put(trace, data, body);
  }
  trace->side_bytes = start + bytes;
  *slot = start;
}

void ulam_trace_container(ulam_trace *trace, int64_t *slot, const void *data, int64_t count, int32_t element_bytes,
                          int64_t most) {
  *slot = -1;
  if (most < 0) return;
  ulam_mask();
  record(trace, slot, data, count, element_bytes, most);
  ulam_unmask();
}

const char *trace_contents(const ulam_trace *trace, int64_t place, int64_t bytes) {
  if (place < trace->side_first || bytes < 0 || bytes > trace->side_bytes - place) return NULL;
  return trace->side + (place - trace->side_first);
}

int32_t ulam_trace_lend_side(ulam_trace *trace, const char *bytes, int64_t count, int64_t first) {
  trace->side_first = trace->side_bytes = first;
  if (!make_room(trace, count)) return 0;
  put(trace, bytes, count);
  return 1;
}
