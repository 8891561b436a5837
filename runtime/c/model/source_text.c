#define _GNU_SOURCE /* O_DIRECTORY */
#include "source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "values.h"

enum {
  sample = 4000,      /* characters that are looked at to tell what a file is */
  shown_path = 200,
};

int32_t ulam_utf8_next(const char **from, const char *end) {
  const unsigned char *at = (const unsigned char *)*from, *last = (const unsigned char *)end;
  int32_t code = *at++;
  int more = 0, least = 0x80, most = 0xBF; /* of the second byte */
  if (code >= 0x80) {
    if (code >= 0xC2 && code <= 0xDF) {
      more = 1;
      code &= 0x1F;
    } else if (code >= 0xE0 && code <= 0xEF) {
      more = 2;
      if (code == 0xE0) least = 0xA0;
      if (code == 0xED) most = 0x9F;
      code &= 0x0F;
    } else if (code >= 0xF0 && code <= 0xF4) {
      more = 3;
      if (code == 0xF0) least = 0x90;
      if (code == 0xF4) most = 0x8F;
      code &= 0x07;
    } else {
      code = ULAM_REPLACEMENT;
    }
    for (; more > 0; --more, least = 0x80, most = 0xBF) {
      if (at >= last || *at < least || *at > most) {
        code = ULAM_REPLACEMENT;
        break;
      }
      code = code << 6 | (*at++ & 0x3F);
    }
  }
  *from = (const char *)at;
  return code;
}

static const char *behind_ascii(const char *at, const char *end) {
  for (uint64_t eight; end - at >= 8; at += 8) {
    memcpy(&eight, at, 8);
    if (eight & 0x8080808080808080u) break;
  }
  while (at < end && !(*at & 0x80)) ++at;
  return at;
}

const char *ulam_utf8_problem(const char *at, const char *end) {
  while ((at = behind_ascii(at, end)) < end) {
    const char *here = at;
    /* A replacement that is written stands in three bytes, and no other sequence of three has this code. */
    if (ulam_utf8_next(&at, end) == ULAM_REPLACEMENT && !(at - here == 3 && memcmp(here, "\xEF\xBF\xBD", 3) == 0))
      return here;
  }
  return NULL;
}

const char *ulam_utf8_skip(const char *at, const char *end, int64_t count) {
  while (count-- > 0 && at < end) ulam_utf8_next(&at, end);
  return at;
}

int64_t ulam_utf8_count(const char *at, const char *end) {
  int64_t count = 0;
  for (; at < end; ++count) ulam_utf8_next(&at, end);
  return count;
}

static int is_space(int32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

int ulam_is_blank(const char *at, const char *end, int32_t *first) {
  *first = 0;
  while (at < end)
    if (!is_space(*first = ulam_utf8_next(&at, end))) return 0;
  return 1;
}

/* ---------------------------------------------------------------- files */

static int system_error(const char *path, ulam_text *error) {
  int number = errno;
  ulam_text_add(error, "[Errno %d] %s: '%s'", number, strerror(number), path);
  return 0;
}

int ulam_source_read(const char *path, const char *what, ulam_text *text, ulam_text *error) {
  const char *end = path + strlen(path);
  int shown = (int)(ulam_utf8_skip(path, end, shown_path) - path);
  if (access(path, F_OK) != 0) { /* not `stat`, whose symbol older releases of glibc have not */
    if (strcmp(what, ULAM_DATA) == 0)
      ulam_text_add(error, "data file '%.*s' does not exist", shown, path);
    else
      ulam_text_add(error, "%s: '%.*s' is no JSON text, and no file of this name exists", what, shown, path);
    return 0;
  }
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    close(folder);
    ulam_text_add(error, "%s: '%s' is a folder, not a file", what, path);
    return 0;
  }
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_error(path, error);
  int64_t length = lseek(file, 0, SEEK_END), room = length > 0 ? length + 1 : 1 << 16; /* -1: of a pipe */
  if (length > 0) lseek(file, 0, SEEK_SET);
  for (;;) {
    if (text->capacity - text->length < room + 1) {
      char *grown = realloc(text->bytes, (size_t)(text->length + room + 1));
      if (!grown) {
        close(file);
        return 0;
      }
      text->bytes = grown;
      text->capacity = text->length + room + 1;
    }
    ssize_t count = read(file, text->bytes + text->length, (size_t)room);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      system_error(path, error);
      close(file);
      return 0;
    }
    if (count == 0) break;
    text->length += count;
    room = text->capacity - text->length > 1 ? text->capacity - text->length - 1 : text->length;
  }
  close(file);
  if (text->length >= 3 && memcmp(text->bytes, "\xEF\xBB\xBF", 3) == 0)
    memmove(text->bytes, text->bytes + 3, (size_t)(text->length -= 3));
  text->bytes[text->length] = '\0';
  return 1;
}

/* Whether every second character is NUL, or nearly: two bytes for each letter. */
static int is_wide(const char *at, const char *end) {
  const char *first = at;
  while (first < end && ulam_utf8_next(&first, end) == ULAM_REPLACEMENT) at = first;
  int64_t length[2] = {0, 0}, zeros[2] = {0, 0};
  for (int side = 0; at < end; side = !side) {
    ++length[side];
    zeros[side] += ulam_utf8_next(&at, end) == 0;
  }
  if (length[0] + length[1] < 8) return 0;
  double shares[2] = {(double)zeros[0] / (double)length[0], (double)zeros[1] / (double)length[1]};
  int more = shares[1] > shares[0];
  return shares[!more] < 0.1 && shares[more] > 0.4;
}

int ulam_source_check(const char *text, int64_t length, const char *name, ulam_text *error) {
  const char *end = text + length, *behind = ulam_utf8_skip(text, end, sample);
  int32_t first;
  if (ulam_is_blank(text, end, &first)) {
    ulam_text_add(error, "%s: this file is empty; without values it is {}, as in {\"N\": 1} with one", name);
    return 0;
  }
  int64_t characters = 0, odd = 0, zeros = 0;
  for (const char *at = text; at < behind; ++characters) {
    int32_t c = ulam_utf8_next(&at, behind);
    zeros += c == 0;
    odd += c <= 8 || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == ULAM_REPLACEMENT;
  }
  const char *mend = "save it as UTF-8; `iconv -f %s -t UTF-8 FILE` converts it";
  const char *encoding = NULL;
  if (zeros > 0 && is_wide(text, behind)) {
    ulam_text_add(error, "%s: this is UTF-16 text, and JSON is UTF-8; ", name);
    encoding = "UTF-16";
  } else if (odd > (characters / 10 > 2 ? characters / 10 : 2)) {
    ulam_text_add(error, "%s: this is not text; is it the file that was meant? JSON is UTF-8 text", name);
    return 0;
  } else {
    for (const char *at = text; !encoding && (at = behind_ascii(at, end)) < end;)
      if (ulam_utf8_next(&at, end) == ULAM_REPLACEMENT) encoding = "ISO-8859-1";
    if (!encoding) return 1;
    ulam_text_add(error, "%s: this is not UTF-8 text, but perhaps Latin-1; ", name);
  }
  ulam_text_add(error, mend, encoding);
  return 0;
}
