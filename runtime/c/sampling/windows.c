#include "windows.h"

enum { SHORTEST = 20 };

void ulam_windows_begin(warmup_windows *windows, int64_t warmup, int64_t init_buffer, int64_t term_buffer,
                        int64_t window) {
  if (init_buffer > warmup || term_buffer > warmup || window > warmup ||
      init_buffer + window + term_buffer > warmup) {
    init_buffer = warmup * 15 / 100;
    term_buffer = warmup * 10 / 100;
    window = warmup - init_buffer - term_buffer;
  }
  windows->begin = init_buffer;
  windows->end = warmup < SHORTEST ? init_buffer : warmup - term_buffer;
  windows->size = window;
  windows->last = init_buffer + window - 1;
}

int32_t ulam_windows_at(warmup_windows *windows, int64_t iteration) {
  if (iteration < windows->begin || iteration >= windows->end) return WINDOW_OUTSIDE;
  if (iteration < windows->last) return WINDOW_INSIDE;
  windows->size *= 2;
  windows->last = iteration + windows->size;
  if (windows->last + 2 * windows->size >= windows->end) windows->last = windows->end - 1;
  return WINDOW_ENDS;
}
