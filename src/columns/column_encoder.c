/* column_encoder.c -- see column_encoder.h. */
#include "columns/column_encoder.h"

#include "columns/arrow_message.h"
#include "columns/parquet_group.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct column_encoder {
    const struct column_output *output;
    sam_hdr_t *header;
    struct column_batch *batch;
    struct arrow_coder arrow;
    struct parquet_coder parquet;
};

struct column_encoder *column_encoder_create(const struct column_output *output,
                                             sam_hdr_t *header)
{
    struct column_encoder *encoder = xcalloc(1, sizeof *encoder);
    encoder->output = output;
    encoder->header = header;
    encoder->batch = column_batch_create(output->schema);
    return encoder;
}

void column_encoder_destroy(struct column_encoder *encoder)
{
    if (!encoder) return;
    column_batch_destroy(encoder->batch);
    arrow_coder_release(&encoder->arrow);
    parquet_coder_release(&encoder->parquet);
    free(encoder);
}

void column_encoder_expect(struct column_encoder *encoder, size_t n_rows, size_t n_bytes)
{
    column_batch_expect(encoder->batch, n_rows, n_bytes);
}

const char *column_encoder_add(struct column_encoder *encoder, const uint8_t *rec)
{
    return column_batch_add(encoder->batch, rec);
}

size_t column_encoder_raw_bytes(const struct column_encoder *encoder)
{
    return column_batch_raw_bytes(encoder->batch);
}

size_t column_encoder_value_bytes(const struct column_encoder *encoder)
{
    return column_batch_bytes(encoder->batch);
}

static void put_arrow(struct column_encoder *encoder, size_t begin, struct column_bytes *out,
                      struct column_bytes *notes)
{
    const struct column_output *output = encoder->output;
    struct arrow_place place = arrow_put_batch(&encoder->arrow, output->schema,
                                               column_batch_end(encoder->batch),
                                               column_batch_n_rows(encoder->batch),
                                               output->request, out);
    place.at -= begin;
    arrow_put_place(column_bytes_append(notes, ARROW_PLACE_BYTES), &place);
}

static const char *put_parquet(struct column_encoder *encoder, size_t begin,
                               struct column_bytes *out, struct column_bytes *notes)
{
    const struct parquet_batch batch = {
        .schema = encoder->output->schema,
        .columns = column_batch_end(encoder->batch),
        .n_rows = column_batch_n_rows(encoder->batch),
        .request = encoder->output->request,
        .header = encoder->header,
    };
    return parquet_put_group(&encoder->parquet, &batch, begin, out, notes);
}

const char *column_encoder_put(struct column_encoder *encoder, size_t begin,
                               struct column_bytes *out, struct column_bytes *notes)
{
    const char *problem = NULL;
    if (column_batch_n_rows(encoder->batch) == 0) return NULL;
    if (encoder->output->request->format == COLUMN_FORMAT_PARQUET)
        problem = put_parquet(encoder, begin, out, notes);
    else
        put_arrow(encoder, begin, out, notes);
    column_batch_clear(encoder->batch);
    return problem;
}
