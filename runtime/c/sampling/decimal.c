/* Numbers as decimal text: the shortest that reads back to the same number, the nearest one of these.
   R. Giulietti, "The Schubfach way to render doubles" (2021): a multiple of a power of ten in the interval of what reads
   back is found with three products of 64 and 126 bits; the names are those of the paper. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "decimal.h"

typedef unsigned __int128 wide;

enum {
  least_power = -292, /* of ten, that a number is multiplied with */
  largest_power = 324,
  powers = largest_power - least_power + 1,
  words = 78, /* of 32 bits: 2^2400 and 10^324 have room */
};

static const uint64_t low_63 = ((uint64_t)1 << 63) - 1;

/* 10^e, scaled to 126 bits and above its exact value by at most one unit: g = high 2^63 + low. */
static struct {
  uint64_t high, low;
} scaled[powers];
static pthread_once_t scaled_once = PTHREAD_ONCE_INIT;

/* ---------------------------------------------------------------- powers of ten */

static int bit_length(const uint32_t *number) {
  for (int k = words; k-- > 0;)
    if (number[k]) return 32 * k + 32 - __builtin_clz(number[k]);
  return 0;
}

static uint32_t bit(const uint32_t *number, int place) {
  return place < 0 ? 0 : number[place / 32] >> (place % 32) & 1;
}

/* The leading 126 bits, and one more unit. */
static void keep_leading(int e, const uint32_t *number) {
  int length = bit_length(number);
  wide leading = 0;
  for (int k = 1; k <= 126; ++k) leading = leading << 1 | bit(number, length - k);
  ++leading;
  scaled[e - least_power].high = (uint64_t)(leading >> 63);
  scaled[e - least_power].low = (uint64_t)leading & low_63;
}

static void make_powers(void) {
  uint32_t number[words] = {1};
  for (int e = 0; e <= largest_power; ++e) {
    keep_leading(e, number);
    uint64_t carry = 0;
    for (int k = 0; k < words; ++k) {
      carry += (uint64_t)number[k] * 10;
      number[k] = (uint32_t)carry;
      carry >>= 32;
    }
  }
  memset(number, 0, sizeof number);
  number[2400 / 32] = 1; /* what is rounded off of its quotients is far below 126 bits */
  for (int e = -1; e >= least_power; --e) {
    uint64_t rest = 0;
    for (int k = words; k-- > 0;) {
      rest = rest << 32 | number[k];
      number[k] = (uint32_t)(rest / 10);
      rest %= 10;
    }
    keep_leading(e, number);
  }
}

/* ---------------------------------------------------------------- digits */

/* g cp / 2^127, rounded to odd. */
static uint64_t product(int e, uint64_t cp) {
  uint64_t x = (uint64_t)((wide)scaled[e - least_power].low * cp >> 64);
  wide y = (wide)scaled[e - least_power].high * cp;
  uint64_t z = ((uint64_t)y >> 1) + x;
  uint64_t w = (uint64_t)(y >> 64) + (z >> 63);
  return w | ((z & low_63) != 0);
}

/* The digits and the power of ten of a positive number, by its bits. */
static uint64_t shortest(uint64_t bits, int *power) {
  const double log10_2 = 0.30102999566398119521, log2_10 = 3.32192809488736234787;
  const double log10_three_quarters = -0.12493873660829995313;
  uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
  int exponent = (int)(bits >> 52);
  uint64_t c = exponent ? fraction | (uint64_t)1 << 52 : fraction;
  int q = (exponent ? exponent : 1) - 1075;
  /* Of powers of two the neighbour below is nearer. No multiple of log10(2) here is so near to a whole number that
     rounding could tell. */
  int irregular = fraction == 0 && exponent > 1;
  int k = (int)floor(irregular ? q * log10_2 + log10_three_quarters : q * log10_2);
  int h = q + (int)floor(-k * log2_10) + 2;
  uint64_t cb = c << 2, out = c & 1; /* of an odd number the bounds read back to its neighbours */
  uint64_t below = product(-k, (irregular ? cb - 1 : cb - 2) << h) + out;
  uint64_t value = product(-k, cb << h);
  uint64_t above = product(-k, (cb + 2) << h) - out;
  *power = k;
  uint64_t s = value >> 2, tens = s / 10 * 10;
  int lower = below <= tens << 2, upper = (tens + 10) << 2 <= above;
  if (lower != upper) return lower ? tens : tens + 10;
  lower = below <= s << 2;
  upper = (s + 1) << 2 <= above;
  if (lower != upper) return lower ? s : s + 1;
  uint64_t middle = (s << 2) + 2;
  return value < middle || (value == middle && !(s & 1)) ? s : s + 1;
}

/* ---------------------------------------------------------------- text */

static char *word(char *out, const char *text) {
  size_t length = strlen(text);
  memcpy(out, text, length);
  return out + length;
}

/* These digits as C's %g writes them: with an exponent below 1e-4 and from 1e16. */
static char *placed(char *out, uint64_t digits, int power) {
  char text[24], *end = text + sizeof text, *first = end;
  while (digits % 10 == 0) {
    digits /= 10;
    ++power;
  }
  for (; digits; digits /= 10) *--first = (char)('0' + digits % 10);
  int count = (int)(end - first), point = count + power; /* digits before the point */
  if (point > 16 || point < -3) {
    *out++ = *first;
    if (count > 1) {
      *out++ = '.';
      memcpy(out, first + 1, (size_t)count - 1);
      out += count - 1;
    }
    int exponent = point - 1;
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    if (exponent < 0) exponent = -exponent;
    if (exponent >= 100) *out++ = (char)('0' + exponent / 100);
    *out++ = (char)('0' + exponent / 10 % 10);
    *out++ = (char)('0' + exponent % 10);
    return out;
  }
  if (point <= 0) {
    out = word(out, "0.");
    for (; point < 0; ++point) *out++ = '0';
    memcpy(out, first, (size_t)count);
    return out + count;
  }
  for (int k = 0; k < count || k < point; ++k) {
    if (k == point) *out++ = '.';
    *out++ = k < count ? first[k] : '0';
  }
  return out;
}

static char *number_text(char *out, double value) {
  if (isnan(value)) return word(out, "nan");
  if (signbit(value)) *out++ = '-';
  if (isinf(value)) return word(out, "inf");
  if (value == 0) return word(out, "0");
  value = fabs(value);
  if (value < 1e15 && value == floor(value)) return placed(out, (uint64_t)value, 0);
  uint64_t bits;
  int power;
  memcpy(&bits, &value, sizeof bits);
  uint64_t digits = shortest(bits, &power);
  return placed(out, digits, power);
}

int64_t ulam_number_text(double value, char *out) {
  pthread_once(&scaled_once, make_powers);
  return number_text(out, value) - out;
}

int64_t ulam_csv_rows(const double *table, int64_t rows, int64_t columns, char *out) {
  pthread_once(&scaled_once, make_powers);
  char *end = out;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      end = number_text(end, table[i * columns + j]);
      *end++ = j + 1 < columns ? ',' : '\n';
    }
  }
  return end - out;
}
