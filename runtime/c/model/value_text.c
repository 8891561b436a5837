#include "value_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../sampling/decimal.h"
#include "source_text.h"

static const struct {
  const char *text;
  double number;
} special_numbers[] = {
    {"Inf", INFINITY}, {"Infinity", INFINITY}, {"-Inf", -INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN}};
enum { specials = sizeof special_numbers / sizeof *special_numbers };

enum {
  from_leaves = ULAM_JSON_TEXT | ULAM_JSON_NULL | ULAM_JSON_OBJECT | ULAM_JSON_WIDE,
  mixed_integers = ULAM_JSON_SIGNED | ULAM_JSON_UNSIGNED, /* no type has room for both: they become reals */
};

/* The text that it is, in quotation marks: -1 if none of them. Escapes stand for a letter, too. */
static int special_number(const char *quoted) {
  const char *plain = quoted + 1, *behind = ulam_json_behind_text(quoted) - 1;
  ulam_text decoded = {0};
  size_t length = (size_t)(behind - plain);
  int found = -1;
  if (memchr(plain, '\\', length)) {
    if (!ulam_json_text(quoted, &decoded)) return -1;
    plain = decoded.bytes;
    length = (size_t)decoded.length;
  }
  for (int k = 0; k < specials && found < 0; ++k)
    if (strlen(special_numbers[k].text) == length && memcmp(special_numbers[k].text, plain, length) == 0) found = k;
  free(decoded.bytes);
  return found;
}

double ulam_leaf_real(const char *leaf) {
  if (*leaf != '"') return ulam_json_real(leaf);
  int known = special_number(leaf);
  return known < 0 ? NAN : special_numbers[known].number;
}

/* ---------------------------------------------------------------- leaves and their places */

typedef struct {
  int32_t depth;
  int64_t index[ULAM_JSON_DIMS];
} place;

/* Calls `visit` for each value that is no array, in order, up to where it returns 1, which is returned. `behind` may be
 * NULL. */
typedef int visitor(void *user, const char *leaf, const place *at);

static int each_leaf(const char *value, place *at, const char **behind, visitor *visit, void *user) {
  if (*value != '[') {
    if (visit(user, value, at)) return 1;
    *behind = ulam_json_behind(value);
    return 0;
  }
  int32_t level = at->depth++;
  value = ulam_json_blanks(value + 1);
  for (at->index[level] = 0; *value != ']'; ++at->index[level]) {
    if (each_leaf(value, at, &value, visit, user)) return 1;
    value = ulam_json_blanks(value);
    if (*value == ',') value = ulam_json_blanks(value + 1);
  }
  --at->depth;
  *behind = value + 1;
  return 0;
}

typedef struct {
  const ulam_program_variable *variable;
  ulam_text *problem;
  const ulam_json_shape *shape;
} subject;

static int is_real_number(const char *leaf, ulam_json_number *number) {
  return !ulam_json_number_at(leaf, number) || number->real; /* NaN, infinities */
}

/* ---------------------------------------------------------------- texts */

void ulam_say_dims(ulam_text *text, const int64_t *dims, int32_t count) {
  ulam_text_say(text, "(");
  for (int32_t k = 0; k < count; ++k) ulam_text_add(text, k ? ",%lld" : "%lld", (long long)dims[k]);
  ulam_text_say(text, ")");
}

static void say_element(const subject *of, const place *at) {
  ulam_text_say(of->problem, of->variable->name);
  for (int32_t k = 0; k < at->depth; ++k)
    ulam_text_add(of->problem, k ? ", %lld" : "[%lld", (long long)at->index[k] + 1);
  if (at->depth) ulam_text_say(of->problem, "]");
}

static void say_expected(const subject *of) {
  const char *type = of->variable->type;
  ulam_text_say(of->problem, "must be ");
  if (ulam_variable_rank(of->variable) == of->variable->is_complex)
    ulam_text_say(of->problem, of->variable->is_int       ? "an integer"
                               : of->variable->is_complex ? "a pair of numbers"
                                                          : "a number");
  else
    ulam_text_add(of->problem, "%s %s of %s", strchr("aeiou", *type) ? "an" : "a", type,
                  of->variable->is_int       ? "integers"
                  : of->variable->is_complex ? "pairs of numbers"
                                             : "numbers");
}

/* As Python writes a float. */
static void say_real(ulam_text *text, double number) {
  char digits[DECIMAL_LENGTH + 2];
  int64_t length = ulam_csv_rows(&number, 1, 1, digits) - 1;
  digits[length] = '\0';
  ulam_text_say(text, digits);
  if (strspn(digits, "-0123456789") == (size_t)length) ulam_text_say(text, ".0");
}

static int32_t next_code(const char **at, const char *end) {
  const unsigned char *here = (const unsigned char *)*at;
  if (end - *at >= 3 && here[0] == 0xED && here[1] >= 0xA0) { /* half of a pair */
    *at += 3;
    return 0xD000 | (here[1] & 0x3F) << 6 | (here[2] & 0x3F);
  }
  return ulam_utf8_next(at, end);
}

void ulam_say_text(ulam_text *text, const char *bytes, int64_t length) {
  const char *end = bytes + length;
  while (bytes < end) {
    const char *first = bytes;
    int32_t code = next_code(&bytes, end);
    if (code >> 11 == 0xD800 >> 11)
      ulam_text_add(text, "\\u%04x", (unsigned)code);
    else if (code)
      ulam_text_append(text, first, bytes - first);
    else
      ulam_text_say(text, "\\x00");
  }
}

/* A text as Python's repr writes it, of what can be shown. */
static void say_quoted(ulam_text *text, const char *quoted) {
  ulam_text decoded = {0};
  if (!ulam_json_text(quoted, &decoded)) return;
  const char *at = decoded.bytes, *end = at + decoded.length;
  size_t length = (size_t)decoded.length;
  char mark = at && memchr(at, '\'', length) && !memchr(at, '"', length) ? '"' : '\'';
  ulam_text_append(text, &mark, 1);
  while (at < end) {
    const char *first = at;
    int32_t code = next_code(&at, end);
    const char *letters = "\t\n\r\\", *found = code ? strchr(letters, code < 0x80 ? code : 1) : NULL;
    if (found)
      ulam_text_add(text, "\\%c", "tnr\\"[found - letters]);
    else if (code == mark)
      ulam_text_add(text, "\\%c", mark);
    else if (code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD)
      ulam_text_add(text, "\\x%02x", (unsigned)code);
    else if (code >> 11 == 0xD800 >> 11)
      ulam_text_add(text, "\\u%04x", (unsigned)code);
    else
      ulam_text_append(text, first, at - first);
  }
  ulam_text_append(text, &mark, 1);
  free(decoded.bytes);
}

const char *ulam_kind_text(const char *value) {
  switch (*value) {
    case 'n': return "null";
    case 't':
    case 'f': return "a boolean";
    case '[': return "an array";
    case '{': return "an object";
    case '"': return "a text";
    default: return "a number";
  }
}

/* ---------------------------------------------------------------- raggedness */

typedef struct {
  int32_t depth; /* of arrays in one another, by the first element of each */
  int64_t lengths[ULAM_JSON_DIMS];
} outline;

static int64_t length_of(const char *array) {
  int64_t count = 0;
  for (const char *at = ulam_json_blanks(array + 1); *at != ']'; ++count) {
    at = ulam_json_blanks(ulam_json_behind(at));
    if (*at == ',') at = ulam_json_blanks(at + 1);
  }
  return count;
}

/* Says where the first difference is; 0 if there is none. */
static int first_difference(const subject *of, const outline *whole, const char *item, place *at) {
  int32_t depth = at->depth;
  if ((*item == '[') != (depth < whole->depth)) {
    ulam_text_say(of->problem, ": ");
    say_element(of, at);
    ulam_text_add(of->problem, " is %s where its neighbours are not", ulam_kind_text(item));
    return 1;
  }
  if (depth == whole->depth) return 0;
  int64_t length = length_of(item);
  if (length != whole->lengths[depth]) {
    ulam_text_say(of->problem, ": ");
    say_element(of, at);
    ulam_text_add(of->problem, " has %lld elements, an earlier one has %lld", (long long)length,
                  (long long)whole->lengths[depth]);
    return 1;
  }
  const char *inner = ulam_json_blanks(item + 1);
  ++at->depth;
  for (at->index[depth] = 0; at->index[depth] < length; ++at->index[depth]) {
    if (first_difference(of, whole, inner, at)) return 1;
    inner = ulam_json_blanks(ulam_json_behind(inner));
    if (*inner == ',') inner = ulam_json_blanks(inner + 1);
  }
  --at->depth;
  return 0;
}

static int say_ragged(const subject *of, const char *value) {
  outline whole = {0};
  for (const char *probe = value; *probe == '['; probe = ulam_json_blanks(probe + 1))
    whole.lengths[whole.depth++] = length_of(probe);
  place at = {0};
  ulam_text_say(of->problem, "non-rectangular array");
  first_difference(of, &whole, value, &at);
  return 0;
}

/* ---------------------------------------------------------------- elements */

static int refuse_bool(void *user, const char *leaf, const place *at) {
  const subject *of = user;
  if (*leaf != 't' && *leaf != 'f') return 0;
  say_expected(of);
  ulam_text_say(of->problem, ", but ");
  say_element(of, at);
  ulam_text_add(of->problem, " is %s; write 1 or 0", *leaf == 't' ? "true" : "false");
  return 1;
}

/* What is no number. */
static int refuse_others(void *user, const char *leaf, const place *at) {
  const subject *of = user;
  if (*leaf == 'n') {
    ulam_text_say(of->problem, "has no value (null, None) at ");
    say_element(of, at);
    return 1;
  }
  if (*leaf != '{' && (*leaf != '"' || special_number(leaf) >= 0)) return 0;
  say_expected(of);
  ulam_text_say(of->problem, ", but ");
  say_element(of, at);
  if (*leaf == '{') {
    ulam_text_say(of->problem, " is a JSON object");
    return 1;
  }
  ulam_text_say(of->problem, " is the text ");
  say_quoted(of->problem, leaf);
  ulam_text_say(of->problem, " (only ");
  for (int k = 0; k < specials; ++k) ulam_text_add(of->problem, k ? ", \"%s\"" : "\"%s\"", special_numbers[k].text);
  ulam_text_say(of->problem, " are)");
  return 1;
}

static int refuse_infinite_integer(void *user, const char *leaf, const place *at) {
  const subject *of = user;
  ulam_json_number number;
  (void)at;
  if (*leaf == '"' || is_real_number(leaf, &number) || !isinf(ulam_json_real(leaf))) return 0;
  ulam_text_say(of->problem, "holds an integer too large for a real");
  return 1;
}

/* What is no int: a real, or an integer that only one can hold. */
static int refuse_reals(void *user, const char *leaf, const place *at) {
  const subject *of = user;
  ulam_json_number number;
  if (*leaf != '"' && !is_real_number(leaf, &number) && !(ulam_json_integer(&number) & ULAM_JSON_BEYOND)) return 0;
  double found = ulam_leaf_real(leaf);
  ulam_text_say(of->problem, "int variable contained non-int values: ");
  say_element(of, at);
  ulam_text_say(of->problem, " is ");
  say_real(of->problem, found);
  if (!isfinite(found) || found != floor(found)) return 1;
  if (found >= INT32_MIN && found <= INT32_MAX)
    ulam_text_add(of->problem, " (write %lld, without a point)", (long long)found);
  else
    ulam_text_say(of->problem, ", outside the 32-bit range of int");
  return 1;
}

static int refuse_beyond(void *user, const char *leaf, const place *at) {
  const subject *of = user;
  ulam_json_number number;
  ulam_json_number_at(leaf, &number);
  if (!(ulam_json_integer(&number) & ULAM_JSON_BEYOND)) return 0;
  ulam_text_say(of->problem, "int variable contained non-int values: ");
  say_element(of, at);
  ulam_text_say(of->problem, " is ");
  ulam_text_append(of->problem, leaf, number.end - leaf);
  ulam_text_say(of->problem, ", outside the 32-bit range of int");
  return 1;
}

int ulam_value_check(const ulam_program_variable *variable, const char *value, const ulam_json_shape *shape,
                     ulam_text *problem) {
  subject of = {variable, problem, shape};
  int32_t held = shape->held, is_array = *value == '[';
  place at = {0};
  const char *behind;
  if (*value == 'n') {
    ulam_text_say(problem, "is null (None); Stan has no missing values");
    return 0;
  }
  if (held & ULAM_JSON_DEEP) {
    say_expected(&of);
    ulam_text_add(problem, ", found lists more than %d deep in one another", ULAM_JSON_DIMS);
    return 0;
  }
  if (*value == '{') {
    say_expected(&of);
    ulam_text_say(problem, ", found a JSON object (that is how tuples are written)");
    return 0;
  }
  if (held & ULAM_JSON_RAGGED) return say_ragged(&of, value);
  if (held & ULAM_JSON_BOOL) {
    if (is_array)
      each_leaf(value, &at, &behind, refuse_bool, &of);
    else
      ulam_text_add(problem, "is %s; write 1 or 0", *value == 't' ? "true" : "false");
    return 0;
  }
  if (held & from_leaves) {
    if ((held & ~ULAM_JSON_WIDE) & from_leaves && each_leaf(value, &at, &behind, refuse_others, &of)) return 0;
    at.depth = 0;
    if (held & ULAM_JSON_WIDE && each_leaf(value, &at, &behind, refuse_infinite_integer, &of)) return 0;
    at.depth = 0;
  }
  if (!variable->is_int) return 1;
  if (held & (ULAM_JSON_REAL | ULAM_JSON_TEXT | ULAM_JSON_WIDE) || (held & mixed_integers) == mixed_integers)
    return !each_leaf(value, &at, &behind, refuse_reals, &of);
  return !(held & ULAM_JSON_BEYOND) || !each_leaf(value, &at, &behind, refuse_beyond, &of);
}

/* ---------------------------------------------------------------- sizes */

/* Whether memory could have elements of these sizes, of which some are 0, if these were 1: NumPy multiplies, too. */
static int is_small(const ulam_program_variable *variable, const int64_t *dims, int32_t count) {
  int64_t product = variable->is_int ? sizeof(int32_t) : sizeof(double);
  for (int32_t k = 0; k < count; ++k)
    if (dims[k] && __builtin_mul_overflow(product, dims[k], &product)) return 0;
  return 1;
}

int ulam_value_check_dims(const ulam_program_variable *variable, const char *value, const ulam_json_shape *shape,
                          const int64_t *dims, ulam_text *problem) {
  static const ulam_json_shape absent = {0, 1, {0}};
  int32_t count = ulam_variable_rank(variable), position = 0;
  const ulam_json_shape *found = shape ? shape : &absent; /* which is an array without elements */
  if (shape && found->rank == count && memcmp(found->dims, dims, sizeof *dims * (size_t)count) == 0) return 1;
  if (ulam_has_zero(found->dims, found->rank) && ulam_has_zero(dims, count)) {
    if (is_small(variable, dims, count)) return 1;
    ulam_text_say(problem, "has sizes whose product is too large, though one of them is 0: ");
    ulam_say_dims(problem, dims, count);
    return 0;
  }
  if (found->rank != count) {
    ulam_text_add(problem, "mismatch in number dimensions declared and found; declared %s", variable->declaration);
  } else {
    while (dims[position] == found->dims[position]) ++position;
    ulam_text_add(problem, "mismatch in dimension declared and found; declared %s; position=%d", variable->declaration,
                  position);
  }
  ulam_text_say(problem, "; dims declared=");
  ulam_say_dims(problem, dims, count);
  ulam_text_say(problem, "; dims found=");
  ulam_say_dims(problem, found->dims, found->rank);
  if (found->rank == count) {
    if (count == 2 && found->dims[0] == dims[1] && found->dims[1] == dims[0])
      ulam_text_say(problem, "; the value looks transposed");
    return 0;
  }
  int one = found->rank == 0;
  for (int32_t k = 0; k < count; ++k) one &= dims[k] == 1;
  if (!one) return 0;
  ulam_text_say(problem, "; write ");
  for (int32_t k = 0; k < count; ++k) ulam_text_say(problem, "[");
  double number = ulam_leaf_real(value);
  if (variable->is_int)
    ulam_text_add(problem, "%lld", (long long)number);
  else if (isfinite(number))
    say_real(problem, number);
  else
    ulam_text_say(problem, isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
  for (int32_t k = 0; k < count; ++k) ulam_text_say(problem, "]");
  return 0;
}
