/* Builds of the runtime with guard pages (-DULAM_GUARD_PAGES): what tests ask of them. See guard_pages.c. */
#ifndef ULAM_GUARD_PAGES_H
#define ULAM_GUARD_PAGES_H

#include "context.h"

/* From now on: `left`: blocks begin where their pages begin, so that underruns fault; else they end where these end.
 * `garbage`: the byte that new blocks are filled with. `whole_lines`: for code that was emitted for the runtime without
 * guard pages: behind every block are ULAM_SLACK bytes that may be read. Before the first context, or between runs. */
ULAM_API void ulam_guard_configure(int32_t left, int32_t garbage, int32_t whole_lines);
ULAM_API int32_t ulam_guard_whole_lines(void);

/* Where to read what code may read ahead of its checks: `address`, or, if that is in the slack behind a block of the
 * arena, memory that holds garbage. */
ULAM_API const void *ulam_guard_ahead(const void *address, int64_t bytes);

/* NumPy's PyDataMem_Handler, by which arrays get pages of their own. */
ULAM_API void *ulam_guard_array_handler(void);

/* Bytes of the block that begins there; -1: none does. */
ULAM_API int64_t ulam_guard_bytes(const void *address);

/* Describes a faulting access on the standard error before the handler that was there gets its turn. */
ULAM_API int32_t ulam_guard_report_faults(void);

/* How many blocks were made so far, and how many of these without guard pages, since the system has no more maps. */
ULAM_API void ulam_guard_counts(int64_t *blocks, int64_t *unguarded);

#endif
