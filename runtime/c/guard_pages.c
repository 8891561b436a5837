/* Memory with guard pages: the arena, bound memory, arrays, and all else that the runtime allocates. For tests, in builds
 * with -DULAM_GUARD_PAGES -include guard_malloc.h.
 *
 * Each block has pages of its own, with a page that nobody may touch on both sides:
 *
 *     | guard | garbage ....... block | guard |        | guard | block ....... garbage | guard |
 *
 * right-aligned, so that one byte behind its end faults, or left-aligned, so that one byte before its beginning does.
 * A block that is given back is closed, and its addresses are not used again for long: late accesses fault, too.
 * Blocks are as long as what was asked for. Emitted code asks for exact sizes if it was made for such a build
 * (`EmitOptions.exact_blocks`); that made for the ordinary runtime takes whole lines of 64 bytes, and reads up to
 * ULAM_SLACK bytes behind them (`whole_lines`).
 */
#ifdef ULAM_GUARD_PAGES

#include "guard_malloc.h"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef mmap
#undef munmap

#include "guard_pages.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "services.h"

enum { LINE = 64, FILLED = 1 << 20 };
static const int64_t REGION_BYTES = (int64_t)1 << 36, MOST_BYTES = (int64_t)1 << 30;

typedef struct {
  ulam_chunk chunk; /* start, end: of the block; what context and bound memory chain it by */
  char *mark;       /* the arena's cursor while this is its newest block: no two have the same */
  int64_t page, pages; /* of the region, the guard behind them included; 0 of them: from malloc */
} guard_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *region;
static guard_block **owners; /* of each page of the region; NULL: closed */
static int64_t page_bytes, region_pages, next_page, blocks_made, blocks_unguarded;
static int32_t to_left, garbage_byte = 0x7f, in_whole_lines;

void ulam_guard_configure(int32_t left, int32_t garbage, int32_t whole_lines) {
  to_left = left;
  garbage_byte = garbage;
  in_whole_lines = whole_lines;
}

int32_t ulam_guard_whole_lines(void) { return in_whole_lines; }

void ulam_guard_counts(int64_t *blocks, int64_t *unguarded) {
  *blocks = blocks_made;
  *unguarded = blocks_unguarded;
}

static void hold_lock(void) { pthread_mutex_lock(&lock); }
static void let_lock_go(void) { pthread_mutex_unlock(&lock); }

static int begin_region(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (region != NULL) return 1;
  page_bytes = sysconf(_SC_PAGESIZE);
  region_pages = REGION_BYTES / page_bytes;
  char *pages = mmap(NULL, (size_t)REGION_BYTES, PROT_NONE, flags, -1, 0);
  void *table = mmap(NULL, (size_t)region_pages * sizeof *owners, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == MAP_FAILED || table == MAP_FAILED) return 0;
  owners = table;
  region = pages;
  next_page = 1;
  if (pthread_atfork(hold_lock, let_lock_go, let_lock_go) != 0) abort(); /* a child would wait for it for ever */
  return 1;
}

/* The first of `count` neighbouring closed pages, the search beginning behind those given last; 0: there are none. */
static int64_t find_pages(int64_t count) {
  int64_t first = next_page, run = 0;
  for (int64_t seen = 0; seen < 2 * region_pages; ++seen) {
    if (first + run >= region_pages) {
      first = 1;
      run = 0;
    }
    if (owners[first + run] != NULL) {
      first += run + 1;
      run = 0;
    } else if (++run == count) {
      return first;
    }
  }
  return 0;
}

static void fill(char *at, int64_t bytes) {
  int64_t ends = bytes < FILLED ? bytes : FILLED;
  memset(at, garbage_byte, (size_t)ends);
  memset(at + bytes - ends, garbage_byte, (size_t)ends);
}

/* A block with `bytes` that may be used and `slack` behind them that may be read. */
static guard_block *block_new(int64_t bytes, int64_t slack) {
  if (bytes < 0 || bytes > MOST_BYTES) return NULL;
  guard_block *block = calloc(1, sizeof *block);
  if (block == NULL) return NULL;
  pthread_mutex_lock(&lock);
  int64_t wanted = bytes + slack, pages = 0, first = 0;
  if (begin_region()) {
    pages = (wanted + page_bytes - 1) / page_bytes;
    first = find_pages(pages + 1);
  }
  char *start = region + first * page_bytes;
  int opened = first != 0 && mprotect(start, (size_t)(pages * page_bytes), PROT_READ | PROT_WRITE) == 0;
  ++blocks_made;
  if (opened) {
    block->page = first;
    block->pages = pages + 1;
    for (int64_t p = first; p <= first + pages; ++p) owners[p] = block;
    next_page = first + pages + 1;
  }
  pthread_mutex_unlock(&lock);
  if (opened) {
    fill(start, pages * page_bytes);
    block->mark = start + pages * page_bytes;
    if (!to_left) start = block->mark - wanted;
  } else {
    start = malloc((size_t)wanted + 2 * LINE);
    if (start == NULL) {
      free(block);
      return NULL;
    }
    ++blocks_unguarded;
    fill(start, wanted + 2 * LINE);
    block->mark = start + wanted + LINE;
  }
  block->chunk.start = start;
  block->chunk.end = start + bytes;
  return block;
}

static void block_free(guard_block *block) {
  if (block == NULL) return;
  if (block->pages == 0) {
    free(block->chunk.start);
  } else {
    pthread_mutex_lock(&lock);
    char *start = region + block->page * page_bytes;
    for (int64_t p = 0; p < block->pages; ++p) owners[block->page + p] = NULL;
    mmap(start, (size_t)((block->pages - 1) * page_bytes), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    pthread_mutex_unlock(&lock);
  }
  free(block);
}

static guard_block *owner_of(const void *address) {
  int64_t distance = (const char *)address - region;
  if (region == NULL || distance < 0 || distance >= REGION_BYTES) return NULL;
  return owners[distance / page_bytes];
}

const void *ulam_guard_ahead(const void *address, int64_t bytes) {
  static char garbage[ULAM_SLACK];
  const guard_block *block = owner_of(address);
  int64_t behind = block ? (const char *)address + bytes - block->chunk.end : 0;
  if (behind <= 0 || behind > ULAM_SLACK) return address;
  memset(garbage, garbage_byte, sizeof garbage);
  return garbage;
}

static void not_given(const char *what) {
  fprintf(stderr, "guard pages: %s\n", what);
  abort();
}

int64_t ulam_guard_bytes(const void *address) {
  const guard_block *block = owner_of(address);
  return block != NULL && block->chunk.start == address ? block->chunk.end - block->chunk.start : -1;
}

/* ---------------------------------------------------------------- the arena */

/* With whole lines the cursor is the block's end, so that code may take nothing there without asking. */
static void enter_block(ulam_context *ctx, guard_block *block) {
  ctx->services->chunks = &block->chunk;
  ctx->arena_start = ctx->arena_cursor = ctx->arena_end = block->mark;
}

static void leave_block(ulam_context *ctx) {
  guard_block *block = (guard_block *)ctx->services->chunks;
  ctx->services->chunks = block->chunk.previous;
  ctx->services->held_bytes -= block->chunk.end - block->chunk.start;
  block_free(block);
}

static guard_block *arena_block(int64_t bytes) {
  if (!in_whole_lines) return block_new(bytes, 0);
  guard_block *block = block_new((bytes + LINE - 1) & ~(int64_t)(LINE - 1), ULAM_SLACK);
  if (block != NULL) block->mark = block->chunk.end;
  return block;
}

int ulam_arena_begin(ulam_context *ctx, int64_t keep_bytes) {
  guard_block *first = arena_block(0);
  if (first == NULL) return 0;
  ctx->services->keep_bytes = keep_bytes;
  enter_block(ctx, first);
  return 1;
}

void ulam_arena_end(ulam_context *ctx) {
  while (ctx->services->chunks != NULL) leave_block(ctx);
}

void *ulam_arena_grow(ulam_context *ctx, int64_t bytes) {
  ulam_mask();
  guard_block *block = arena_block(bytes);
  if (block == NULL) ulam_out_of_memory(ctx, bytes);
  block->chunk.previous = ctx->services->chunks;
  ctx->services->held_bytes += block->chunk.end - block->chunk.start;
  enter_block(ctx, block);
  ulam_unmask();
  return block->chunk.start;
}

void ulam_arena_release(ulam_context *ctx, char *mark) {
  ulam_mask();
  while (ctx->services->chunks->previous != NULL && ((guard_block *)ctx->services->chunks)->mark != mark)
    leave_block(ctx);
  guard_block *block = (guard_block *)ctx->services->chunks;
  if (block->mark != mark) not_given("the arena is released to a place that is no mark");
  enter_block(ctx, block);
  ulam_unmask();
}

void ulam_arena_reset(ulam_context *ctx) {
  while (ctx->services->chunks->previous != NULL) leave_block(ctx);
  enter_block(ctx, (guard_block *)ctx->services->chunks);
}

/* ---------------------------------------------------------------- memory of bound data, and any other */

struct ulam_bound_memory {
  ulam_chunk *chunks;
};

ulam_bound_memory *ulam_bound_memory_new(void) { return calloc(1, sizeof(ulam_bound_memory)); }

void ulam_bound_memory_free(ulam_bound_memory *memory) {
  if (memory == NULL) return;
  for (ulam_chunk *chunk = memory->chunks, *previous; chunk; chunk = previous) {
    previous = chunk->previous;
    block_free((guard_block *)chunk);
  }
  free(memory);
}

void *ulam_bound_memory_alloc(ulam_bound_memory *memory, int64_t bytes) {
  guard_block *block = block_new(bytes, 0);
  if (block == NULL) return NULL;
  block->chunk.previous = memory->chunks;
  memory->chunks = &block->chunk;
  return block->chunk.start;
}

/* ---------------------------------------------------------------- what the runtime asks the system for */

void *ulam_guard_malloc(size_t bytes) {
  guard_block *block = block_new((int64_t)bytes, 0);
  if (block == NULL || block->pages != 0) return block ? block->chunk.start : NULL;
  block_free(block); /* no more maps: `free` must be able to take it */
  void *unguarded = malloc(bytes);
  return unguarded ? memset(unguarded, garbage_byte, bytes) : NULL;
}

void *ulam_guard_calloc(size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) return NULL;
  void *block = ulam_guard_malloc(all);
  return block ? memset(block, 0, all) : NULL;
}

char *ulam_guard_strdup(const char *text) {
  const size_t bytes = strlen(text) + 1;
  char *copy = ulam_guard_malloc(bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

void ulam_guard_release(void *address) {
  if (address == NULL) return;
  guard_block *block = owner_of(address);
  if (block == NULL)
    free(address); /* no more maps, or from before there were guard pages */
  else if (block->chunk.start == address)
    block_free(block);
  else
    not_given("memory is given back by an address inside of it");
}

void *ulam_guard_realloc(void *address, size_t bytes) {
  guard_block *block = owner_of(address);
  if (address != NULL && block == NULL) return realloc(address, bytes);
  void *grown = ulam_guard_malloc(bytes);
  if (grown == NULL || address == NULL) return grown;
  size_t before = (size_t)(block->chunk.end - block->chunk.start);
  memcpy(grown, address, before < bytes ? before : bytes);
  block_free(block);
  return grown;
}

/* Maps begin where a page begins, and end with one. */
void *ulam_guard_map(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  guard_block *block = address == NULL && bytes % (size_t)sysconf(_SC_PAGESIZE) == 0 ? block_new((int64_t)bytes, 0) : NULL;
  if (block == NULL || block->pages == 0) {
    block_free(block);
    return mmap(address, bytes, protection, flags, file, offset);
  }
  void *mapped = mmap(block->chunk.start, bytes, protection, flags | MAP_FIXED, file, offset);
  if (mapped == MAP_FAILED) block_free(block);
  return mapped;
}

int ulam_guard_unmap(void *address, size_t bytes) {
  guard_block *block = owner_of(address);
  if (block == NULL) return munmap(address, bytes);
  if (address != block->chunk.start || (int64_t)bytes != block->chunk.end - block->chunk.start)
    not_given("what is unmapped is not what was mapped");
  block_free(block);
  return 0;
}

/* ---------------------------------------------------------------- arrays of NumPy */

static void *array_malloc(void *context, size_t bytes) {
  (void)context;
  return ulam_guard_malloc(bytes);
}

static void *array_calloc(void *context, size_t count, size_t bytes) {
  (void)context;
  return ulam_guard_calloc(count, bytes);
}

static void array_free(void *context, void *array, size_t bytes) {
  (void)context;
  (void)bytes;
  ulam_guard_release(array);
}

static void *array_realloc(void *context, void *array, size_t bytes) {
  (void)context;
  return ulam_guard_realloc(array, bytes);
}

/* As in NumPy's ndarraytypes.h, which needs Python's headers. */
static struct {
  char name[127];
  uint8_t version;
  struct {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
  } allocator;
} array_handler = {"ulam_guard_pages", 1, {NULL, array_malloc, array_calloc, array_realloc, array_free}};

void *ulam_guard_array_handler(void) { return &array_handler; }

/* ---------------------------------------------------------------- faults */

static struct sigaction handler_before;

static void write_text(const char *text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

static void on_fault(int number, siginfo_t *info, void *machine) {
  (void)machine;
  char text[256];
  const char *address = info->si_addr;
  const guard_block *block = owner_of(address);
  if (block == NULL && region != NULL && address >= region && address < region + REGION_BYTES) {
    const guard_block *behind = owner_of(address + page_bytes); /* an underrun meets the page before the first */
    if (behind != NULL && address < behind->chunk.start) block = behind;
  }
  if (block != NULL) {
    long long size = block->chunk.end - block->chunk.start, offset = address - block->chunk.start;
    snprintf(text, sizeof text, "guard pages: access at byte %lld of a block of %lld bytes\n", offset, size);
    write_text(text);
  } else if (region != NULL && address >= region && address < region + REGION_BYTES) {
    write_text("guard pages: access to memory that was given back, or is far from all blocks\n");
  } else {
    snprintf(text, sizeof text, "guard pages: access at %p, which is of no block\n", (const void *)address);
    write_text(text);
  }
  sigaction(number, &handler_before, NULL); /* the access is repeated, and faults again */
}

int32_t ulam_guard_report_faults(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return sigaction(SIGSEGV, &action, &handler_before);
}

#endif
