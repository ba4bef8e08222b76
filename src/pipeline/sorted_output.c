/* sorted_output.c -- see sorted_output.h. */
#include "pipeline/sorted_output.h"

static int prepare_pieces(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes)
{
    const struct output_settings *like = &out->file.settings;
    const struct split_output_settings settings = {
        .plan = out->plan,
        .pieces = out->pieces,
        .pattern = like->path->name,
        .index_pattern = like->index_path->name,
        .dir = out->pieces_dir->path,
        .like = like,
        .header = header,
        .lock = like->path->lock,
        .durable = like->path->durable,
        .memory_bytes = memory_bytes,
    };
    out->split = split_output_create(&settings);
    return out->split ? 0 : -1;
}

int sorted_output_prepare(struct sorted_output *out, sam_hdr_t *header, size_t memory_bytes)
{
    if (output_file_create_index(&out->file, header) < 0) return -1;
    return out->plan ? prepare_pieces(out, header, memory_bytes) : 0;
}

int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes)
{
    return out->split ? 0 : output_file_open(&out->file, header, raw_bytes);
}

int sorted_output_write(struct sorted_output *out, const struct segment *segment)
{
    for (size_t i = 0; i < segment->n_stretches; i++) {
        const struct segment_stretch *stretch = &segment->stretches[i];
        struct output_file *file = out->split ? split_output_file(out->split, stretch)
                                              : &out->file;
        if (file && stretch->notes.n_bytes > 0) output_file_note_batches(file, &stretch->notes);
        /* A stretch of no records has no bytes, and perhaps there is no buffer. */
        const uint8_t *bytes = segment->out ? segment->out + stretch->begin : NULL;
        if (!file || output_file_write(file, bytes, stretch->end - stretch->begin,
                                       stretch->raw_bytes, &stretch->part) < 0)
            return -1;
    }
    return 0;
}

int sorted_output_close(struct sorted_output *out, bool complete, struct output_result *result)
{
    if (out->split) return split_output_close(out->split, complete, result);
    return output_file_close(&out->file, complete, result);
}

void sorted_output_release(struct sorted_output *out)
{
    bam_index_destroy(out->file.index);
    split_output_destroy(out->split);
}
