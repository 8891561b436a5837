/* Searching the records of a trace for values: one pass, with the calls that are open kept at hand. */
#include <math.h>
#include <stdlib.h>

#include "trace_records.h"

struct ulam_trace_search {
  const ulam_trace *trace;
  const ulam_trace_probe *probes;
  const int64_t *starts;
  int32_t test;
  double least, greatest;
  open_calls calls; /* with that of the record at `place` */
  int64_t place;    /* of the record that is looked at */
  int64_t probe, last_probe; /* the next one to look at, and the end of those of the record */
  int32_t bytes;             /* of the record; 0: none was begun */
};

ulam_trace_search *ulam_trace_search_new(const ulam_trace *trace, const ulam_trace_probe *probes, const int64_t *starts,
                                         int32_t test, double least, double greatest) {
  ulam_trace_search *search = calloc(1, sizeof *search);
  if (search == NULL) return NULL;
  search->trace = trace;
  search->probes = probes;
  search->starts = starts;
  search->test = test;
  search->least = least;
  search->greatest = greatest;
  search->place = trace->first_kept * trace->chunk_bytes;
  if (trace->first_kept > 0 && trace->walked == trace->first_kept) { /* it begins within calls */
    search->calls = trace->open;
    search->calls.capacity = trace->open.depth + 16;
    search->calls.frames = malloc((size_t)search->calls.capacity * sizeof *search->calls.frames);
    if (search->calls.frames == NULL) {
      free(search);
      return NULL;
    }
    if (trace->open.depth > 0)
      memcpy(search->calls.frames, trace->open.frames, (size_t)trace->open.depth * sizeof *search->calls.frames);
  }
  return search;
}

void ulam_trace_search_free(ulam_trace_search *search) {
  if (search == NULL) return;
  free(search->calls.frames);
  free(search);
}

static inline int is_finite_bits(uint64_t bits) { return (bits >> 52 & 0x7ff) != 0x7ff; }

/* Whether a container has an element that is not finite, by its contents or its digest. */
static int has_nonfinite(const ulam_trace *trace, int64_t at) {
  int64_t head[2];
  const char *contents = trace_contents(trace, at, sizeof head);
  if (contents == NULL) return 0;
  memcpy(head, contents, sizeof head);
  at += (int64_t)sizeof head;
  int64_t count = head[0] ? 8 : head[1];
  if (count < 0 || count > (trace->side_bytes - at) / 8) return 0;
  const char *values = contents + sizeof head;
  if (head[0]) {
    double counts[2]; /* of NaN and of infinite elements */
    memcpy(counts, values + 16, sizeof counts);
    return counts[0] > 0 || counts[1] > 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits;
    memcpy(&bits, values + 8 * i, sizeof bits);
    if (!is_finite_bits(bits)) return 1;
  }
  return 0;
}

static inline int passes(const ulam_trace_search *search, const ulam_trace_probe *probe, const char *record) {
  if (probe->kind == ULAM_PROBE_ANY || search->test == ULAM_FIND_ALL) return 1;
  uint64_t bits;
  memcpy(&bits, record + probe->offset, sizeof bits);
  if (search->test == ULAM_FIND_NONFINITE) {
    if (probe->kind == ULAM_PROBE_REAL) return !is_finite_bits(bits);
    return probe->kind == ULAM_PROBE_CONTAINER && has_nonfinite(search->trace, (int64_t)bits);
  }
  double value;
  memcpy(&value, &bits, sizeof value);
  if (probe->kind == ULAM_PROBE_INT) value = (double)(int32_t)bits;
  if (probe->kind == ULAM_PROBE_CONTAINER) return 0;
  return search->least <= value && value <= search->greatest;
}

/* The next record, with its call. NULL: there are no more. */
static const char *next_record(ulam_trace_search *search) {
  const ulam_trace *trace = search->trace;
  search->place += search->bytes;
  search->bytes = 0;
  const char *record = record_at(trace, &search->place);
  int32_t number = record ? block_of(trace, record) : 0;
  if (number == 0) return NULL;
  const ulam_trace_block *block = &trace->blocks[number];
  int64_t offset = search->place % trace->chunk_bytes;
  if (offset + block->bytes > trace->chunks[search->place / trace->chunk_bytes].used) return NULL;
  open_calls *calls = &search->calls;
  open_frame *top = calls->depth > 0 ? &calls->frames[calls->depth - 1] : NULL;
  while (top != NULL && top->returning && top->left == 0) /* it ended with the record before */
    top = --calls->depth > 0 ? &calls->frames[calls->depth - 1] : NULL;
  if (top != NULL && top->left == 0) {
    top->latest = search->place; /* by far the most: one block of a call follows another */
    ++top->steps;
    top->position += block->nodes;
    top->left = block->children;
    top->returning = block->returns;
  } else if (!trace_enter_record(calls, block, search->place)) {
    return NULL;
  }
  search->bytes = block->bytes;
  search->probe = search->starts[number];
  search->last_probe = search->starts[number + 1];
  return record;
}

int64_t ulam_trace_search_next(ulam_trace_search *search) {
  const char *record = search->bytes ? record_at(search->trace, &search->place) : next_record(search);
  for (; record != NULL; record = next_record(search))
    while (search->probe < search->last_probe) {
      const ulam_trace_probe *probe = &search->probes[search->probe++];
      if (passes(search, probe, record)) return search->probe - 1;
    }
  return -1;
}

int64_t ulam_trace_search_path(const ulam_trace_search *search, ulam_trace_level *levels, int64_t capacity) {
  const ulam_trace *trace = search->trace;
  for (int64_t i = 0; i < search->calls.depth && i < capacity; ++i) {
    const open_frame *frame = &search->calls.frames[i];
    int64_t place = frame->latest;
    const char *record = record_at(trace, &place);
    int32_t number = record ? block_of(trace, record) : 0;
    int64_t nodes = number ? trace->blocks[number].nodes : 0;
    int64_t call = number ? trace->blocks[number].children - frame->left - 1 : -1;
    levels[i] = (ulam_trace_level){frame->first, frame->latest, frame->position - nodes, call};
  }
  return search->calls.depth;
}
