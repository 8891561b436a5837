#include "values.h"

#include <stdlib.h>
#include <string.h>

#include "../native_handle.h"
#include "json_text.h"
#include "source_text.h"
#include "spelling.h"
#include "value_text.h"

enum { shown_problems = 20, shown_name = 200 };

typedef struct {
  ulam_name name; /* characters of the text, or, of a name with escapes, of `copy` */
  char *copy;
  const char *value;
  int32_t held, rank, repeated;
  int64_t dims; /* where they are in the values' */
  int64_t next; /* of the same bucket; -1: none */
} member;

struct ulam_values {
  char *name;
  ulam_text text;
  member *members;
  int64_t count, capacity;
  int64_t *dims, n_dims, dims_capacity;
  int64_t *buckets, n_buckets; /* the numbers of their first members; a power of two */
  ulam_text repeated; /* names that are there more than once, for the message */
};

/* ---------------------------------------------------------------- members by their names */

static uint64_t hash(ulam_name name) {
  uint64_t found = 14695981039346656037u; /* FNV-1a */
  for (int64_t k = 0; k < name.length; ++k) found = (found ^ (unsigned char)name.bytes[k]) * 1099511628211u;
  return found ^ found >> 32;
}

static int equal(ulam_name a, ulam_name b) {
  return a.length == b.length && memcmp(a.bytes, b.bytes, (size_t)a.length) == 0;
}

static int64_t number_of(const ulam_values *values, ulam_name name) {
  if (!values->n_buckets) return -1;
  int64_t found = values->buckets[hash(name) & (uint64_t)(values->n_buckets - 1)];
  while (found >= 0 && !equal(values->members[found].name, name)) found = values->members[found].next;
  return found;
}

static int larger_table(ulam_values *values) {
  int64_t count = values->n_buckets ? 2 * values->n_buckets : 64;
  int64_t *buckets = malloc(sizeof *buckets * (size_t)count);
  if (!buckets) return 0;
  memset(buckets, 0xFF, sizeof *buckets * (size_t)count);
  free(values->buckets);
  values->buckets = buckets;
  values->n_buckets = count;
  for (int64_t k = 0; k < values->count; ++k) {
    int64_t *bucket = &buckets[hash(values->members[k].name) & (uint64_t)(count - 1)];
    values->members[k].next = *bucket;
    *bucket = k;
  }
  return 1;
}

static void *grown(void *block, int64_t *capacity, int64_t needed, size_t size) {
  int64_t room = 2 * *capacity > needed ? 2 * *capacity : needed + 16;
  void *found = realloc(block, (size_t)room * size);
  if (found) *capacity = room;
  return found;
}

/* The characters that a text stands for; `copy` is to be freed. */
static int name_at(const char *quoted, ulam_name *name, char **copy) {
  name->bytes = quoted + 1;
  name->length = ulam_json_behind_text(quoted) - 1 - name->bytes;
  *copy = NULL;
  if (!memchr(name->bytes, '\\', (size_t)name->length)) return 1;
  ulam_text decoded = {0};
  int done = ulam_json_text(quoted, &decoded);
  *copy = decoded.bytes;
  name->bytes = decoded.bytes;
  name->length = decoded.length;
  return done;
}

static int note_repeated(ulam_values *values, member *first, char *copy) {
  free(copy);
  if (first->repeated) return 1;
  first->repeated = 1;
  ulam_text_say(&values->repeated, values->repeated.length ? ", '" : "'");
  ulam_say_text(&values->repeated, first->name.bytes, first->name.length);
  ulam_text_say(&values->repeated, "'");
  return values->repeated.length > 0;
}

static int add_member(void *user, const char *quoted, const char *value, const ulam_json_shape *shape) {
  ulam_values *values = user;
  member found = {.value = value, .held = shape->held, .rank = shape->rank, .dims = values->n_dims};
  if (!name_at(quoted, &found.name, &found.copy)) {
    free(found.copy);
    return 0;
  }
  int64_t other = number_of(values, found.name);
  if (other >= 0) return note_repeated(values, &values->members[other], found.copy);
  int32_t rank = shape->held & ULAM_JSON_DEEP ? 0 : shape->rank;
  if (values->count == values->capacity) {
    member *more = grown(values->members, &values->capacity, values->count + 1, sizeof *more);
    if (more) values->members = more;
  }
  if (values->n_dims + rank > values->dims_capacity) {
    int64_t *more = grown(values->dims, &values->dims_capacity, values->n_dims + rank, sizeof *more);
    if (more) values->dims = more;
  }
  if (values->count == values->capacity || values->n_dims + rank > values->dims_capacity ||
      (values->count >= values->n_buckets && !larger_table(values))) {
    free(found.copy);
    return 0;
  }
  if (rank) memcpy(values->dims + values->n_dims, shape->dims, sizeof *shape->dims * (size_t)rank);
  values->n_dims += rank;
  int64_t *bucket = &values->buckets[hash(found.name) & (uint64_t)(values->n_buckets - 1)];
  found.next = *bucket;
  *bucket = values->count;
  values->members[values->count++] = found;
  return 1;
}

/* ---------------------------------------------------------------- reading */

static const char missing[] = "Stan has no missing values: leave them out, and say in the data which there are";
static const char format_of_r[] =
    "this is R's own format; write the data as JSON, as with jsonlite or cmdstanr::write_stan_json";
static const char no_comments[] = "JSON has no comments", comma[] = "is there a comma too many before it?";
static const char one[] = "write 1", zero[] = "write 0";

/* What stands where a value is expected, and what to write instead. */
static const struct {
  const char *wrong, *help;
} not_json[] = {
    {"NA", missing}, {"None", missing}, {"nan", "write \"NaN\""}, {"inf", "write \"Infinity\""},
    {"True", one}, {"TRUE", one}, {"T", one}, {"False", zero}, {"FALSE", zero}, {"F", zero},
    {"'", "strings and names are in double quotes, \""}, {"c(", "an array is [1, 2, 3]"},
    {"structure(", format_of_r}, {"list(", format_of_r}, {"+", "a number has no plus sign"},
    {".", "a number has a digit before its point, as in 0.5"}, {"//", no_comments}, {"#", no_comments},
    {"/*", no_comments}, {"]", comma}, {"}", comma},
};

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}
static int is_alphanumeric(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/* Whether a text begins as R's `name <- value`. */
static int is_of_r(const char *at) {
  at += strspn(at, " \t\n\v\f\r");
  if (!is_letter(*at) && *at != '.') return 0;
  while (is_alphanumeric(*at) || *at == '_' || *at == '.') ++at;
  at += strspn(at, " \t\n\v\f\r");
  return at[0] == '<' && at[1] == '-';
}

static void say_help(ulam_text *error, const ulam_json *json) {
  const char *at = json->at;
  int32_t first;
  if (is_of_r(json->start)) {
    ulam_text_add(error, "; %s", format_of_r);
    return;
  }
  at += *at == '-';
  for (size_t k = 0; k < sizeof not_json / sizeof *not_json; ++k) {
    size_t length = strlen(not_json[k].wrong);
    if (strncmp(at, not_json[k].wrong, length) != 0) continue;
    if (is_letter(not_json[k].wrong[length - 1]) && is_alphanumeric(at[length])) continue;
    ulam_text_add(error, "; %s", not_json[k].help);
    return;
  }
  if (ulam_is_blank(json->at, json->end, &first)) ulam_text_say(error, "; the text ends here");
}

static void say_error(ulam_text *error, const ulam_values *values, const ulam_json *json) {
  if (!json->at) {
    ulam_text_add(error, "%s: not valid JSON: %s", values->name, json->message);
    return;
  }
  int64_t line = 1;
  const char *begin = json->start;
  for (const char *at = begin; (at = memchr(at, '\n', (size_t)(json->at - at))); begin = ++at) ++line;
  ulam_text_add(error, "%s:%lld:%lld: not valid JSON: %s", values->name, (long long)line,
                (long long)ulam_utf8_count(begin, json->at) + 1, json->message);
  if (!json->plain) say_help(error, json);
}

/* The members of the object that the text is. */
static int read_members(ulam_values *values, ulam_text *error) {
  ulam_json json = {.start = values->text.bytes, .end = values->text.bytes + values->text.length};
  const char *top;
  if (!ulam_json_read(&json, add_member, values, &top)) {
    if (json.message) say_error(error, values, &json);
    return 0;
  }
  if (*top != '{') {
    ulam_text_add(error, "%s: must be one JSON object {\"name\": value, ...}, found %s", values->name,
                  ulam_kind_text(top));
    return 0;
  }
  if (!values->repeated.length) return 1;
  ulam_text_add(error, "%s: variable defined more than once: %s", values->name, values->repeated.bytes);
  return 0;
}

static int read_source(ulam_values *values, const char *source, const char *what, ulam_text *error) {
  const char *end = source ? source + strlen(source) : source;
  int32_t first;
  int is_blank = !source || ulam_is_blank(source, end, &first), is_text = !is_blank && (first == '{' || first == '[');
  const char *name = is_blank || is_text ? what : source;
  if (!(values->name = malloc(strlen(name) + 1))) return 0;
  strcpy(values->name, name);
  if (is_blank) return 1;
  if (!is_text) {
    if (!ulam_source_read(source, what, &values->text, error)) return 0;
    if (!ulam_source_check(values->text.bytes, values->text.length, source, error)) return 0;
  } else if (ulam_utf8_problem(source, end)) {
    return ulam_source_check(source, end - source, what, error);
  } else if (!ulam_text_append(&values->text, source, end - source)) {
    return 0;
  }
  return read_members(values, error);
}

ulam_values *ulam_values_read(const char *source, const char *what, ulam_text *error) {
  ulam_values *values = calloc(1, sizeof *values);
  if (!values || read_source(values, source, what, error)) return values;
  ulam_values_free(values);
  return NULL;
}

void ulam_values_free(ulam_values *values) {
  if (!values) return;
  for (int64_t k = 0; k < values->count; ++k) free(values->members[k].copy);
  free(values->name);
  free(values->text.bytes);
  free(values->members);
  free(values->dims);
  free(values->buckets);
  free(values->repeated.bytes);
  free(values);
}

int64_t ulam_values_count(const ulam_values *values) { return values->count; }
const char *ulam_values_name(const ulam_values *values) { return values->name; }

/* ---------------------------------------------------------------- the value of a variable */

/* A name of the program, up to the colon of a field. */
static ulam_name declared_name(const char *name) { return (ulam_name){name, (int64_t)strcspn(name, ":")}; }

int ulam_values_has(const ulam_values *values, const char *name) {
  return number_of(values, declared_name(name)) >= 0;
}

/* The value of a member of an object; of those with the same name the last one. NULL: there is none. */
static const char *field_of(const char *object, ulam_name wanted) {
  const char *found = NULL;
  for (const char *at = ulam_json_blanks(object + 1); *at != '}';) {
    ulam_name name;
    char *copy;
    int same = name_at(at, &name, &copy) && equal(name, wanted);
    free(copy);
    at = ulam_json_blanks(ulam_json_behind_text(at)); /* the colon */
    at = ulam_json_blanks(at + 1);
    if (same) found = at;
    at = ulam_json_blanks(ulam_json_behind(at));
    if (*at == ',') at = ulam_json_blanks(at + 1);
  }
  return found;
}

enum { given_none, given_value, given_no_memory }; /* of none, `problem` may say what is wrong */

/* Adds the value of a field, `:1`, to `out`; of one in an array of tuples an array of them, of `rank` dimensions more.
 * `where`: the value's name. */
static int add_field(const char *value, const char *field, const char *ranks, int32_t rank, ulam_text *where,
                     ulam_text *out, ulam_text *problem) {
  if (!*field) return ulam_text_append(out, value, ulam_json_behind(value) - value) ? given_value : given_no_memory;
  ulam_name wanted = declared_name(field + 1);
  if (rank && *value == '[') {
    int64_t length = where->length, number = 0;
    int has_room = ulam_text_append(out, "[", 1);
    for (const char *at = ulam_json_blanks(value + 1); has_room && *at != ']';) {
      has_room = (!number || ulam_text_append(out, ",", 1)) && ulam_text_add(where, "[%lld]", (long long)++number);
      int found = has_room ? add_field(at, field, ranks, rank - 1, where, out, problem) : given_no_memory;
      if (found != given_value) return found;
      where->length = length;
      at = ulam_json_blanks(ulam_json_behind(at));
      if (*at == ',') at = ulam_json_blanks(at + 1);
    }
    return has_room && ulam_text_append(out, "]", 1) ? given_value : given_no_memory;
  }
  if (rank || *value != '{') {
    ulam_text_add(problem, "is element %.*s of %s written {\"1\": ..., \"2\": ...}; found %s for '%.*s'",
                  (int)wanted.length, wanted.bytes, rank ? "an array of tuples, each" : "a tuple,", ulam_kind_text(value),
                  (int)where->length, where->bytes);
    return given_none;
  }
  if (!(value = field_of(value, wanted))) return given_none;
  if (!ulam_text_add(where, ".%.*s", (int)wanted.length, wanted.bytes)) return given_no_memory;
  if (*ranks) ++ranks;
  return add_field(value, wanted.bytes + wanted.length, ranks, *ranks ? *ranks - '0' : 0, where, out, problem);
}

/* The value given for a variable, or for a field `t:1` of a tuple, which {"1": ...} has: then its text is in `room`. */
static int given(const ulam_values *values, const ulam_program_variable *variable, ulam_text *room, const char **value,
                 ulam_json_shape *shape, ulam_text *problem) {
  ulam_name base = declared_name(variable->name);
  int64_t number = number_of(values, base);
  if (number < 0) return given_none;
  const member *found = &values->members[number];
  *value = found->value;
  if (!variable->name[base.length]) {
    shape->held = found->held;
    shape->rank = found->rank;
    if (found->rank && !(shape->held & ULAM_JSON_DEEP))
      memcpy(shape->dims, values->dims + found->dims, sizeof *shape->dims * (size_t)found->rank);
    return given_value;
  }
  ulam_text where = {0};
  int status = given_no_memory;
  if (ulam_text_append(&where, base.bytes, base.length))
    status = add_field(found->value, variable->name + base.length, variable->field_ranks, ulam_field_rank(variable, 0),
                       &where, room, problem);
  free(where.bytes);
  if (status != given_value) return status;
  *value = room->bytes;
  ulam_json json = {.start = room->bytes, .at = room->bytes, .end = room->bytes + room->length};
  ulam_json_value(&json, shape);
  return given_value;
}

/* Names of the source that none of the variables has; `names` has room for all. */
static int64_t unused_names(const ulam_values *values, const ulam_program_variable *variables, const int64_t *chosen,
                            int64_t count, ulam_name *names) {
  int64_t found = 0;
  char *used = calloc((size_t)values->count + 1, 1);
  if (!used) return 0;
  for (int64_t k = 0; k < count; ++k) {
    int64_t number = number_of(values, declared_name(variables[chosen ? chosen[k] : k].name));
    if (number >= 0) used[number] = 1;
  }
  for (int64_t k = 0; k < values->count; ++k)
    if (!used[k]) names[found++] = values->members[k].name;
  free(used);
  return found;
}

/* ---------------------------------------------------------------- binding */

typedef struct {
  const ulam_values *values;
  const ulam_program_variable *variables;
  const int64_t *chosen; /* NULL: all, from the first */
  int64_t count;
  const ulam_values_target *target;
  int64_t *dims;
  int sizes_known, no_memory;
} binding;

static void say_absent(const binding *all, const ulam_program_variable *variable, const int64_t *dims,
                       ulam_text *problem) {
  ulam_text_add(problem, "does not exist; declared %s", variable->declaration);
  if (dims && ulam_variable_rank(variable)) {
    ulam_text_say(problem, " with dims ");
    ulam_say_dims(problem, dims, ulam_variable_rank(variable));
  }
  ulam_name *unused = malloc(sizeof *unused * (size_t)(all->values->count + 1));
  if (!unused) return;
  int64_t count = unused_names(all->values, all->variables, all->chosen, all->count, unused);
  ulam_name name = {variable->name, (int64_t)strlen(variable->name)};
  int64_t meant = ulam_nearest_name(name, unused, count);
  if (meant >= 0) {
    ulam_text_say(problem, "; did you mean '");
    ulam_say_text(problem, unused[meant].bytes, unused[meant].length);
    ulam_text_say(problem, "'?");
  }
  free(unused);
}

/* The number at or behind a place, which is set behind it: brackets, commas and blanks are passed over. */
static inline const char *next_leaf(const char **at) {
  const char *leaf = ulam_json_blanks(*at);
  while (*leaf == '[' || *leaf == ']' || *leaf == ',') leaf = ulam_json_blanks(leaf + 1);
  *at = leaf + 1;
  if (*leaf == '"')
    *at = ulam_json_behind_text(leaf);
  else
    while (**at == '.' || **at == '-' || **at == '+' || (**at >= '0' && **at <= '9') || (**at >= 'A' && **at <= 'Z') ||
           (**at >= 'a' && **at <= 'z'))
      ++*at;
  return leaf;
}

static int32_t leaf_int(const char *leaf) {
  int negative = *leaf == '-';
  int64_t value = 0;
  for (leaf += negative; *leaf >= '0' && *leaf <= '9'; ++leaf) value = 10 * value + (*leaf - '0');
  return (int32_t)(negative ? -value : value);
}

/* Matrices are kept column by column; `out` has both parts of complex numbers side by side. */
static void fill(const ulam_program_variable *variable, const char *value, const int64_t *dims, void *out) {
  int64_t rows = 1, columns = 1, count = 1, parts = 1 + variable->is_complex;
  int32_t n_dims = ulam_variable_rank(variable) - variable->is_complex;
  for (int32_t k = 0; k < n_dims; ++k) count *= dims[k];
  if (!count) return;
  if (variable->inner_rank == 2) {
    rows = dims[n_dims - 2];
    columns = dims[n_dims - 1];
  }
  for (int64_t start = 0; start < count; start += rows * columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t part = 0; part < parts; ++part) {
          const char *leaf = next_leaf(&value);
          int64_t place = parts * (start + i + rows * j) + part;
          if (variable->is_int)
            ((int32_t *)out)[place] = leaf_int(leaf);
          else
            ((double *)out)[place] = ulam_leaf_real(leaf);
        }
      }
    }
  }
}

/* 0: `problem` says why not, or there is no memory. */
static int bind_value(binding *all, const ulam_program_variable *variable, const char *value, const ulam_json_shape *shape,
                      int64_t *dims, ulam_text *problem) {
  const ulam_values_target *target = all->target;
  int32_t n_dims = ulam_variable_rank(variable);
  if (!value && !(dims && ulam_has_zero(dims, n_dims))) {
    if (!dims && n_dims) return 1; /* may be without elements; cannot be told */
    say_absent(all, variable, dims, problem);
    return 0;
  }
  if (value && !ulam_value_check(variable, value, shape, problem)) return 0;
  if (!dims) return 1;
  if (!ulam_value_check_dims(variable, value, value ? shape : NULL, dims, problem)) return 0;
  void *out = target->room(target->user, variable, dims);
  if (!out && !ulam_has_zero(dims, n_dims)) {
    all->no_memory = 1;
    return 0;
  }
  if (value) fill(variable, value, dims, out);
  return !target->stored || !target->stored(target->user, variable, dims, problem);
}

static int bind_one(binding *all, const ulam_program_variable *variable, ulam_text *problem) {
  int64_t *dims = all->sizes_known ? all->dims : NULL;
  ulam_json_shape shape;
  if (dims && all->target->dims(all->target->user, variable, dims, problem)) return 0;
  ulam_text room = {0};
  const char *value = NULL;
  int status = given(all->values, variable, &room, &value, &shape, problem), bound = 0;
  all->no_memory |= status == given_no_memory;
  if (!all->no_memory && !problem->length)
    bound = bind_value(all, variable, status == given_value ? value : NULL, &shape, dims, problem);
  free(room.bytes);
  return bound;
}

static int begins(const ulam_text *text, const char *word) { return strncmp(text->bytes, word, strlen(word)) == 0; }

static void add_problem(ulam_text *error, const binding *all, const ulam_program_variable *variable,
                        const ulam_text *problem) {
  int is_verb = begins(problem, "is ") || begins(problem, "has ") || begins(problem, "must ") ||
                begins(problem, "does ") || begins(problem, "holds ");
  ulam_text_add(error, "%s%s: variable '%s' %s", error->length ? "\n" : "", all->values->name, variable->name,
                is_verb ? "" : "- ");
  ulam_text_append(error, problem->bytes, problem->length);
}

static int32_t bind_all(binding *all, ulam_text *error) {
  ulam_text problem = {0}, told = {0};
  int64_t problems = 0;
  for (int64_t k = 0; k < all->count && !all->no_memory; ++k) {
    const ulam_program_variable *variable = &all->variables[all->chosen ? all->chosen[k] : k];
    problem.length = 0;
    if (bind_one(all, variable, &problem)) continue;
    all->no_memory |= problem.length == 0;
    if (!all->no_memory && ++problems <= shown_problems) add_problem(&told, all, variable, &problem);
    if (variable->is_int) all->sizes_known = 0;
  }
  if (problems > shown_problems)
    ulam_text_add(&told, "\n... and %lld more", (long long)(problems - shown_problems));
  if (error && told.length && !all->no_memory) ulam_text_append(error, told.bytes, told.length);
  free(problem.bytes);
  free(told.bytes);
  return all->no_memory ? ULAM_NO_MEMORY : problems ? ULAM_REJECT : ULAM_OK;
}

int32_t ulam_values_bind_chosen(const ulam_values *values, const ulam_program_variable *variables,
                                const int64_t *chosen, int64_t count, const ulam_values_target *target,
                                ulam_text *error) {
  int32_t most = 0;
  for (int64_t k = 0; k < count; ++k) {
    int32_t n_dims = ulam_variable_rank(&variables[chosen ? chosen[k] : k]);
    if (n_dims > most) most = n_dims;
  }
  binding all = {values, variables, chosen, count, target, calloc((size_t)most + 1, sizeof(int64_t)), 1, 0};
  int32_t status = all.dims ? bind_all(&all, error) : ULAM_NO_MEMORY;
  free(all.dims);
  return status;
}

int32_t ulam_values_bind(const ulam_values *values, const ulam_program_variable *variables, int64_t count,
                         const ulam_values_target *target, ulam_text *error) {
  return ulam_values_bind_chosen(values, variables, NULL, count, target, error);
}

/* ---------------------------------------------------------------- further texts */

static int in_order(const void *first, const void *second) {
  const ulam_name *a = first, *b = second;
  int64_t shorter = a->length < b->length ? a->length : b->length;
  int found = memcmp(a->bytes, b->bytes, (size_t)shorter);
  return found ? found : (a->length > b->length) - (a->length < b->length);
}

void ulam_values_say_names(const ulam_values *values, ulam_text *text) {
  ulam_name *names = malloc(sizeof *names * (size_t)(values->count + 1));
  if (!names) return;
  for (int64_t k = 0; k < values->count; ++k) names[k] = values->members[k].name;
  qsort(names, (size_t)values->count, sizeof *names, in_order);
  for (int64_t k = 0; k < values->count; ++k) {
    if (k) ulam_text_say(text, ", ");
    ulam_say_text(text, names[k].bytes, names[k].length);
  }
  free(names);
}

static int is_identifier(ulam_name name) {
  if (!name.length || (!is_letter(*name.bytes) && *name.bytes != '_')) return 0;
  for (int64_t k = 0; k < name.length; ++k)
    if (!is_alphanumeric(name.bytes[k]) && name.bytes[k] != '_') return 0;
  return 1;
}

/* The names that may have been meant: of variables without a value, each once. */
static int64_t missing_names(const ulam_values *values, const ulam_program_variable *variables, int64_t count,
                             ulam_name *names) {
  int64_t found = 0;
  for (int64_t k = 0; k < count; ++k) {
    ulam_name name = declared_name(variables[k].name);
    int is_field_of_last = found && equal(names[found - 1], name);
    if (!is_field_of_last && number_of(values, name) < 0) names[found++] = name;
  }
  return found;
}

void ulam_values_unused(const ulam_values *values, const ulam_program_variable *variables, int64_t count,
                        const char *where, ulam_text *warning) {
  ulam_name *unused = malloc(sizeof *unused * (size_t)(values->count + 1));
  ulam_name *meant = malloc(sizeof *meant * (size_t)(count + 1));
  int64_t found = unused && meant ? unused_names(values, variables, NULL, count, unused) : 0;
  if (found) {
    int64_t n_meant = missing_names(values, variables, count, meant);
    ulam_text_add(warning, "%s: ", values->name);
    for (int64_t k = 0; k < found && k < shown_problems; ++k) {
      const char *end = unused[k].bytes + unused[k].length;
      int64_t close = is_identifier(unused[k]) ? ulam_nearest_name(unused[k], meant, n_meant) : -1;
      ulam_text_say(warning, k ? ", '" : "'");
      ulam_say_text(warning, unused[k].bytes, ulam_utf8_skip(unused[k].bytes, end, shown_name) - unused[k].bytes);
      ulam_text_say(warning, "'");
      if (close >= 0) ulam_text_add(warning, " (did you mean '%.*s'?)", (int)meant[close].length, meant[close].bytes);
    }
    if (found > shown_problems) ulam_text_add(warning, ", and %lld more", (long long)(found - shown_problems));
    const char *verb = found == 1 ? "is" : "are";
    ulam_text_add(warning, " %s not %s and %s ignored", verb, where, verb);
  }
  free(unused);
  free(meant);
}

void ulam_values_negative_size(const ulam_program_variable *variable, const int64_t *dims, ulam_text *problem) {
  ulam_text_say(problem, "has a negative size in its dims ");
  ulam_say_dims(problem, dims, ulam_variable_rank(variable));
  ulam_text_add(problem, "; declared %s", variable->declaration);
}
