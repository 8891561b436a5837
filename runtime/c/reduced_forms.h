/* How row_forms.c leaves reduced rows, and which of their columns values are made of.
 *
 * Column behind column: of each the first row of all groups, the second one of all groups, and so on, then the shared
 * rows, a triangle of the other columns. Then room, for some rows are read at a time. In twice the digits as much comes
 * again, second numbers; else columns are less their means, times the number 1 of the row, and the means come, of the
 * first column 1.
 *
 * A value is a sum of entries: a coefficient times a column. A plan has, for each kind of coefficients, where the entries
 * of each value begin, and where the last ones end; then the columns of all entries. */
#ifndef ULAM_REDUCED_FORMS_H
#define ULAM_REDUCED_FORMS_H

#include <stdint.h>

enum { ROWS = 4 /* are read at a time */ };

/* Of numbers, or second ones. */
static inline int64_t reduced_forms_size(int64_t rows, int64_t columns) { return rows * columns + ROWS; }
static inline int64_t centred_forms_size(int64_t rows, int64_t columns) {
  return reduced_forms_size(rows, columns) + columns;
}
static inline int64_t twofold_forms_size(int64_t rows, int64_t columns) {
  return 2 * reduced_forms_size(rows, columns);
}

typedef struct {
  const int64_t *starts, *columns;
} form_entries;

/* Coefficients of all rows, and of groups. */
typedef struct {
  int64_t values;
  form_entries shared, keyed;
} form_plan;

static inline form_plan form_plan_of(const int64_t *plan, int64_t values) {
  const int64_t *keyed = plan + values + 1, *columns = keyed + values + 1;
  return (form_plan){values, {plan, columns}, {keyed, columns + plan[values]}};
}

#endif
