#define _GNU_SOURCE /* strtod_l */
#include "json_text.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

static int failed(ulam_json *json, const char *message, const char *at) {
  json->message = message;
  json->at = at;
  return 0;
}

static inline int is_digit(char c) { return c >= '0' && c <= '9'; }

static int is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

/* ---------------------------------------------------------------- numbers */

static inline const char *number_at(const char *at, ulam_json_number *number) {
  number->negative = *at == '-';
  at += number->negative;
  number->digits = at;
  if (!is_digit(*at)) return NULL;
  uint64_t leading = 0;
  int64_t count = 0, behind_point = 0, dropped = 0;
  if (*at == '0') {
    ++at;
  } else {
    for (; is_digit(*at); ++at) {
      if (count++ < 19)
        leading = 10 * leading + (uint64_t)(*at - '0');
      else
        ++dropped;
    }
  }
  number->real = 0;
  if (*at == '.' && is_digit(at[1])) {
    number->real = 1;
    for (++at; is_digit(*at); ++at) {
      if (count == 0 && *at == '0') { /* no digit yet */
        ++behind_point;
      } else if (count++ < 19) {
        leading = 10 * leading + (uint64_t)(*at - '0');
        ++behind_point;
      }
    }
  }
  int64_t exponent = 0;
  if ((*at == 'e' || *at == 'E') && (is_digit(at[1]) || ((at[1] == '+' || at[1] == '-') && is_digit(at[2])))) {
    number->real = 1;
    int negative = at[1] == '-';
    for (at += 1 + !is_digit(at[1]); is_digit(*at); ++at)
      if (exponent < 100000000) exponent = 10 * exponent + (*at - '0');
    if (negative) exponent = -exponent;
  }
  exponent += dropped - behind_point;
  number->leading = leading;
  number->count = count > INT32_MAX ? INT32_MAX : (int32_t)count;
  number->exponent = exponent > INT32_MAX ? INT32_MAX : exponent < INT32_MIN ? INT32_MIN : (int32_t)exponent;
  return number->end = at;
}

const char *ulam_json_number_at(const char *at, ulam_json_number *number) { return number_at(at, number); }

static inline int32_t integer_kind(const ulam_json_number *number) {
  if (number->count < 19) {
    int64_t value = (int64_t)number->leading;
    if (number->negative) value = -value;
    return ULAM_JSON_SIGNED | (value < INT32_MIN || value > INT32_MAX ? ULAM_JSON_BEYOND : 0);
  }
  uint64_t value = number->leading;
  if (number->count > 20) return ULAM_JSON_WIDE | ULAM_JSON_BEYOND;
  if (number->count == 20) {
    uint64_t last = (uint64_t)(number->digits[19] - '0');
    if (value > (UINT64_MAX - last) / 10) return ULAM_JSON_WIDE | ULAM_JSON_BEYOND;
    value = 10 * value + last;
  }
  int fits = value <= (uint64_t)INT64_MAX + (uint64_t)number->negative;
  return (fits ? ULAM_JSON_SIGNED : number->negative ? ULAM_JSON_WIDE : ULAM_JSON_UNSIGNED) | ULAM_JSON_BEYOND;
}

int32_t ulam_json_integer(const ulam_json_number *number) { return integer_kind(number); }

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void make_c_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

double ulam_json_real(const char *at) {
  if (*at == 'N') return NAN;
  if (*at == 'I') return INFINITY;
  if (at[0] == '-' && at[1] == 'I') return -INFINITY;
  ulam_json_number number;
  number_at(at, &number);
  if (!number.real && number.leading == 0) return 0; /* integers have no -0 */
  int few = number.count <= 19 && number.leading <= (uint64_t)1 << 53;
  if (few && number.exponent >= -22 && number.exponent <= 22) { /* both are exact: one rounding */
    double value = (double)number.leading;
    value = number.exponent < 0 ? value / powers_of_ten[-number.exponent] : value * powers_of_ten[number.exponent];
    return number.negative ? -value : value;
  }
  pthread_once(&c_locale_once, make_c_locale);
  return strtod_l(at, NULL, c_locale);
}

/* ---------------------------------------------------------------- texts */

static int hexadecimal(const char *at, int32_t *code) {
  *code = 0;
  for (int k = 0; k < 4; ++k) {
    char c = at[k];
    int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return 0;
    *code = 16 * *code + digit;
  }
  return 1;
}

/* From a quotation mark to behind the one that ends the text. */
static int skip_text(ulam_json *json) {
  const char *begin = json->at, *at = begin + 1;
  for (;;) {
    while (at < json->end && (unsigned char)*at >= 0x20 && *at != '"' && *at != '\\') ++at;
    if (at >= json->end) return failed(json, "Unterminated string starting at", begin);
    if (*at == '"') {
      json->at = at + 1;
      return 1;
    }
    if (*at != '\\') return failed(json, "Invalid control character at", at);
    if (at + 1 >= json->end) return failed(json, "Unterminated string starting at", begin);
    if (at[1] == 'u') {
      int32_t code;
      if (json->end - at <= 6 || !hexadecimal(at + 2, &code)) return failed(json, "Invalid \\uXXXX escape", at + 1);
      at += 6;
    } else {
      if (!at[1] || !strchr("\"\\/bfnrt", at[1])) return failed(json, "Invalid \\escape", at);
      at += 2;
    }
  }
}

const char *ulam_json_behind_text(const char *at) {
  for (++at; *at != '"'; ++at)
    if (*at == '\\') ++at;
  return at + 1;
}

static int add_code(ulam_text *out, int32_t code) {
  char bytes[4];
  int length = 0;
  if (code < 0x80) {
    bytes[length++] = (char)code;
  } else if (code < 0x800) {
    bytes[length++] = (char)(0xC0 | code >> 6);
    bytes[length++] = (char)(0x80 | (code & 63));
  } else if (code < 0x10000) {
    bytes[length++] = (char)(0xE0 | code >> 12);
    bytes[length++] = (char)(0x80 | (code >> 6 & 63));
    bytes[length++] = (char)(0x80 | (code & 63));
  } else {
    bytes[length++] = (char)(0xF0 | code >> 18);
    bytes[length++] = (char)(0x80 | (code >> 12 & 63));
    bytes[length++] = (char)(0x80 | (code >> 6 & 63));
    bytes[length++] = (char)(0x80 | (code & 63));
  }
  return ulam_text_append(out, bytes, length);
}

int ulam_json_text(const char *at, ulam_text *out) {
  for (++at; *at != '"';) {
    const char *first = at;
    while (*at != '"' && *at != '\\') ++at;
    if (at > first && !ulam_text_append(out, first, at - first)) return 0;
    if (*at == '"') break;
    ++at;
    int32_t code, low;
    if (*at == 'u') {
      hexadecimal(at + 1, &code);
      at += 5;
      if (code >> 10 == 0xD800 >> 10 && at[0] == '\\' && at[1] == 'u' && hexadecimal(at + 2, &low) &&
          low >> 10 == 0xDC00 >> 10) {
        code = 0x10000 + ((code & 0x3FF) << 10 | (low & 0x3FF));
        at += 6;
      }
    } else {
      const char *letters = "bfnrt", *found = strchr(letters, *at);
      code = found ? "\b\f\n\r\t"[found - letters] : *at;
      ++at;
    }
    if (!add_code(out, code)) return 0;
  }
  return 1;
}

/* ---------------------------------------------------------------- values */

/* A word, which is one of a few. */
static int word_at(ulam_json *json, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(json->end - json->at) < length || memcmp(json->at, word, length) != 0) return 0;
  json->at += length;
  return 1;
}

static int infinity_at(ulam_json *json) {
  if (word_at(json, "Infinity")) return 1;
  if (json->end - json->at < 3 || memcmp(json->at, "Inf", 3) != 0 || is_word(json->at[3])) return 0;
  json->at += 3;
  return 1;
}

/* A value without others in it: what it is; 0: there is an error. */
static int32_t leaf(ulam_json *json) {
  const char *begin = json->at;
  ulam_json_number number;
  switch (*begin) {
    case '"': return skip_text(json) ? ULAM_JSON_TEXT : 0;
    case 'n':
      if (word_at(json, "null")) return ULAM_JSON_NULL;
      break;
    case 't':
      if (word_at(json, "true")) return ULAM_JSON_BOOL;
      break;
    case 'f':
      if (word_at(json, "false")) return ULAM_JSON_BOOL;
      break;
    case 'N':
      if (word_at(json, "NaN")) return ULAM_JSON_REAL;
      break;
    case 'I':
      if (infinity_at(json)) return ULAM_JSON_REAL;
      break;
    default:
      if (number_at(begin, &number)) {
        json->at = number.end;
        if (number.real) return ULAM_JSON_REAL;
        if (number.count > ULAM_JSON_DIGITS) {
          json->plain = 1;
          return failed(json, "an integer with more digits than can be read", number.digits);
        }
        return integer_kind(&number);
      }
      if (*begin == '-') {
        ++json->at;
        if (infinity_at(json)) return ULAM_JSON_REAL;
      }
  }
  return failed(json, "Expecting value", begin);
}

static void blanks(ulam_json *json) { json->at = ulam_json_blanks(json->at); }

/* The name of a member and its colon. */
static int member_name(ulam_json *json) {
  if (*json->at != '"') return failed(json, "Expecting property name enclosed in double quotes", json->at);
  if (!skip_text(json)) return 0;
  blanks(json);
  if (*json->at != ':') return failed(json, "Expecting ':' delimiter", json->at);
  ++json->at;
  return 1;
}

/* A shape grows with what is read: `rank` is -1 until the first value that is no array, or the first empty array. */
static void note_leaf(ulam_json_shape *shape, int32_t depth, int32_t kind) {
  shape->held |= kind;
  if (shape->rank < 0)
    shape->rank = depth;
  else if (shape->rank != depth)
    shape->held |= ULAM_JSON_RAGGED;
}

static void note_array(ulam_json_shape *shape, int32_t depth) {
  if (depth > ULAM_JSON_DIMS)
    shape->held |= ULAM_JSON_DEEP;
  else if (shape->rank >= 0 && depth > shape->rank)
    shape->held |= ULAM_JSON_RAGGED;
}

static void note_length(ulam_json_shape *shape, int32_t depth, int64_t count) {
  if (depth > ULAM_JSON_DIMS) return;
  if (count == 0 && shape->rank < 0) shape->rank = depth;
  if (shape->dims[depth - 1] < 0)
    shape->dims[depth - 1] = count;
  else if (shape->dims[depth - 1] != count)
    shape->held |= ULAM_JSON_RAGGED;
}

int ulam_json_value(ulam_json *json, ulam_json_shape *shape) {
  int64_t counts[ULAM_JSON_NESTING]; /* of the arrays and objects that the place is in; -1 for objects */
  int32_t depth = 0, objects = 0;
  shape->held = 0;
  shape->rank = -1;
  for (int k = 0; k < ULAM_JSON_DIMS; ++k) shape->dims[k] = -1;
  for (;;) {
    blanks(json);
    char c = *json->at;
    if (c == '[' || c == '{') {
      if (depth == ULAM_JSON_NESTING) {
        json->plain = 1;
        return failed(json, "nested too deeply", NULL);
      }
      ++json->at;
      blanks(json);
      if (c == '{') {
        if (objects++ == 0) note_leaf(shape, depth, ULAM_JSON_OBJECT);
        counts[depth++] = -1;
        if (*json->at != '}') {
          if (!member_name(json)) return 0;
          continue;
        }
      } else {
        counts[depth++] = 0;
        if (objects == 0) note_array(shape, depth);
        if (*json->at != ']') continue;
      }
    } else {
      int32_t kind = leaf(json);
      if (!kind) return 0;
      if (objects == 0) note_leaf(shape, depth, kind);
      if (depth == 0) return 1;
      counts[depth - 1] += counts[depth - 1] >= 0;
      blanks(json);
    }
    /* Behind a value, or in an empty array or object. */
    for (;;) {
      int64_t count = counts[depth - 1];
      if (*json->at == ',') {
        ++json->at;
        if (count >= 0) break;
        blanks(json);
        if (!member_name(json)) return 0;
        break;
      }
      if (*json->at != (count < 0 ? '}' : ']')) return failed(json, "Expecting ',' delimiter", json->at);
      ++json->at;
      if (count < 0)
        --objects;
      else if (objects == 0)
        note_length(shape, depth, count);
      if (--depth == 0) return 1;
      counts[depth - 1] += counts[depth - 1] >= 0;
      blanks(json);
    }
  }
}

int ulam_json_read(ulam_json *json, int (*member)(void *, const char *, const char *, const ulam_json_shape *),
                   void *user, const char **top) {
  ulam_json_shape shape;
  json->at = json->start;
  json->message = NULL;
  json->plain = 0;
  if (json->end - json->start >= 3 && memcmp(json->start, "\xEF\xBB\xBF", 3) == 0) /* a second one */
    return failed(json, "Unexpected UTF-8 BOM (decode using utf-8-sig)", json->start);
  blanks(json);
  *top = json->at;
  if (*json->at != '{') {
    if (!ulam_json_value(json, &shape)) return 0;
  } else {
    ++json->at;
    blanks(json);
    for (int first = 1; *json->at != '}'; first = 0) {
      if (!first) {
        if (*json->at != ',') return failed(json, "Expecting ',' delimiter", json->at);
        ++json->at;
        blanks(json);
      }
      const char *name = json->at;
      if (!member_name(json)) return 0;
      blanks(json);
      const char *value = json->at;
      if (!ulam_json_value(json, &shape)) return 0;
      if (!member(user, name, value, &shape)) return 0;
      blanks(json);
    }
    ++json->at;
  }
  blanks(json);
  return json->at == json->end ? 1 : failed(json, "Extra data", json->at);
}

const char *ulam_json_behind(const char *at) {
  int64_t depth = 0;
  do {
    at = ulam_json_blanks(at);
    if (*at == '"') {
      at = ulam_json_behind_text(at);
      continue;
    }
    if (*at == '[' || *at == '{') ++depth;
    if (*at == ']' || *at == '}') --depth;
    if (!strchr("[]{},:", *at)) {
      while (!strchr("[]{},: \n\t\r", *at)) ++at; /* which the end of the text is, too */
      continue;
    }
    ++at;
  } while (depth > 0);
  return at;
}
