/* load_cutter.c -- see load_cutter.h. */
#include "pipeline/load_cutter.h"

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
static bool is_large(const struct load_cutter *cutter)
{
    const struct template_cutter *c = &cutter->cutter;
    size_t n_bytes = c->kept.n_bytes - c->partial_bytes + c->n_kept * sizeof(struct draft) / 2;
    return n_bytes > cutter->max_template_bytes;
}

/* Adds the records of a stretch to the large template, and empties it. */
static int add_to_large(struct load_cutter *cutter, const uint8_t *raw,
                        struct template_stretch *stretch)
{
    size_t n_bytes = stretch->to - stretch->from;
    cutter->n_records += stretch->n_records;
    int r = load_large_add(cutter->large, stretch->left.at, stretch->left.n_bytes);
    if (r == 0 && n_bytes > 0) r = load_large_add(cutter->large, raw + stretch->from, n_bytes);
    template_stretch_release(stretch);
    return r;
}

/* Makes the template that is kept a large one. */
static int begin_large(struct load_cutter *cutter)
{
    struct template_stretch stretch = {.n_records = 0};
    cutter->large = load_large_create(cutter->large_settings, cutter->n_records);
    if (!cutter->large) return -1;
    template_cut_open(&cutter->cutter, &stretch);
    return add_to_large(cutter, NULL, &stretch);
}

/* Takes the records with which a piece continues the large template. Stores from where on the piece
   is to be cut. Returns 0, or -1 after a message. */
static int go_on_with_large(struct load_cutter *cutter, struct load_piece *piece, size_t n_bytes,
                            bool is_last, size_t *to)
{
    struct template_work *work = &piece->templates;
    struct template_stretch stretch = {.n_records = 0};
    const uint8_t *raw = load_jobs_raw(piece);
    work->size_is_impossible = template_cut_more(&cutter->cutter, raw, n_bytes, &stretch) < 0;
    *to = cutter->cutter.is_open ? n_bytes : stretch.to;
    if (add_to_large(cutter, raw, &stretch) < 0) return -1;
    if (cutter->cutter.is_open && !is_last && !work->size_is_impossible) return 0;
    cutter->cutter.is_open = false;
    work->large = cutter->large;
    cutter->large = NULL;
    return load_large_end(work->large);
}

/* Cuts the piece from `from` on. */
static void cut_templates(struct load_cutter *cutter, struct load_piece *piece, size_t from,
                          size_t n_bytes, bool is_last)
{
    struct template_stretch *stretch = &piece->templates.stretch;
    const uint8_t *raw = load_jobs_raw(piece);
    piece->templates.size_is_impossible =
        template_cut(&cutter->cutter, from > 0 ? raw + from : raw, n_bytes - from, is_last,
                     stretch) < 0;
    stretch->from += from;
    stretch->to += from;
}

/* Cuts n_bytes. is_last: nothing follows that can be used. */
static int cut(struct load_cutter *cutter, struct load_piece *piece, size_t n_bytes, bool is_last)
{
    struct template_work *work = &piece->templates;
    struct template_cutter *c = &cutter->cutter;
    uint64_t end_offset = cutter->partial_offset;
    size_t from = 0;
    work->is_cut = true;
    work->size_is_impossible = false;
    template_stretch_empty(&work->stretch);
    if (cutter->large && go_on_with_large(cutter, piece, n_bytes, is_last, &from) < 0) return -1;
    work->first_record = cutter->n_records;
    if (!cutter->large && !work->size_is_impossible)
        cut_templates(cutter, piece, from, n_bytes, is_last);
    if (c->partial_bytes > 0 && c->partial_bytes <= n_bytes)
        cutter->partial_offset = bam_piece_offset(&piece->input, n_bytes - c->partial_bytes);
    work->end_offset = is_last ? cutter->end_offset : end_offset;
    cutter->is_at_end = work->size_is_impossible || is_last;
    cutter->n_records += work->stretch.n_records;
    if (!cutter->large && is_large(cutter) && begin_large(cutter) < 0) return -1;
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
    piece->input.lines.is_cut = false;
    piece->input.lines.text_bytes = 0;
    return cut(cutter, piece, 0, true);
}

struct input_position load_cutter_position(const struct load_piece *piece, uint32_t input,
                                           const struct fixed_end *end)
{
    const struct template_work *work = &piece->templates;
    uint64_t offset = work->end_offset;
    if (end->piece_at == FIXED_END_UNKNOWN)
        offset = INPUT_OFFSET_UNKNOWN;
    else if (work->stretch.ends_in_piece)
        offset = bam_piece_offset(&piece->input, end->piece_at);
    return (struct input_position){input, offset, work->first_record + end->n_records};
}

void load_cutter_release(struct load_cutter *cutter)
{
    template_cutter_release(&cutter->cutter);
    load_large_destroy(cutter->large);
}
