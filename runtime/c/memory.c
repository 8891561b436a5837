/* How much memory the machine has, and how much of it is free.
 *
 * Where the system promises memory that it does not have, malloc succeeds and the process is killed later, when it
 * writes there. So large blocks are compared with what there is before they are asked for.
 */
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "context.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

#if defined(__linux__)
/* The sum of two entries of /proc/meminfo, in bytes; -1 if it cannot be read. */
static int64_t memory_info(const char *first, const char *second) {
  FILE *file = fopen("/proc/meminfo", "r");
  if (file == NULL) return -1;
  char line[256], name[64];
  long long kilobytes;
  int64_t total = -1;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "%63[^:]: %lld", name, &kilobytes) == 2 && (!strcmp(name, first) || !strcmp(name, second)))
      total = (total < 0 ? 0 : total) + 1024 * (int64_t)kilobytes;
  fclose(file);
  return total;
}

/* What the group of processes that a container runs in may have. */
static int64_t group_limit(void) {
  FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
  if (file == NULL) return INT64_MAX;
  long long bytes;
  int64_t limit = fscanf(file, "%lld", &bytes) == 1 ? (int64_t)bytes : INT64_MAX; /* "max": none */
  fclose(file);
  return limit;
}
#else
static int64_t memory_info(const char *first, const char *second) {
  (void)first, (void)second;
  return -1;
}
static int64_t group_limit(void) { return INT64_MAX; }
#endif

static int64_t physical(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? (int64_t)pages * size : INT64_MAX;
}

int64_t ulam_machine_bytes(void) {
  int64_t total = memory_info("MemTotal", "SwapTotal");
  return smaller(total < 0 ? physical() : total, group_limit());
}

int64_t ulam_available_bytes(void) {
  int64_t available = memory_info("MemAvailable", "SwapFree");
  return smaller(available < 0 ? physical() : available, group_limit());
}
