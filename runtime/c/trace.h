/* The recorder of traced functions, and the draws that they may be given.
 *
 * Emitted code writes one record for each basic block that runs: a header of 8 bytes (the number of the block; above it,
 * 4 bytes that tell how far the block got, see `trace.guard`) and one slot of 8 bytes for each value that is kept. All
 * else (operands, jumps, arguments, calls) follows from the order of the records and a table of the program.
 * Records lie in chunks; none crosses the end of one.
 */
#ifndef ULAM_TRACE_H
#define ULAM_TRACE_H

#include "context.h"

/* What to do with a full chunk once `limit` bytes are held. */
enum {
  ULAM_TRACE_STOP = 0,  /* keep no more records, but count their nodes */
  ULAM_TRACE_RING = 1,  /* forget the oldest chunk */
  ULAM_TRACE_SPILL = 2, /* all chunks are pages of a file, which the system may write and forget; no limit */
  ULAM_TRACE_EDGES = 3  /* keep the numbers of the blocks, not the values */
};

/* A block of the program, by number. Blocks are numbered from 1; row 0 is not used. */
typedef struct {
  int32_t bytes;    /* of a record */
  int32_t nodes;    /* of the tape that a record stands for */
  int32_t children; /* calls in it that are recorded: their records follow, before those of the next block */
  int32_t returns;  /* whether it is the last of its function */
} ulam_trace_block;

typedef struct ulam_trace ulam_trace;

ULAM_API ulam_trace *ulam_trace_new(int64_t chunk_bytes, int64_t limit, int32_t mode, const char *spill_path,
                                   const char *side_path);
ULAM_API void ulam_trace_free(ulam_trace *trace);
/* Forgets all records; keeps the chunks. `blocks` stays valid while the trace is used. 1 if a record of one of them is
 * longer than a chunk: such a program cannot run. */
ULAM_API int32_t ulam_trace_begin(ulam_trace *trace, const ulam_trace_block *blocks, int64_t count);
/* Where the number of draws taken is, during one run (`ulam_draws_taken`); NULL: there are none. */
ULAM_API void ulam_trace_watch(ulam_trace *trace, const int64_t *drawn);
/* Whom hooks call during one run: with their number and the values (ints and reals, addresses of elements, sizes), 8 bytes
 * each. What does not return 0 ends the run. */
typedef int32_t (*ulam_trace_callback)(int64_t number, const int64_t *values);
ULAM_API void ulam_trace_listen(ulam_trace *trace, ulam_context *ctx, ulam_trace_callback callback);
/* After the run: 0, or 1 if there was no memory, or no room in the file: then the records are of no use. */
ULAM_API int32_t ulam_trace_finish(ulam_trace *trace);
ULAM_API void ulam_trace_touch(ulam_trace *trace, int64_t bytes); /* takes chunks for so many bytes ahead of the run */

/* Called by emitted code. */
ULAM_API void ulam_trace_grow(ulam_trace *trace, int64_t bytes);
enum { ULAM_HOOK_INT = 1, ULAM_HOOK_REAL = 2, ULAM_HOOK_WORD = 3, ULAM_HOOK_MOST = 32 };
/* `count` values follow, of kinds that have two bits each in `kinds`. */
ULAM_API void ulam_trace_hook(ulam_trace *trace, int64_t number, int64_t count, int64_t kinds, ...);
/* Of a container: the contents if there are at most `most` elements, else a digest; nothing if `most` is less than 0. */
ULAM_API void ulam_trace_container(ulam_trace *trace, int64_t *slot, const void *data, int64_t count,
                                   int32_t element_bytes, int64_t most);

typedef struct {
  int64_t chunk_bytes, chunks, first_kept; /* chunks before `first_kept` are gone */
  int64_t bytes;                           /* held in memory */
  int64_t dropped;                         /* nodes that are not in a chunk that is held */
  int64_t side_first, side_bytes; /* places of contents that are kept: from the one to the other */
  int64_t edge_bytes, edge_width;
  const char *side;
  const unsigned char *edges;
} ulam_trace_info;
ULAM_API void ulam_trace_describe(const ulam_trace *trace, ulam_trace_info *info);
ULAM_API const char *ulam_trace_chunk(const ulam_trace *trace, int64_t number, int64_t *used); /* NULL: gone */

/* Chunks that are read from elsewhere: of a file that they were spilled to, or of a saved trace. They stay the caller's. */
ULAM_API int32_t ulam_trace_lend(ulam_trace *trace, int64_t number, const char *base, int64_t used);
ULAM_API int32_t ulam_trace_lend_side(ulam_trace *trace, const char *bytes, int64_t count, int64_t first);

/* Up to `capacity` records of one frame: their blocks and places (chunk * chunk_bytes + offset). Begins at *place, skips
 * calls, sets *place to where to go on. *state is 0 at first; then it is kept between calls, and -1 once the frame is
 * over, -2 where the records end before it is. */
ULAM_API int64_t ulam_trace_scan(const ulam_trace *trace, int64_t *place, int64_t *state, int32_t *blocks,
                                 int64_t *places, int64_t capacity);
/* For a frame whose first record is at `first`, and that was open where records were dropped: where it goes on behind
 * them, how many steps it had done before, and how many nodes (parameters apart). 0 if it does not go on there. */
ULAM_API int32_t ulam_trace_resume(const ulam_trace *trace, int64_t first, int64_t *place, int64_t *steps,
                                   int64_t *position);
/* The places where the calls recorded in the record at `place` begin; -1 for one that is not there. */
ULAM_API int64_t ulam_trace_children(const ulam_trace *trace, int64_t place, int64_t *places, int64_t capacity);

/* Searching all records for values. A probe is what is looked at of a block: a value that its record has. */
enum {
  ULAM_PROBE_ANY = 0,       /* found whenever the block ran */
  ULAM_PROBE_REAL = 1,      /* a real slot */
  ULAM_PROBE_INT = 2,       /* an int slot */
  ULAM_PROBE_CONTAINER = 3  /* a container of reals, or its digest */
};
enum {
  ULAM_FIND_ALL = 0,
  ULAM_FIND_NONFINITE = 1, /* NaN or infinite; of a container, an element that is */
  ULAM_FIND_BETWEEN = 2    /* from `least` up to `greatest`; scalars only */
};
typedef struct {
  int32_t offset; /* of the slot in the record */
  int32_t kind;
} ulam_trace_probe;

/* Where a call is: its first record, its latest one, and how many nodes there were before that (parameters apart);
 * `call`: which of the recorded calls of the latest record the next one of the path is. */
typedef struct {
  int64_t first, latest, position, call;
} ulam_trace_level;

typedef struct ulam_trace_search ulam_trace_search;

/* Block b has the probes from starts[b] up to starts[b + 1]; the arrays stay the caller's, as long as the search. NULL:
 * no memory. */
ULAM_API ulam_trace_search *ulam_trace_search_new(const ulam_trace *trace, const ulam_trace_probe *probes,
                                                  const int64_t *starts, int32_t test, double least, double greatest);
ULAM_API void ulam_trace_search_free(ulam_trace_search *search);
/* The next value that passes, in the order of the records: its probe; -1 once there are no more. */
ULAM_API int64_t ulam_trace_search_next(ulam_trace_search *search);
/* The calls around what was found, the outermost first: their number; up to `capacity` are written. */
ULAM_API int64_t ulam_trace_search_path(const ulam_trace_search *search, ulam_trace_level *levels, int64_t capacity);

/* Random numbers that are recorded, or given in advance. A `bitgen_t` for the context. */
typedef struct ulam_draws ulam_draws;
ULAM_API ulam_draws *ulam_draws_new(ulam_context *ctx, struct bitgen *source); /* records what `source` gives */
ULAM_API ulam_draws *ulam_draws_scripted(ulam_context *ctx, const double *uniforms, int64_t count);
/* `scripted`: they were recorded of a script; draws are made of them as of one (see random.h). */
ULAM_API ulam_draws *ulam_draws_replayed(ulam_context *ctx, const uint64_t *draws, const uint8_t *kinds, int64_t count,
                                         int32_t scripted);
ULAM_API void ulam_draws_free(ulam_draws *draws);
ULAM_API struct bitgen *ulam_draws_generator(ulam_draws *draws);
ULAM_API const int64_t *ulam_draws_taken(const ulam_draws *draws); /* how many numbers were given so far */
/* Where a replay is over `source` goes on; with `fills`, it also gives a number in place of one of another kind than is
 * asked for. */
ULAM_API void ulam_draws_continue(ulam_draws *draws, struct bitgen *source, int32_t fills);
ULAM_API int64_t ulam_draws_read(const ulam_draws *draws, uint64_t *values, uint8_t *kinds, int64_t capacity);
/* 0: fine; 1: no draws were left; 2: numbers of another kind were asked for; 3: no memory. */
ULAM_API int32_t ulam_draws_problem(const ulam_draws *draws);

#endif
