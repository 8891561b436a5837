/* What the C compiler reads ahead of every file of a build with guard pages (`-include`): whatever the runtime asks the
 * system for gets guard pages, like blocks of the arena, and need not know of it.
 */
#ifndef ULAM_GUARD_MALLOC_H
#define ULAM_GUARD_MALLOC_H

#define _GNU_SOURCE /* of the files that ask for it below */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

void *ulam_guard_malloc(size_t bytes);
void *ulam_guard_calloc(size_t count, size_t bytes);
void *ulam_guard_realloc(void *block, size_t bytes); /* always moves it */
char *ulam_guard_strdup(const char *text);
void ulam_guard_release(void *block);
void *ulam_guard_map(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
int ulam_guard_unmap(void *address, size_t bytes);

#define malloc(bytes) ulam_guard_malloc(bytes)
#define calloc(count, bytes) ulam_guard_calloc(count, bytes)
#define realloc(block, bytes) ulam_guard_realloc(block, bytes)
#define strdup(text) ulam_guard_strdup(text)
#define free(block) ulam_guard_release(block)
#define mmap(address, bytes, protection, flags, file, offset) \
  ulam_guard_map(address, bytes, protection, flags, file, offset)
#define munmap(address, bytes) ulam_guard_unmap(address, bytes)

#endif
