/*
 * column_record.h -- makes records of columns again: the way back from what column_batch.h made.
 *
 * The records are byte for byte those from which the columns were made, with two exceptions: a first
 * quality of 255 makes all others 255, and the bin is that which the positions give.
 *
 * Columns may come from a file that nobody has checked. column_values_problem says whether they can
 * be used; column_record_put finds what is wrong with a single row. Any thread, on different
 * columns.
 */
#ifndef ROCKSORT_COLUMNS_COLUMN_RECORD_H
#define ROCKSORT_COLUMNS_COLUMN_RECORD_H

#include "columns/column_batch.h"

/* Checks that the columns have n_rows rows each, that validity bits, offsets and values are all there
   and agree with each other, and that references are below n_refs. Returns NULL, or what is wrong (a
   static text). */
const char *column_values_problem(const struct column_schema *schema,
                                  const struct column_values *columns, uint64_t n_rows,
                                  uint32_t n_refs);

/* Writes the record of a row in raw form to `out`, which grows. Returns NULL, or what is wrong (a
   static text). The schema must be whole (column_schema_is_whole). */
const char *column_record_put(const struct column_schema *schema,
                              const struct column_values *columns, uint64_t row,
                              struct column_bytes *out);

#endif
