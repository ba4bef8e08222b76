/* column_file.c -- see column_file.h. */
#include "columns/column_file.h"

#include "columns/arrow_message.h"
#include "columns/parquet_file.h"
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
                               struct column_bytes *out, struct column_bytes *notes)
{
    const struct column_output *output = encoder->output;
    const struct encoded_batch batch = {
        .schema = output->schema, .columns = column_batch_end(encoder->batch),
        .n_rows = column_batch_n_rows(encoder->batch), .request = output->request,
        .header = encoder->header,
    };
    const char *problem = NULL;
    if (batch.n_rows == 0) return NULL;
    if (output->request->format == COLUMN_FORMAT_PARQUET) {
        problem = parquet_put_group(&encoder->parquet, &batch, begin, out, notes);
    } else {
        struct arrow_place place = arrow_put_batch(&encoder->arrow, &batch, out);
        place.at -= begin;
        arrow_put_place(column_bytes_append(notes, ARROW_PLACE_BYTES), &place);
    }
    column_batch_clear(encoder->batch);
    return problem;
}

/* ---- files ---- */

struct column_file {
    const struct column_output *output;
    const struct footer_spool *notes;   /* Arrow: arrow_put_place; Parquet: parquet_file.h */
    const char *name;
    size_t n_buffers;           /* in the spool */
    uint64_t n_rows;            /* in these; Parquet */
    /* Arrow */
    struct arrow_coder coder;
    struct arrow_place references;
};

struct column_file *column_file_create(const struct column_output *output,
                                       const struct footer_spool *notes, const char *name)
{
    struct column_file *file = xcalloc(1, sizeof *file);
    file->output = output;
    file->notes = notes;
    file->name = name;
    return file;
}

void column_file_destroy(struct column_file *file)
{
    if (!file) return;
    arrow_coder_release(&file->coder);
    free(file);
}

void column_file_begin(struct column_file *file, sam_hdr_t *header, struct column_bytes *out)
{
    const struct column_schema *schema = file->output->schema;
    enum column_format format = file->output->request->format;
    if (format == COLUMN_FORMAT_PARQUET) {
        column_bytes_copy(out, PARQUET_MAGIC, PARQUET_MAGIC_BYTES);
        return;
    }
    if (format == COLUMN_FORMAT_ARROW) arrow_put_file_begin(out);
    arrow_put_schema(&file->coder, schema, header, out);
    if (column_schema_has_references(schema))
        file->references = arrow_put_references(&file->coder, header, out);
}

static struct parquet_file parquet_file_of(const struct column_file *file, sam_hdr_t *header)
{
    return (struct parquet_file){
        .name = file->name, .schema = file->output->schema, .header = header,
        .is_compressed = file->output->request->codec != COLUMN_CODEC_NONE, .notes = file->notes,
        .n_groups = file->n_buffers, .n_rows = file->n_rows,
    };
}

/* Adds n_bytes to the places of the batches in the notes. Returns the number of batches. */
static size_t move_places(struct column_bytes *notes, uint64_t n_bytes)
{
    size_t at = 0;
    for (; at < notes->n_bytes; at += ARROW_PLACE_BYTES)
        (void)put_u64(notes->bytes + at, get_u64(notes->bytes + at) + n_bytes);
    return at / ARROW_PLACE_BYTES;
}

int column_file_note(struct column_file *file, struct column_bytes *notes, uint64_t position)
{
    enum column_format format = file->output->request->format;
    if (format == COLUMN_FORMAT_ARROW_STREAM || notes->n_bytes == 0) return 0;
    if (format == COLUMN_FORMAT_PARQUET) {
        file->n_buffers +=
            row_group_metadata_move(notes->bytes, notes->n_bytes, position, &file->n_rows);
        /* Refuses a file whose footer would be too large, long before it is written. */
        const struct parquet_file parquet = parquet_file_of(file, NULL);
        if (parquet_file_check(&parquet) < 0) return -1;
    } else {
        file->n_buffers += move_places(notes, position);
    }
    return file->notes->append(file->notes->arg, notes->bytes, notes->n_bytes);
}

static int write_out(struct column_bytes *out, const struct column_sink *sink)
{
    bool is_written = sink->write(sink->arg, out->bytes, out->n_bytes);
    column_bytes_forget(out, false);
    return is_written ? 0 : -1;
}

/* Writes the places of all batches. */
static int write_places(const struct column_file *file, const struct column_sink *sink)
{
    enum { PLACES = 1024 };     /* at a time */
    const struct footer_spool *notes = file->notes;
    notes->rewind(notes->arg);
    for (size_t i = 0; i < file->n_buffers; i += PLACES) {
        size_t n = file->n_buffers - i < PLACES ? file->n_buffers - i : PLACES;
        const uint8_t *places = notes->read(notes->arg, n * ARROW_PLACE_BYTES);
        if (!places || !sink->write(sink->arg, places, n * ARROW_PLACE_BYTES)) return -1;
    }
    return 0;
}

static int write_arrow_end(struct column_file *file, sam_hdr_t *header,
                           const struct column_sink *sink)
{
    const struct column_schema *schema = file->output->schema;
    struct column_bytes out = {0};
    arrow_put_stream_end(&out);
    if (file->output->request->format == COLUMN_FORMAT_ARROW_STREAM) return write_out(&out, sink);
    size_t n_bytes = arrow_put_file_end(
        &file->coder, schema, header,
        column_schema_has_references(schema) ? &file->references : NULL, file->n_buffers, &out);
    if (write_out(&out, sink) < 0 || write_places(file, sink) < 0) return -1;
    arrow_put_file_end_after(n_bytes, file->n_buffers, &out);
    return write_out(&out, sink);
}

int column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                    const struct column_sink *sink)
{
    if (file->output->request->format != COLUMN_FORMAT_PARQUET)
        return write_arrow_end(file, header, sink);
    const struct parquet_file parquet = parquet_file_of(file, header);
    return parquet_put_file_end(&parquet, position, sink);
}
