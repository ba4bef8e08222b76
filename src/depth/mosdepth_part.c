/*
 * mosdepth_part.c -- see mosdepth_part.h. The rules for reads are those of mosdepth 0.3.3.
 */
#include "depth/mosdepth_part.h"

#include "bam/bam_long.h"
#include "util/words.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void mosdepth_part_init(struct mosdepth_part *part, const struct mosdepth_rules *rules)
{
    *part = (struct mosdepth_part){.rules = rules};
}

void mosdepth_part_release(struct mosdepth_part *part)
{
    depth_part_release(&part->depth);
    mate_part_release(&part->mates);
    for (size_t i = 0; i < part->n_texts; i++) bed_text_release(&part->texts[i].text);
    free(part->texts);
    free(part->spans);
}

/* ---- records ---- */

static bool is_of_read_groups(const uint8_t *rec, const char *list)
{
    struct bam_aux aux;
    return bam_aux_find(rec, "RG", &aux) > 0 && aux.type == 'Z' &&
           words_list_has(list, (const char *)aux.value);
}

static bool is_counted(const uint8_t *rec, const struct mosdepth_options *options)
{
    int flag = (int)bam_record_flag(rec);
    if (rec[BAM_MAPQ_AT] < options->mapq || flag & options->left_out) return false;
    if (options->needed && !(flag & options->needed)) return false;
    if (options->least_fragment >= 0 || options->most_fragment >= 0) {
        int64_t n = bam_record_true_template_length(rec);
        if (n < 0) n = -n;
        if (n < options->least_fragment) return false;
        if (options->most_fragment >= 0 && n > options->most_fragment) return false;
    }
    return !options->read_groups || is_of_read_groups(rec, options->read_groups);
}

/* As in htslib, a read that is unmapped or covers nothing has one base on the reference. */
static int64_t end_of(const uint8_t *rec, struct bam_cigar cigar, int64_t pos)
{
    int64_t n = bam_record_flag(rec) & BAM_FUNMAP ? 0 : bam_cigar_reference_bases(cigar);
    return pos + (n > 0 ? n : 1);
}

static void add_span(struct mosdepth_part *part, size_t *n, int64_t begin, int64_t end)
{
    if (end > part->n_bases) end = part->n_bases;
    if (begin >= end) return;
    xgrow(&part->spans, &part->spans_room, *n + 1, *n + 8, sizeof *part->spans);
    part->spans[(*n)++] = (struct span){begin, end};
}

/* Makes the spans that a record covers: bases that are aligned without a deletion or an intron in
   between. Returns their number. */
static size_t make_spans(struct mosdepth_part *part, struct bam_cigar cigar, int64_t pos)
{
    enum { CONSUMES_REFERENCE = 2, ON_BOTH = 3 };       /* see bam_cigar_type */
    size_t n = 0;
    int64_t begin = pos, x = pos;
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        int64_t length = bam_cigar_oplen(get_u32(at));
        int type = bam_cigar_type(bam_cigar_op(get_u32(at)));
        if (type == CONSUMES_REFERENCE && length > 0) {
            add_span(part, &n, begin, x);
            begin = x + length;
        }
        if (type & CONSUMES_REFERENCE) x += length;
    }
    add_span(part, &n, begin, x);
    return n;
}

/* A fragment counts once, at the mate that begins first. */
static void add_fragment(struct mosdepth_part *part, const uint8_t *rec, int64_t pos)
{
    uint32_t flag = bam_record_flag(rec);
    int64_t mate_pos = bam_record_true_mate_pos(rec), n = bam_record_true_template_length(rec);
    if (!(flag & BAM_FPROPER_PAIR) || flag & BAM_FSUPPLEMENTARY) return;
    if (pos > mate_pos || (pos == mate_pos && !(flag & BAM_FREAD1))) return;
    int64_t end = pos + (n < 0 ? -n : n);
    depth_part_add(&part->depth, pos, end < part->n_bases ? end : part->n_bases, false);
}

static void add_mate(struct mosdepth_part *part, const uint8_t *rec, struct mate_read *read)
{
    bool same_ref = bam_record_tid(rec) == bam_record_mate_tid(rec);
    int64_t mate_begin = bam_record_true_mate_pos(rec);
    bool reaches = same_ref && read->end > mate_begin;
    read->role = reaches && read->begin < mate_begin    ? MATE_WAITS
                 : reaches && read->begin == mate_begin ? MATE_EITHER
                                                        : MATE_SECOND;
    read->name = XXH3_64bits(bam_record_name(rec), bam_record_name_bytes(rec));
    if (read->end > part->n_bases) read->end = part->n_bases;
    mate_part_add(&part->mates, &part->depth, read);
}

static void add_bases(struct mosdepth_part *part, const uint8_t *rec, int64_t pos)
{
    const struct mosdepth_options *options = part->rules->options;
    uint32_t flag = bam_record_flag(rec);
    struct bam_aux cg;
    struct bam_cigar cigar = bam_record_find_cigar(rec, &cg);
    int64_t end = end_of(rec, cigar, pos);
    if (options->is_fast) {
        depth_part_add(&part->depth, pos, end < part->n_bases ? end : part->n_bases, false);
        return;
    }
    size_t n = make_spans(part, cigar, pos);
    for (size_t i = 0; i < n; i++)
        depth_part_add(&part->depth, part->spans[i].begin, part->spans[i].end, false);
    if (!(flag & BAM_FPROPER_PAIR) || flag & BAM_FSUPPLEMENTARY) return;
    struct mate_read read = {.has_one_op = cigar.n_ops == 1, .begin = pos, .end = end,
                             .spans = part->spans, .n_spans = n};
    add_mate(part, rec, &read);
}

void mosdepth_part_add(struct mosdepth_part *part, const uint8_t *rec)
{
    const struct mosdepth_rules *rules = part->rules;
    int32_t tid = bam_record_tid(rec);
    if (tid < 0 || (rules->is_skipped && rules->is_skipped[tid])) return;
    int64_t pos = bam_record_true_pos(rec);
    size_t n_pieces = part->depth.n_pieces;
    bool is_new = n_pieces == 0 || part->depth.pieces[n_pieces - 1].tid != tid;
    if (is_new) part->n_bases = (int64_t)sam_hdr_tid2len(rules->header, tid);
    if (pos < 0 || pos >= part->n_bases) return;
    depth_part_add_record(&part->depth, tid, pos);
    if (is_new) mate_part_begin_piece(&part->mates);
    if (!is_counted(rec, rules->options)) return;
    if (rules->options->is_fragment)
        add_fragment(part, rec, pos);
    else
        add_bases(part, rec, pos);
}

/* ---- lines ---- */

void per_base_line(struct bed_text *text, const char *name, int32_t tid,
                   const struct depth_run *run)
{
    bed_text_begin_line(text, name, run->begin, run->end);
    *byte_buffer_append(&text->raw, 1) = '\t';
    if (run->depth < 0) *byte_buffer_append(&text->raw, 1) = '-';
    bed_text_number(&text->raw, (uint64_t)(run->depth < 0 ? -run->depth : run->depth));
    bed_text_end_line(text, tid, run->begin, run->end);
}

static struct per_base_text *new_text(struct mosdepth_part *part, size_t piece, int64_t begin)
{
    xgrow(&part->texts, &part->texts_room, part->n_texts + 1, part->n_texts, sizeof *part->texts);
    struct per_base_text *text = &part->texts[part->n_texts++];
    *text = (struct per_base_text){.begin = begin, .piece = piece};
    return text;
}

/* Makes and packs the lines of a piece, up to where its last record begins. */
static int make_texts(struct mosdepth_part *part, size_t number, struct bgzf_coder *coder)
{
    enum { LEAST_LINES = 100 };         /* fewer are left to the combining thread */
    const struct depth_piece *piece = &part->depth.pieces[number];
    const struct depth_step *steps = depth_piece_steps(&part->depth, piece);
    const char *name = sam_hdr_tid2name(part->rules->header, piece->tid);
    size_t n = piece->n_steps;
    while (n > 0 && steps[n - 1].pos >= piece->last_begin) n--;
    struct per_base_text *text = NULL;
    struct depth_run run = {0};
    for (size_t i = 0; i + 1 < n; i++) {
        if (!text && n - i < LEAST_LINES) break;
        if (!text) text = new_text(part, number, steps[i].pos);
        run = (struct depth_run){steps[i].pos, steps[i + 1].pos, run.depth + steps[i].change};
        per_base_line(&text->text, name, piece->tid, &run);
        text->end = run.end;
        if (text->text.raw.n_bytes < BED_TEXT_FULL && i + 2 < n) continue;
        if (bed_text_pack(&text->text, coder) < 0) return -1;
        byte_buffer_forget(&text->text.raw, false);
        text = NULL;
    }
    return 0;
}

void mosdepth_part_end(struct mosdepth_part *part)
{
    struct bgzf_coder coder = {0};
    depth_part_end(&part->depth);
    for (size_t i = 0; !part->failed && i < part->depth.n_pieces; i++)
        if (!part->rules->options->no_per_base) part->failed = make_texts(part, i, &coder) < 0;
    bgzf_coder_release(&coder);
}
