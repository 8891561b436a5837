#include "spelling.h"

#include <string.h>

#include "source_text.h"

enum {
  longest = 200, /* names that are longer are not compared */
  farthest = 3,
};

static int lower(int c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

static int same_letters(ulam_name a, ulam_name b) {
  if (a.length != b.length) return 0;
  for (int64_t k = 0; k < a.length; ++k)
    if (lower(a.bytes[k]) != lower(b.bytes[k])) return 0;
  return 1;
}

static int32_t letters_of(ulam_name name, int32_t *letters, int32_t most) {
  int32_t count = 0;
  const char *at = name.bytes, *end = at + name.length;
  while (at < end) {
    if (count == most) return most + 1;
    letters[count++] = ulam_utf8_next(&at, end);
  }
  return count;
}

/* Optimal string alignment distance. */
static int32_t distance(const int32_t *a, int32_t a_length, const int32_t *b, int32_t b_length) {
  int32_t rows[3][longest + farthest + 1];
  int32_t *before = rows[0], *last = rows[1], *row = rows[2];
  for (int32_t j = 0; j <= b_length; ++j) last[j] = j;
  for (int32_t i = 1; i <= a_length; ++i) {
    row[0] = i;
    for (int32_t j = 1; j <= b_length; ++j) {
      int32_t cost = last[j] + 1;
      if (row[j - 1] + 1 < cost) cost = row[j - 1] + 1;
      if (last[j - 1] + (a[i - 1] != b[j - 1]) < cost) cost = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < cost)
        cost = before[j - 2] + 1;
      row[j] = cost;
    }
    int32_t *spare = before;
    before = last;
    last = row;
    row = spare;
  }
  return last[b_length];
}

int64_t ulam_nearest_name(ulam_name name, const ulam_name *others, int64_t count) {
  int32_t letters[longest], other[longest + farthest], best[3] = {0};
  int64_t found = -1;
  for (int64_t k = 0; k < count; ++k) {
    int same = same_letters(name, others[k]) && memcmp(name.bytes, others[k].bytes, (size_t)name.length) != 0;
    if (same) return k;
  }
  int32_t length = letters_of(name, letters, longest);
  if (length < 2 || length > longest) return -1;
  int32_t limit = length / 2 < farthest ? length / 2 : farthest;
  for (int64_t k = 0; k < count; ++k) {
    int32_t other_length = letters_of(others[k], other, longest + farthest);
    int32_t difference = other_length < length ? length - other_length : other_length - length;
    if (difference > limit || other_length > longest + farthest) continue;
    int32_t far = distance(letters, length, other, other_length);
    if (far == 0 || far > limit) continue;
    int32_t here[3] = {far, other_length == 0 || other[0] != letters[0], difference};
    int nearer = found < 0;
    for (int part = 0; part < 3 && !nearer; ++part) {
      if (here[part] > best[part]) break;
      nearer = here[part] < best[part];
    }
    if (!nearer) continue;
    memcpy(best, here, sizeof best);
    found = k;
  }
  return found;
}
