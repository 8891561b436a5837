/* Compiled programs for debuggers: GDB's interface for code that is made at run time (GDB manual, "JIT Compilation
 * Interface"). A debugger puts a breakpoint on `__jit_debug_register_code` and reads `__jit_debug_descriptor`.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"

enum { NOTHING, REGISTER, UNREGISTER };

typedef struct jit_code_entry {
  struct jit_code_entry *next, *previous;
  const char *object; /* an ELF file in memory, with the addresses of its sections */
  uint64_t size;
} jit_code_entry;

struct jit_descriptor {
  uint32_t version, action;
  jit_code_entry *relevant, *first;
};

/* The names are those that debuggers look for. */
ULAM_API __attribute__((used)) struct jit_descriptor __jit_debug_descriptor = {1, NOTHING, NULL, NULL};
ULAM_API __attribute__((noinline, used)) void __jit_debug_register_code(void);
void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

ULAM_API void *ulam_debugger_register(const char *object, int64_t size);
ULAM_API void ulam_debugger_unregister(void *registered);

/* Shows an object file to debuggers; it is copied. Returns what unregisters it, NULL if there is no memory. */
void *ulam_debugger_register(const char *object, int64_t size) {
  jit_code_entry *entry = malloc(sizeof *entry + (size_t)size);
  if (entry == NULL) return NULL;
  char *copy = (char *)(entry + 1);
  memcpy(copy, object, (size_t)size);
  entry->object = copy;
  entry->size = (uint64_t)size;
  entry->previous = NULL;
  pthread_mutex_lock(&lock);
  entry->next = __jit_debug_descriptor.first;
  if (entry->next) entry->next->previous = entry;
  __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = REGISTER;
  __jit_debug_register_code();
  pthread_mutex_unlock(&lock);
  return entry;
}

void ulam_debugger_unregister(void *registered) {
  jit_code_entry *entry = registered;
  pthread_mutex_lock(&lock);
  if (entry->previous) entry->previous->next = entry->next;
  else __jit_debug_descriptor.first = entry->next;
  if (entry->next) entry->next->previous = entry->previous;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_descriptor.action = UNREGISTER;
  __jit_debug_register_code();
  pthread_mutex_unlock(&lock);
  free(entry);
}
