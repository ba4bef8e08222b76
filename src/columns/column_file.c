/* column_file.c -- see column_file.h. */
#include "columns/column_file.h"

#include "util/xalloc.h"

#include <stdlib.h>

struct column_file {
    const struct column_output *output;
    bool is_stream;
    struct arrow_coder coder;
    struct arrow_place references;
    struct arrow_place *batches;
    size_t n_batches, batches_room;
};

struct column_file *column_file_create(const struct column_output *output, bool is_stream)
{
    struct column_file *file = xcalloc(1, sizeof *file);
    file->output = output;
    file->is_stream = is_stream;
    return file;
}

void column_file_destroy(struct column_file *file)
{
    if (!file) return;
    arrow_coder_release(&file->coder);
    free(file->batches);
    free(file);
}

void column_file_begin(struct column_file *file, sam_hdr_t *header, struct column_bytes *out)
{
    const struct column_schema *schema = file->output->schema;
    if (!file->is_stream) arrow_put_file_begin(out);
    arrow_put_schema(&file->coder, schema, header, out);
    if (column_schema_has_references(schema))
        file->references = arrow_put_references(&file->coder, header, out);
}

void column_file_note(struct column_file *file, const struct arrow_place *batches, size_t n,
                      uint64_t position)
{
    if (file->is_stream) return;
    xgrow(&file->batches, &file->batches_room, file->n_batches + n, file->n_batches,
          sizeof *batches);
    for (size_t i = 0; i < n; i++) {
        struct arrow_place *place = &file->batches[file->n_batches++];
        *place = batches[i];
        place->at += position;
    }
}

void column_file_end(struct column_file *file, sam_hdr_t *header, struct column_bytes *out)
{
    const struct column_schema *schema = file->output->schema;
    arrow_put_stream_end(out);
    if (file->is_stream) return;
    arrow_put_file_end(&file->coder, schema, header,
                       column_schema_has_references(schema) ? &file->references : NULL,
                       file->batches, file->n_batches, out);
}
