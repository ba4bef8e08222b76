/* load_cutter.c -- see load_cutter.h. */
#include "pipeline/load_cutter.h"

#include "util/diag.h"

enum { LARGE_TEMPLATE_BYTES = 8 << 20 };        /* whatever the memory: the copies of it that are in
                                                   memory at once fit the allowance */

size_t load_cutter_max_template(const struct mem_budget *budget)
{
    size_t n_bytes = budget->total_bytes / 16;
    return n_bytes < LARGE_TEMPLATE_BYTES ? LARGE_TEMPLATE_BYTES : n_bytes;
}

void load_cutter_begin(struct load_cutter *cutter, uint64_t n_records)
{
    cutter->n_records = n_records;
    cutter->is_at_end = false;
    cutter->end_offset = INPUT_OFFSET_UNKNOWN;
}

/* A template is in memory four times: as it is read, as it is cut off, as it is written, and in its
   batch; with -M its tags are there once more; and each of its records has a draft. */
static int check_template_size(const struct load_cutter *cutter, const char *input)
{
    const struct template_cutter *c = &cutter->cutter;
    size_t n_bytes = c->kept.n_bytes - c->partial_bytes + c->n_kept * sizeof(struct draft) / 2;
    if (n_bytes <= cutter->max_template_bytes) return 0;
    diag_error("read '%s' of '%s' has %zu MB of records: too many for --fixmate, give more memory",
               (const char *)bam_record_name(c->kept.at), input, n_bytes / 1000000);
    return -1;
}

/* Cuts n_bytes. is_last: nothing follows that can be used. */
static int cut(struct load_cutter *cutter, struct load_piece *piece, size_t n_bytes, bool is_last)
{
    struct template_work *work = &piece->templates;
    struct template_cutter *c = &cutter->cutter;
    const char *input = bam_reader_name(piece->reader);
    uint64_t end_offset = cutter->partial_offset;
    work->size_is_impossible = template_cut(c, load_jobs_raw(piece), n_bytes, is_last,
                                            &work->stretch) < 0;
    if (c->partial_bytes > 0 && c->partial_bytes <= n_bytes)
        cutter->partial_offset = bam_piece_offset(&piece->input, n_bytes - c->partial_bytes);
    work->end_offset = is_last ? cutter->end_offset : end_offset;
    work->first_record = cutter->n_records;
    work->is_cut = true;
    cutter->is_at_end = work->size_is_impossible || is_last;
    cutter->n_records += work->stretch.n_records;
    if (check_template_size(cutter, input) < 0) return -1;
    return load_jobs_fix(piece);
}

int load_cutter_cut(struct load_cutter *cutter, struct load_piece *piece)
{
    const struct bam_piece *input = &piece->input;
    bool is_text = bam_reader_is_text(piece->reader);
    size_t n_bytes = is_text ? input->lines.raw_bytes : input->raw_bytes;
    cutter->end_offset = bam_piece_offset(input, n_bytes);
    return cut(cutter, piece, n_bytes, is_text && input->lines.problem);
}

int load_cutter_finish(struct load_cutter *cutter, struct load_piece *piece)
{
    piece->input.lines.problem = NULL;
    piece->input.lines.text_bytes = 0;
    return cut(cutter, piece, 0, true);
}

struct input_position load_cutter_position(const struct load_piece *piece, uint32_t input,
                                           const struct fixed_end *end)
{
    const struct template_work *work = &piece->templates;
    return (struct input_position){
        input,
        work->stretch.ends_in_piece ? bam_piece_offset(&piece->input, end->piece_at)
                                    : work->end_offset,
        work->first_record + end->n_records};
}

void load_cutter_release(struct load_cutter *cutter)
{
    template_cutter_release(&cutter->cutter);
}
