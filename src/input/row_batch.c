/* row_batch.c -- see row_batch.h. */
#include "input/row_batch.h"

#include "columns/column_record.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct row_batch {
    const struct column_schema *schema;
    struct column_values *columns;
    unsigned n_columns;
    uint64_t n_rows;
    size_t n_bytes;
    atomic_size_t *all_bytes;   /* of the batches of the input */
    atomic_uint n_holders;
};

struct row_batch *row_batch_create(const struct column_schema *schema,
                                   struct column_values *columns, uint64_t n_rows,
                                   atomic_size_t *n_bytes)
{
    struct row_batch *batch = xcalloc(1, sizeof *batch);
    batch->schema = schema;
    batch->columns = columns;
    batch->n_columns = schema->n_columns;
    batch->n_rows = n_rows;
    for (unsigned i = 0; i < batch->n_columns; i++)
        batch->n_bytes += (size_t)column_values_bytes(&columns[i]);
    batch->all_bytes = n_bytes;
    (void)atomic_fetch_add(n_bytes, batch->n_bytes);
    atomic_init(&batch->n_holders, 1);
    return batch;
}

struct row_batch *row_batch_hold(struct row_batch *batch)
{
    (void)atomic_fetch_add(&batch->n_holders, 1);
    return batch;
}

void row_batch_drop(struct row_batch *batch)
{
    if (!batch || atomic_fetch_sub(&batch->n_holders, 1) > 1) return;
    (void)atomic_fetch_sub(batch->all_bytes, batch->n_bytes);
    column_values_free(batch->columns, batch->n_columns);
    free(batch);
}

uint64_t row_batch_n_rows(const struct row_batch *batch)
{
    return batch->n_rows;
}

size_t row_batch_row_bytes(const struct row_batch *batch)
{
    return (size_t)(batch->n_bytes / (batch->n_rows > 0 ? batch->n_rows : 1)) + 1;
}

const char *row_batch_put(const struct row_batch *batch, uint64_t row, struct column_bytes *out)
{
    return column_record_put(batch->schema, batch->columns, row, out);
}
