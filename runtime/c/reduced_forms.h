/* How row_forms.c leaves reduced rows, and which of their columns values are made of.
 *
 * Row behind row, those of groups, key by key, then the shared ones, a triangle of the other columns; all less means of
 * the columns, times the number 1 of the row, and then these means.
 *
 * Or in twice the digits, for form_values.c: column behind column, of each the first row of all groups, the second one
 * of all groups, and so on, then the shared rows. Then room, for some rows are read at a time, and as much again: second
 * numbers.
 *
 * A value is a sum of entries: a coefficient times a column. A plan has, for each kind of coefficients, where the entries
 * of each value begin, and where the last ones end; then the columns of all entries. */
#ifndef ULAM_REDUCED_FORMS_H
#define ULAM_REDUCED_FORMS_H

#include <stdint.h>

enum { ROWS = 4 /* are read at a time */ };

static inline int64_t centred_forms_size(int64_t rows, int64_t columns) { return (rows + 1) * columns; }
static inline int64_t twofold_forms_size(int64_t rows, int64_t columns) { return 2 * (rows * columns + ROWS); }

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
