/* Numbers as decimal text. */
#ifndef ULAM_DECIMAL_H
#define ULAM_DECIMAL_H

#include "context.h"

#define DECIMAL_LENGTH 25 /* of a number and a comma, at most */

/* A table of numbers, row by row, as lines with commas. Returns the length of the text; `out` has room for
   DECIMAL_LENGTH characters for each number. */
ULAM_API int64_t ulam_csv_rows(const double *table, int64_t rows, int64_t columns, char *out);

/* One number, of at most as many characters; returns how many. */
int64_t ulam_number_text(double value, char *out);

#endif
