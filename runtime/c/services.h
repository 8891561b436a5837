/* The private part of a context. */
#ifndef ULAM_SERVICES_H
#define ULAM_SERVICES_H

#include "interrupts.h"
#include "context.h"

/* A growing text, always zero-terminated. */
typedef struct ulam_text {
  char *bytes;
  int64_t length, capacity;
} ulam_text;

int ulam_text_append(ulam_text *text, const char *bytes, int64_t length); /* 0 if out of memory */

typedef struct ulam_chunk {
  struct ulam_chunk *previous;
  char *start, *end;
} ulam_chunk;

struct ulam_services {
  ulam_chunk *chunks;  /* in use, the newest first; never empty */
  ulam_chunk *spare;   /* at most one, kept against thrashing at a chunk's end */
  int64_t held_bytes;  /* by chunks and spare */
  int64_t keep_bytes;  /* a context keeps at most this between evaluations */
  ulam_bound_memory *bound_memory; /* while ulam_run_bind runs */
  ulam_text message;   /* of reject, fatal_error or a failed kernel */
  ulam_text line;      /* being printed */
  ulam_text output;    /* printed, if there is no sink */
  int32_t print_kind;
  ulam_print_sink sink;
  struct ulam_profile *profile; /* NULL: nothing is recorded */
  ulam_call *call;     /* the run; NULL outside of one */
  int32_t stoppable;
  ulam_short_entries short_entries;
};

/* So many bytes behind a block of the arena may be read ahead of checks: a load of its first elements may be hoisted in
 * front of a loop that, for an empty block, never runs. */
enum { ULAM_SLACK = 64 };

/* The arena of a context (arena.c, or guard_pages.c): made and freed with it; an evaluation is over. */
int ulam_arena_begin(ulam_context *ctx, int64_t keep_bytes); /* 0 if out of memory */
void ulam_arena_end(ulam_context *ctx);
void ulam_arena_reset(ulam_context *ctx);
/* Leaves the evaluation, with ULAM_FATAL. */
__attribute__((noreturn)) void ulam_leave(ulam_context *ctx);
/* The same: there are no `bytes` for it. */
__attribute__((noreturn)) void ulam_out_of_memory(ulam_context *ctx, int64_t bytes);

#endif
