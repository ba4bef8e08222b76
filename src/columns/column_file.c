/* column_file.c -- see column_file.h. */
#include "columns/column_file.h"

#include "columns/arrow_message.h"
#include "columns/parquet_file.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct column_file {
    const struct column_output *output;
    struct column_bytes notes;  /* Arrow: a struct arrow_place a batch; Parquet: parquet_note.h */
    /* Arrow */
    struct arrow_coder coder;
    struct arrow_place references;
};

struct column_file *column_file_create(const struct column_output *output)
{
    struct column_file *file = xcalloc(1, sizeof *file);
    file->output = output;
    return file;
}

void column_file_destroy(struct column_file *file)
{
    if (!file) return;
    arrow_coder_release(&file->coder);
    free(file->notes.bytes);
    free(file);
}

void column_file_begin(struct column_file *file, sam_hdr_t *header, struct column_bytes *out)
{
    const struct column_schema *schema = file->output->schema;
    enum column_format format = file->output->request->format;
    if (format == COLUMN_FORMAT_PARQUET) {
        parquet_put_file_begin(out);
        return;
    }
    if (format == COLUMN_FORMAT_ARROW) arrow_put_file_begin(out);
    arrow_put_schema(&file->coder, schema, header, out);
    if (column_schema_has_references(schema))
        file->references = arrow_put_references(&file->coder, header, out);
}

static void move_places(uint8_t *notes, size_t n_bytes, uint64_t position)
{
    struct arrow_place place;
    for (size_t at = 0; at < n_bytes; at += sizeof place) {
        memcpy(&place, notes + at, sizeof place);
        place.at += position;
        memcpy(notes + at, &place, sizeof place);
    }
}

void column_file_note(struct column_file *file, const struct column_bytes *notes,
                      uint64_t position)
{
    if (file->output->request->format == COLUMN_FORMAT_ARROW_STREAM || notes->n_bytes == 0) return;
    uint8_t *copy = column_bytes_append(&file->notes, notes->n_bytes);
    memcpy(copy, notes->bytes, notes->n_bytes);
    if (file->output->request->format == COLUMN_FORMAT_PARQUET)
        parquet_note_move(copy, notes->n_bytes, position);
    else
        move_places(copy, notes->n_bytes, position);
}

static void put_arrow_end(struct column_file *file, sam_hdr_t *header, struct column_bytes *out)
{
    const struct column_schema *schema = file->output->schema;
    arrow_put_stream_end(out);
    if (file->output->request->format == COLUMN_FORMAT_ARROW_STREAM) return;
    /* malloc has aligned the places. */
    arrow_put_file_end(&file->coder, schema, header,
                       column_schema_has_references(schema) ? &file->references : NULL,
                       (const struct arrow_place *)(const void *)file->notes.bytes,
                       file->notes.n_bytes / sizeof(struct arrow_place), out);
}

const char *column_file_end(struct column_file *file, sam_hdr_t *header, uint64_t position,
                            const struct column_sink *sink)
{
    const struct column_request *request = file->output->request;
    if (request->format != COLUMN_FORMAT_PARQUET) {
        struct column_bytes out = {0};
        put_arrow_end(file, header, &out);
        (void)sink->write(sink->arg, out.bytes, out.n_bytes);
        free(out.bytes);
        return NULL;
    }
    const struct parquet_file parquet = {
        .schema = file->output->schema, .header = header,
        .is_compressed = request->codec != COLUMN_CODEC_NONE, .notes = &file->notes,
    };
    return parquet_put_file_end(&parquet, position, sink);
}
