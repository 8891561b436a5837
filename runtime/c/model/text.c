/* Texts that grow: messages. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

int ulam_text_add(ulam_text *text, const char *format, ...) {
  if (!text) return 1;
  char some[512], *bytes = some;
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(some, sizeof some, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof some) {
    bytes = malloc((size_t)length + 1);
    if (bytes) vsnprintf(bytes, (size_t)length + 1, format, again);
  }
  va_end(again);
  int done = length >= 0 && bytes && ulam_text_append(text, bytes, length);
  if (bytes != some) free(bytes);
  return done;
}

void ulam_text_say(ulam_text *text, const char *what) {
  if (text) ulam_text_append(text, what, (int64_t)strlen(what));
}
