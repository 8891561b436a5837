/* Finds the name that was probably meant, by the rules of frontend/spelling.py. */
#ifndef ULAM_SPELLING_H
#define ULAM_SPELLING_H

#include <stdint.h>

typedef struct {
  const char *bytes;
  int64_t length;
} ulam_name;

/* The number of the one of `others` that is the same but for capitals, or the nearest; -1 if none is near. */
int64_t ulam_nearest_name(ulam_name name, const ulam_name *others, int64_t count);

#endif
