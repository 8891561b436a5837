/* The private part of a recorder: its chunks, and the calls that are open where records were dropped. */
#ifndef ULAM_TRACE_RECORDS_H
#define ULAM_TRACE_RECORDS_H

#include <string.h>

#include "trace.h"

typedef struct {
  char *base; /* NULL: gone */
  int64_t used;
  int32_t borrowed; /* not from `idle`: mapped from a file, or read from a saved trace */
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

/* From the outermost call to the innermost. */
typedef struct {
  open_frame *frames;
  int64_t depth, capacity;
} open_calls;

struct ulam_trace {
  char *cursor, *end; /* read and written by emitted code: the first two fields */
  const int64_t *drawn; /* read by emitted code: how many random numbers were taken */
  int64_t entered;      /* read and written by emitted code: calls that are entered, where their number is limited */
  ulam_context *ctx;    /* of the run, and whom to call for hooks */
  ulam_trace_callback callback;
  int32_t mode;
  int64_t chunk_bytes, limit;
  chunk *chunks;
  int64_t count, capacity, first_kept;
  char **idle; /* chunks for later */
  int64_t idle_count, idle_capacity;
  int64_t held; /* bytes of chunks in memory, idle ones apart */
  int64_t dropped;
  open_calls open; /* at the end of chunk `walked` - 1 */
  int64_t walked, walked_nodes; /* the latter: of the chunk walked last */
  const ulam_trace_block *blocks;
  int64_t block_count;
  char *side; /* contents of containers: see trace_contents.c */
  int64_t side_first, side_bytes, side_capacity;
  int side_file; /* where they are spilled to */
  unsigned char *edges;
  int64_t edge_bytes, edge_capacity, edge_width;
  int file;    /* of spilled chunks, mapped one by one; they stay mapped for the next run */
  char **maps; /* where they are */
  int64_t mapped, map_capacity;
  char *spare;    /* a chunk that is written once there is no other */
  int32_t failed; /* there was no memory, or no room in the file: what is recorded is not kept */
};

_Static_assert(offsetof(struct ulam_trace, cursor) == 0 && offsetof(struct ulam_trace, end) == 8 &&
                   offsetof(struct ulam_trace, drawn) == 16 && offsetof(struct ulam_trace, entered) == 24,
               "emitted code");

/* A record's block; a damaged one ends the reading. */
static inline int32_t block_of(const ulam_trace *trace, const char *record) {
  int32_t number;
  memcpy(&number, record, sizeof number);
  return number > 0 && number < trace->block_count ? number : 0;
}

/* The record at a place, or at the beginning of the next chunk where that is over; NULL if it is gone. */
static inline const char *record_at(const ulam_trace *trace, int64_t *place) {
  int64_t number = *place / trace->chunk_bytes, offset = *place % trace->chunk_bytes;
  if (number < trace->count && offset >= trace->chunks[number].used) {
    ++number;
    offset = 0;
    *place = number * trace->chunk_bytes;
  }
  if (number >= trace->count || trace->chunks[number].base == NULL || offset + 8 > trace->chunks[number].used)
    return NULL;
  return trace->chunks[number].base + offset;
}

/* Writes zeros to a file ahead of stores to its pages: one that the disk has no room for would end the process. */
int trace_reserve(int file, int64_t offset, int64_t bytes, const char *zeros, int64_t zero_bytes);

void trace_contents_begin(ulam_trace *trace);
void trace_contents_free(ulam_trace *trace);
/* Contents from a place on; NULL if they are not all kept. */
const char *trace_contents(const ulam_trace *trace, int64_t place, int64_t bytes);

/* Takes a record into the calls that are open, and out those that it ends. Returns 0 if there is no memory. */
int trace_enter_record(open_calls *calls, const ulam_trace_block *block, int64_t place);

#endif
