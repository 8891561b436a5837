/* Draws: a generator that records what another one gives, or that gives what was scripted or recorded. */
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "services.h"
#include "trace.h"

enum { UINT64 = 0, UINT32 = 1, DOUBLE = 2, RAW = 3 };

struct ulam_draws {
  bitgen_t generator;
  ulam_context *ctx;
  bitgen_t *source;
  int32_t problem, fills;
  uint64_t *values;
  uint8_t *kinds;
  int64_t count, capacity, used; /* `count` are there, `used` were given */
};

/* Leaves the evaluation: a generator cannot return an error. */
static void leave(ulam_draws *draws, int32_t problem, const char *text) {
  draws->problem = problem;
  ulam_fail(draws->ctx, ULAM_FATAL, "%s", text);
  ulam_leave(draws->ctx);
}

static void keep(ulam_draws *draws, uint8_t kind, uint64_t value) {
  if (draws->count == draws->capacity) {
    int64_t capacity = 2 * draws->capacity + 64;
    uint64_t *values = realloc(draws->values, (size_t)capacity * sizeof *values);
    if (values) draws->values = values;
    uint8_t *kinds = realloc(draws->kinds, (size_t)capacity);
    if (kinds) draws->kinds = kinds;
    if (values == NULL || kinds == NULL) leave(draws, 3, "no memory to record random draws");
    draws->capacity = capacity;
  }
  draws->values[draws->count] = value;
  draws->kinds[draws->count++] = kind;
}

static uint64_t from_source(bitgen_t *source, uint8_t kind) {
  if (kind == DOUBLE) {
    double real = source->next_double(source->state);
    uint64_t value;
    memcpy(&value, &real, sizeof value);
    return value;
  }
  return kind == UINT64   ? source->next_uint64(source->state)
         : kind == UINT32 ? source->next_uint32(source->state)
                          : source->next_raw(source->state);
}

static uint64_t next(ulam_draws *draws, uint8_t kind) {
  ulam_mask();
  if (draws->used == draws->count) { /* always where draws are recorded */
    if (draws->source == NULL) leave(draws, 1, "there are no more draws");
    keep(draws, kind, from_source(draws->source, kind));
  } else if (draws->kinds[draws->used] != kind) {
    if (!draws->fills || draws->source == NULL) leave(draws, 2, "a distribution asks for other numbers than were given");
    draws->values[draws->used] = from_source(draws->source, kind);
    draws->kinds[draws->used] = kind;
  }
  const uint64_t value = draws->values[draws->used++];
  ulam_unmask();
  return value;
}

static uint64_t next_uint64(void *state) { return next(state, UINT64); }
static uint32_t next_uint32(void *state) { return (uint32_t)next(state, UINT32); }
static uint64_t next_raw(void *state) { return next(state, RAW); }
/* Not reached: draws that know a script by it do not ask for it. */
uint64_t ulam_scripted_raw(void *state) {
  leave(state, 2, "scripted numbers are uniform reals");
  return 0;
}
static double next_double(void *state) {
  uint64_t bits = next(state, DOUBLE);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static ulam_draws *draws_new(ulam_context *ctx, bitgen_t *source) {
  ulam_draws *draws = calloc(1, sizeof *draws);
  if (draws == NULL) return NULL;
  draws->generator = (bitgen_t){draws, next_uint64, next_uint32, next_double, next_raw};
  draws->ctx = ctx;
  draws->source = source;
  return draws;
}

ulam_draws *ulam_draws_new(ulam_context *ctx, bitgen_t *source) { return draws_new(ctx, source); }

ulam_draws *ulam_draws_replayed(ulam_context *ctx, const uint64_t *values, const uint8_t *kinds, int64_t count,
                                int32_t scripted) {
  ulam_draws *draws = draws_new(ctx, NULL);
  if (draws == NULL) return NULL;
  if (scripted) draws->generator.next_raw = ulam_scripted_raw;
  draws->values = malloc((size_t)(count + 1) * sizeof *values);
  draws->kinds = malloc((size_t)(count + 1));
  if (draws->values == NULL || draws->kinds == NULL) {
    ulam_draws_free(draws);
    return NULL;
  }
  if (count > 0) {
    memcpy(draws->values, values, (size_t)count * sizeof *values);
    memcpy(draws->kinds, kinds, (size_t)count);
  }
  draws->count = count;
  draws->capacity = count + 1;
  return draws;
}

ulam_draws *ulam_draws_scripted(ulam_context *ctx, const double *uniforms, int64_t count) {
  uint8_t *kinds = malloc((size_t)(count + 1));
  if (kinds == NULL) return NULL;
  memset(kinds, DOUBLE, (size_t)count);
  ulam_draws *draws = ulam_draws_replayed(ctx, (const uint64_t *)(const void *)uniforms, kinds, count, 1);
  free(kinds);
  return draws;
}

void ulam_draws_free(ulam_draws *draws) {
  if (draws == NULL) return;
  free(draws->values);
  free(draws->kinds);
  free(draws);
}

bitgen_t *ulam_draws_generator(ulam_draws *draws) { return &draws->generator; }

const int64_t *ulam_draws_taken(const ulam_draws *draws) { return &draws->used; }

void ulam_draws_continue(ulam_draws *draws, bitgen_t *source, int32_t fills) {
  draws->source = source;
  draws->fills = fills;
}

/* The numbers that were given so far. */
int64_t ulam_draws_read(const ulam_draws *draws, uint64_t *values, uint8_t *kinds, int64_t capacity) {
  int64_t count = draws->used;
  for (int64_t i = 0; i < count && i < capacity; ++i) {
    values[i] = draws->values[i];
    kinds[i] = draws->kinds[i];
  }
  return count;
}

int32_t ulam_draws_problem(const ulam_draws *draws) { return draws->problem; }
