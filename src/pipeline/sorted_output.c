/* sorted_output.c -- see sorted_output.h. */
#include "pipeline/sorted_output.h"

#include <string.h>

static int prepare_pieces(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes)
{
    const struct split_output_settings settings = {
        .plan = out->plan,
        .pieces = out->pieces,
        .dir = out->pieces_dir->path,
        .set = out->set,
        .like = &out->files[0].settings,
        .places = out->files[0].places,
        .header = header,
        .memory_bytes = memory_bytes,
    };
    out->split = split_output_create(&settings);
    return out->split ? 0 : -1;
}

int sorted_output_prepare(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes)
{
    if (output_file_create_index(&out->files[0], header) < 0) return -1;
    return out->plan ? prepare_pieces(out, header, memory_bytes) : 0;
}

int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes)
{
    for (unsigned i = 0; !out->split && i < out->n_files; i++)
        if (output_file_open(&out->files[i], header, raw_bytes) < 0) return -1;
    return 0;
}

static int write_stretch(struct output_file *file, struct segment_output *from,
                         struct segment_stretch *stretch)
{
    if (stretch->notes.n_bytes > 0 && output_file_note_batches(file, &stretch->notes) < 0)
        return -1;
    /* A stretch of no records has no bytes, and perhaps there is no buffer. */
    const uint8_t *bytes = from->bytes ? from->bytes + stretch->begin : NULL;
    return output_file_write(file, bytes, stretch->end - stretch->begin, stretch->raw_bytes,
                             &stretch->part);
}

int sorted_output_write(struct sorted_output *out, struct segment *segment)
{
    for (unsigned i = 0; i < out->n_files; i++) {
        struct segment_output *from = &segment->outputs[i];
        for (size_t k = 0; k < from->n_stretches; k++) {
            struct segment_stretch *stretch = &from->stretches[k];
            struct output_file *file = out->split ? split_output_file(out->split, stretch)
                                                  : &out->files[i];
            if (!file || write_stretch(file, from, stretch) < 0) return -1;
        }
    }
    return 0;
}

/* Ends the files that get their names later, or the others. What stands in its place at once, as an
   object does, comes last, and of two objects the first one: it cannot be taken back. */
static int end_files(struct sorted_output *out, bool can_be_dropped)
{
    for (unsigned i = out->n_files; i-- > 0;)
        if (output_file_can_be_dropped(&out->files[i]) == can_be_dropped &&
            output_file_end(&out->files[i]) < 0)
            return -1;
    return 0;
}

/* Two files must both be on the disk before one gets its name. */
static int sync_files(const struct sorted_output *out)
{
    for (unsigned i = 0; out->n_files > 1 && i < out->n_files; i++)
        if (output_path_sync(out->files[i].settings.path) < 0) return -1;
    return 0;
}

/* All outputs are closed. They get their names unless one could not be synced. */
static void complete_set(struct sorted_output *out)
{
    for (unsigned i = 0; i < out->n_files; i++) {
        const struct output_path *path = out->files[i].settings.path;
        if (path->temporary && !path->is_complete) return;
    }
    for (unsigned i = 0; i < out->n_files; i++) {
        const struct output_settings *s = &out->files[i].settings;
        if (s->path->temporary)
            output_set_add_stale(out->set, s->path, s->index_path->final, &s->format);
    }
    out->set->state = OUTPUT_SET_COMPLETE;
}

int sorted_output_close(struct sorted_output *out, bool complete,
                        struct output_result results[MOST_OUTPUTS])
{
    memset(results, 0, MOST_OUTPUTS * sizeof *results);
    if (out->split) return split_output_close(out->split, complete, &results[0]);
    complete = complete && end_files(out, true) == 0 && sync_files(out) == 0 &&
               end_files(out, false) == 0;
    int r = complete ? 0 : -1;
    for (unsigned i = out->n_files; i-- > 0;)
        if (output_file_close(&out->files[i], complete, &results[i]) < 0) r = -1;
    if (complete) complete_set(out);
    return r;
}

void sorted_output_release(struct sorted_output *out)
{
    bam_index_destroy(out->files[0].index);
    split_output_destroy(out->split);
}
