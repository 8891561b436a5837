/* Calls C functions for another process: commands on standard input, answers on standard output, of 8-byte numbers.
 *
 *   OPEN length bytes            -> handle of the shared library of this path, or 0
 *   SYMBOL handle length bytes   -> address, or 0
 *   ALLOCATE count               -> address of `count` bytes, all 0
 *   WRITE address count bytes    -> nothing
 *   READ address count           -> the bytes
 *   CALL address real, 32 integers or pointers, 8 reals   -> the result: of type double if `real`, else an integer
 *   GENERATOR seed               -> address of a random bit generator, as NumPy's bitgen_t
 *
 * A function may have fewer arguments than are given here, in the conventions for calls of x86-64 and of AArch64 on Linux.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPEN, SYMBOL, ALLOCATE, WRITE, READ, CALL, GENERATOR };

typedef struct {
  void *state;
  uint64_t (*next_u64)(void *);
  uint32_t (*next_u32)(void *);
  double (*next_double)(void *);
  uint64_t (*next_raw)(void *);
} generator;

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t next_u64(void *state) {
  uint64_t z = (*(uint64_t *)state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}
static uint32_t next_u32(void *state) { return (uint32_t)(next_u64(state) >> 32); }
static double next_double(void *state) { return (double)(next_u64(state) >> 11) * 0x1p-53; }

static void *take(void *to, size_t count) {
  if (count && fread(to, 1, count, stdin) != count) exit(0); /* the other side has gone */
  return to;
}
static int64_t number(void) {
  int64_t value;
  take(&value, sizeof value);
  return value;
}
static void *pointer(void) { return (void *)(intptr_t)number(); }
static char *text(void) {
  size_t length = (size_t)number();
  char *bytes = calloc(length + 1, 1);
  return take(bytes, length);
}
static void answer(int64_t value) { fwrite(&value, sizeof value, 1, stdout); }

#define EIGHT(i, n) i[n], i[n + 1], i[n + 2], i[n + 3], i[n + 4], i[n + 5], i[n + 6], i[n + 7]
#define INTEGERS(i) EIGHT(i, 0), EIGHT(i, 8), EIGHT(i, 16), EIGHT(i, 24)
#define REALS(r) r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]
#define EIGHT_OF(type) type, type, type, type, type, type, type, type
#define ARGUMENTS EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(int64_t), EIGHT_OF(double)

static int64_t call(void) {
  void *address = pointer();
  int64_t real = number(), i[32];
  double r[8];
  take(i, sizeof i), take(r, sizeof r);
  if (!real) return ((int64_t(*)(ARGUMENTS))address)(INTEGERS(i), REALS(r));
  union {
    double real;
    int64_t bits;
  } result = {.real = ((double (*)(ARGUMENTS))address)(INTEGERS(i), REALS(r))};
  return result.bits;
}

static int64_t new_generator(void) {
  uint64_t *state = malloc(sizeof *state);
  generator *made = malloc(sizeof *made);
  *state = (uint64_t)number();
  *made = (generator){state, next_u64, next_u32, next_double, next_u64};
  return (int64_t)(intptr_t)made;
}

int main(void) {
  for (;; fflush(stdout)) switch (number()) {
      case OPEN: {
        void *handle = dlopen(text(), RTLD_NOW | RTLD_GLOBAL);
        if (!handle) fprintf(stderr, "%s\n", dlerror());
        answer((int64_t)(intptr_t)handle);
        break;
      }
      case SYMBOL: {
        void *handle = pointer();
        answer((int64_t)(intptr_t)dlsym(handle, text()));
        break;
      }
      case ALLOCATE: answer((int64_t)(intptr_t)calloc((size_t)number() + 1, 1)); break;
      case WRITE: {
        void *to = pointer();
        take(to, (size_t)number());
        break;
      }
      case READ: {
        void *from = pointer();
        fwrite(from, 1, (size_t)number(), stdout);
        break;
      }
      case CALL: answer(call()); break;
      case GENERATOR: answer(new_generator()); break;
      default: return 1;
    }
}
