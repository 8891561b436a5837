/* Reads JSON text, as Python's module `json` does, whose words its errors have, and with the names of Stan's infinities:
 * what is at the top of the text is found, and which shapes and kinds its values have. Numbers stay text until they are
 * asked for. */
#ifndef ULAM_JSON_TEXT_H
#define ULAM_JSON_TEXT_H

#include "../services.h"

enum {
  ULAM_JSON_NESTING = 900,  /* of arrays and objects in one another: about what Python reads, by the depth of its stack */
  ULAM_JSON_DIMS = 64,      /* of arrays in one another, that can be a value */
  ULAM_JSON_DIGITS = 4300,  /* of an integer, as Python reads */
};

/* What an array of any nesting holds, or a value that is no array. */
enum {
  ULAM_JSON_SIGNED = 1,       /* integers that fit 64 bits */
  ULAM_JSON_UNSIGNED = 2,     /* integers that fit 64 bits without a sign, and not with one */
  ULAM_JSON_WIDE = 4,         /* larger integers */
  ULAM_JSON_BEYOND = 8,       /* integers outside of 32 bits */
  ULAM_JSON_REAL = 16,        /* numbers with a point or an exponent, NaN, infinities */
  ULAM_JSON_TEXT = 32,
  ULAM_JSON_NULL = 64,
  ULAM_JSON_BOOL = 128,
  ULAM_JSON_OBJECT = 256,
  ULAM_JSON_RAGGED = 512,     /* arrays beside each other have different lengths, or there are other values beside them */
  ULAM_JSON_DEEP = 1024,      /* there are more arrays in one another than ULAM_JSON_DIMS */
};

typedef struct {
  int32_t held;
  int32_t rank; /* 0: no array */
  int64_t dims[ULAM_JSON_DIMS];
} ulam_json_shape;

/* A text of which `end` is the first character that is not its own, and zero. */
typedef struct {
  const char *start, *end, *at;
  const char *message; /* of the error at `at`; NULL: there was none */
  int32_t plain;       /* the message is all that is to be said */
} ulam_json;

/* At `at`: skips blanks, reads a value and goes on behind it. 0: there is an error. */
int ulam_json_value(ulam_json *json, ulam_json_shape *shape);
/* Reads the text; for each member of the object at the top calls `member` with its name (which begins with the quotation
 * mark) and its value. 0: there is an error, or `member` returned 0. `top` is the value's first character. */
int ulam_json_read(ulam_json *json, int (*member)(void *user, const char *name, const char *value,
                                                  const ulam_json_shape *shape),
                   void *user, const char **top);

/* ---------------------------------------------------------------- text without errors */

/* The next character that is no blank. */
static inline const char *ulam_json_blanks(const char *at) {
  while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') ++at;
  return at;
}
const char *ulam_json_behind(const char *value); /* of the first character of a value */
const char *ulam_json_behind_text(const char *quotation_mark);
/* The characters that a text stands for, as UTF-8; halves of surrogate pairs are characters, too. 0 if out of memory. */
int ulam_json_text(const char *quotation_mark, ulam_text *out);

typedef struct {
  const char *digits; /* behind the sign */
  const char *end;
  uint64_t leading;   /* the number without its sign and point, of 19 digits at most */
  int32_t count;      /* of digits, without zeros in front */
  int32_t exponent;   /* of ten, for `leading` */
  int32_t negative, real;
} ulam_json_number;

/* A number, or NULL if there is none: not of NaN and infinities. */
const char *ulam_json_number_at(const char *at, ulam_json_number *number);
/* Of a character of 0 to 9, a minus sign, N or I, with which a number begins; nearest, ties to even. */
double ulam_json_real(const char *at);
/* What integers are: one of ULAM_JSON_SIGNED to ULAM_JSON_WIDE, with ULAM_JSON_BEYOND where it holds. */
int32_t ulam_json_integer(const ulam_json_number *number);

#endif
