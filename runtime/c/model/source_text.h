/* The text of a file of values, and what keeps it from being one: frontend/encoding.py has the same rules for programs. */
#ifndef ULAM_SOURCE_TEXT_H
#define ULAM_SOURCE_TEXT_H

#include "../services.h"

enum { ULAM_REPLACEMENT = 0xFFFD }; /* what stands for bytes that are not UTF-8 */

/* The character at `*at`, behind which `*at` is set. Each sequence of bytes that begins no character is a replacement. */
int32_t ulam_utf8_next(const char **at, const char *end);
/* `count` characters on, or the end. */
const char *ulam_utf8_skip(const char *at, const char *end, int64_t count);
int64_t ulam_utf8_count(const char *at, const char *end);
/* The first place that is not UTF-8, or NULL. */
const char *ulam_utf8_problem(const char *at, const char *end);
/* Whether a text is empty but for blanks of any kind; `first` is its first other character. */
int ulam_is_blank(const char *at, const char *end, int32_t *first);

/* Reads a file, without its byte order mark. `what` is what it is for. 0: `error` says why, or is empty where there is no
 * memory. */
int ulam_source_read(const char *path, const char *what, ulam_text *text, ulam_text *error);
/* Whether a file's text may be JSON; 0: `error` says why not. */
int ulam_source_check(const char *text, int64_t length, const char *name, ulam_text *error);

#endif
