/* column_file.c -- see column_file.h. */
#include "columns/column_file.h"

#include "columns/arrow_message.h"
#include "columns/parquet_footer.h"
#include "columns/parquet_group.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* ---- batches ---- */

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

struct column_batch *column_encoder_batch(struct column_encoder *encoder)
{
    return encoder->batch;
}

const char *column_encoder_put(struct column_encoder *encoder, size_t begin,
                               struct byte_buffer *out, struct byte_buffer *metadata)
{
    const struct column_output *output = encoder->output;
    const struct encoded_batch batch = {
        .schema = output->schema, .columns = column_batch_end(encoder->batch),
        .n_rows = encoder->batch->n_rows, .request = output->request,
        .header = encoder->header,
    };
    const char *problem = NULL;
    if (batch.n_rows == 0) return NULL;
    if (output->request->format == COLUMN_FORMAT_PARQUET) {
        problem = parquet_put_group(&encoder->parquet, &batch, begin, out, metadata);
    } else {
        struct arrow_place place = arrow_put_batch(&encoder->arrow, &batch, out);
        place.at -= begin;
        byte_buffer_copy(metadata, &place, sizeof place);
    }
    column_batch_clear(encoder->batch);
    return problem;
}

/* ---- files ---- */

struct column_file {
    const struct column_output *output;
    struct tape_set *spool;
    struct parquet_footer parquet;
    /* Arrow */
    struct arrow_coder coder;
    struct arrow_place references;
};

struct column_file *column_file_create(const struct column_output *output, size_t memory_bytes,
                                       const struct temp_places *places, const char *name)
{
    struct column_file *file = xcalloc(1, sizeof *file);
    bool is_parquet = output->request->format == COLUMN_FORMAT_PARQUET;
    file->output = output;
    file->spool = tape_set_create(is_parquet ? PARQUET_N_STREAMS : 1, memory_bytes, places);
    file->parquet = (struct parquet_footer){
        .name = name, .schema = output->schema, .spool = file->spool,
        .is_compressed = output->request->codec != COLUMN_CODEC_NONE,
        .most_footer_bytes = 1 << 30,
    };
    file->parquet.leaves = parquet_leaves(output->schema, &file->parquet.n_leaves);
    return file;
}

void column_file_destroy(struct column_file *file)
{
    if (!file) return;
    arrow_coder_release(&file->coder);
    tape_set_destroy(file->spool);
    free(file->parquet.leaves);
    free(file);
}

void column_file_begin(struct column_file *file, sam_hdr_t *header, struct byte_buffer *out)
{
    const struct column_schema *schema = file->output->schema;
    enum column_format format = file->output->request->format;
    if (format == COLUMN_FORMAT_PARQUET) {
        byte_buffer_copy(out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
        return;
    }
    if (format == COLUMN_FORMAT_ARROW) arrow_put_file_begin(out);
    arrow_put_schema(&file->coder, schema, header, out);
    if (column_schema_has_references(schema))
        file->references = arrow_put_references(&file->coder, header, out);
}

int column_file_add(struct column_file *file, const struct byte_buffer *metadata,
                    uint64_t position)
{
    enum column_format format = file->output->request->format;
    int r = 0;
    if (format == COLUMN_FORMAT_PARQUET)
        return parquet_footer_add(&file->parquet, metadata, position);
    if (format == COLUMN_FORMAT_ARROW_STREAM) return 0;
    for (size_t at = 0; r == 0 && at < metadata->n_bytes; at += sizeof(struct arrow_place)) {
        struct arrow_place place;
        memcpy(&place, metadata->bytes + at, sizeof place);
        place.at += position;
        r = tape_set_append(file->spool, 0, &place, sizeof place);
    }
    return r;
}

static int write_out(struct byte_buffer *out, const struct column_sink *sink)
{
    bool is_written = sink->write(sink->arg, out->bytes, out->n_bytes);
    byte_buffer_forget(out, false);
    return is_written ? 0 : -1;
}

static int write_arrow_end(struct column_file *file, sam_hdr_t *header,
                           const struct column_sink *sink)
{
    const struct column_schema *schema = file->output->schema;
    struct byte_buffer out = {0};
    arrow_put_stream_end(&out);
    if (file->output->request->format == COLUMN_FORMAT_ARROW_STREAM) return write_out(&out, sink);
    size_t n_batches = (size_t)(tape_set_bytes(file->spool, 0) / sizeof(struct arrow_place));
    size_t n_bytes = arrow_put_file_end(
        &file->coder, schema, header,
        column_schema_has_references(schema) ? &file->references : NULL, n_batches, &out);
    if (write_out(&out, sink) < 0 || column_sink_copy(sink, file->spool, 0) < 0) return -1;
    arrow_put_file_end_after(n_bytes, n_batches, &out);
    return write_out(&out, sink);
}

int column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                    const struct column_sink *sink)
{
    return file->output->request->format == COLUMN_FORMAT_PARQUET
               ? parquet_footer_end(&file->parquet, header, position, sink)
               : write_arrow_end(file, header, sink);
}
