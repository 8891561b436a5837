/* How much memory the machine has. */
#ifndef ULAM_MEMORY_H
#define ULAM_MEMORY_H

#include "context.h"

enum { ULAM_LARGE_BLOCK = 1 << 28 }; /* a block of less is asked for without a look at what is free */

ULAM_API int64_t ulam_machine_bytes(void);   /* memory and swap space, or what this process may have of them */
ULAM_API int64_t ulam_available_bytes(void); /* what is free of it */

#endif
