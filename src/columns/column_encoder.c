/* column_encoder.c -- see column_encoder.h. */
#include "columns/column_encoder.h"

#include "util/xalloc.h"

#include <stdlib.h>

struct column_encoder {
    const struct column_output *output;
    struct column_batch *batch;
    struct arrow_coder coder;
};

struct column_encoder *column_encoder_create(const struct column_output *output)
{
    struct column_encoder *encoder = xcalloc(1, sizeof *encoder);
    encoder->output = output;
    encoder->batch = column_batch_create(output->schema);
    return encoder;
}

void column_encoder_destroy(struct column_encoder *encoder)
{
    if (!encoder) return;
    column_batch_destroy(encoder->batch);
    arrow_coder_release(&encoder->coder);
    free(encoder);
}

const char *column_encoder_add(struct column_encoder *encoder, const uint8_t *rec)
{
    return column_batch_add(encoder->batch, rec);
}

bool column_encoder_is_full(const struct column_encoder *encoder)
{
    return column_batch_is_full(encoder->batch);
}

bool column_encoder_put(struct column_encoder *encoder, struct column_bytes *out,
                        struct arrow_place *place)
{
    const struct column_output *output = encoder->output;
    uint64_t n_rows = column_batch_n_rows(encoder->batch);
    if (n_rows == 0) return false;
    *place = arrow_put_batch(&encoder->coder, output->schema, column_batch_end(encoder->batch),
                             n_rows, output->request, out);
    column_batch_clear(encoder->batch);
    return true;
}
