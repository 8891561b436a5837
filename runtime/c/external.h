/* Calls of external functions, from emitted code. */
#ifndef ULAM_EXTERNAL_H
#define ULAM_EXTERNAL_H

#include "context.h"

/* From here on no signal leaves the run, until `end`, which takes the status that the function `name` returned: 0 fine,
 * 1 a rejection, else fatal. It returns ours, and leaves a message in the context. */
ULAM_API void ulam_external_begin(ulam_context *ctx);
ULAM_API int32_t ulam_external_end(ulam_context *ctx, int32_t status, const char *name);
/* What the external function that runs in this thread says of its failure; copied. NULL: nothing. */
ULAM_API void ulam_external_say(const char *text);

#endif
