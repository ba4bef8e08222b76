/*
 * depth_track.c -- see depth_track.h.
 *
 * A worker computes the depth of its part of the records, and encodes it in blocks, as if no other
 * part had records there. Where that turns out to be true, combine takes the encoded block. Else it
 * takes the steps of the depth, merges them with those of earlier records (depth_runs.h), and
 * encodes the sum. That is so at the begin of most parts. So the first blocks of a part are
 * small, and later ones larger. After the last record of a part begins, later records follow; the
 * steps from there on are in no block.
 */
#include "depth/depth_track.h"

#include "bam/bam_long.h"
#include "depth/depth_runs.h"
#include "util/diag.h"
#include "util/option_table.h"

#include <math.h>

/* ---- options ---- */

struct depth_track_options {
    int excluded, included;     /* flags: no record has one of these; each has one of those, if
                                   any are given */
    int min_mapq;
    int bin_bases;
    double scale;               /* 0: CPM */
    int strand;                 /* '+', '-', or 0 */
    bool swaps_mates, splits, covers_deletions;
};

static int take_strand(void *arg, const char *text)
{
    struct depth_track_options *options = arg;
    options->strand = *text;
    return strcmp(text, "+") == 0 || strcmp(text, "-") == 0 ? 0 : OPTION_WRONG;
}

static int take_scale(void *arg, const char *text)
{
    struct depth_track_options *options = arg;
    char *end;
    options->scale = strcmp(text, "CPM") == 0 ? 0 : strtod(text, &end);
    if (options->scale == 0) return strcmp(text, "CPM") == 0 ? 0 : OPTION_WRONG;
    return *end == '\0' && isfinite(options->scale) ? 0 : OPTION_WRONG;
}

#define AT(of) offsetof(struct depth_track_options, of)
#define FLAG(of) .kind = OPTION_FLAG, .member = AT(of)
#define FLAGS(of)                                                                           \
    .kind = OPTION_FLAGS, .member = AT(of), .high = UINT16_MAX,                             \
    .takes = "flags, as a number or names"
#define NUMBER(of, least, most)                                                             \
    .kind = OPTION_NUMBER, .member = AT(of), .low = (least), .high = (most),                \
    .takes = "a whole number from " #least " to " #most
#define CALL(function, what) .kind = OPTION_CALL, .take = (function), .takes = (what)

static const struct option_row rows[] = {
    {"flag", 'F', "FLAGS", FLAGS(excluded)},
    {"include-flag", 'i', "FLAGS", FLAGS(included)},
    {"mapq", 'Q', "INT", NUMBER(min_mapq, 0, 255)},
    {"bin", 0, "INT", NUMBER(bin_bases, 1, 1000000000)},
    {"scale", 0, "FACTOR", CALL(take_scale, "a number other than 0, or CPM")},
    {"strand", 0, "STRAND", CALL(take_strand, "+ or -")},
    {"du", 0, NULL, FLAG(swaps_mates)},
    {"split", 0, NULL, FLAG(splits)},
    {"ignoreD", 0, NULL, FLAG(covers_deletions)},
};

void *depth_track_parse(int argc, char **argv)
{
    const struct option_table table = {.rows = rows, .n_rows = sizeof rows / sizeof *rows,
                                       .option = argv[0], .has_one_dash = true};
    struct depth_track_options *options = xcalloc(1, sizeof *options);
    options->bin_bases = 1;
    options->scale = 1;
    if (option_table_parse_all(&table, argc, argv, options) == 0) return options;
    free(options);
    return NULL;
}

bool depth_track_is_streamed(const void *options, unsigned i)
{
    (void)options;
    (void)i;
    return true;
}

/* ---- the observer ---- */

struct depth_track {
    struct record_observer base;        /* must be the first member */
    struct depth_track_options options;
    const struct depth_track_format *format;
    struct track_settings settings;
    void *file;
    struct track *track;
    struct depth_join join;
    int32_t tid;                /* the reference of `join`; -1: none */
    struct track_part *joined;  /* runs of `join`; or NULL */
    uint64_t n_records;         /* on any strand */
};

struct block {
    struct track_part *values;
    int64_t begin, end;
    size_t first_step, n_steps; /* in the piece; another step ends it */
    int64_t depth, last_depth;  /* before the first step, and at the end */
    bool is_clear;
};

struct piece_blocks {           /* of a piece */
    size_t first, n;
    size_t n_steps;             /* in blocks */
    int64_t depth;              /* before the other steps */
};

struct part {
    struct depth_part depths;
    struct piece_blocks first, last;    /* the same if there is one piece */
    struct track_part *middle;  /* all pieces between them, which are complete; or NULL */
    struct block *blocks;
    size_t n_blocks, blocks_room;
    uint64_t n_records;
    int failed;
};

static struct depth_track *of(struct record_observer *observer)
{
    return (struct depth_track *)observer;
}

/* ---- parts ---- */

static void *begin(const struct record_observer *observer)
{
    (void)observer;
    return xcalloc(1, sizeof(struct part));
}

static void discard(void *arg)
{
    struct part *part = arg;
    for (size_t i = 0; i < part->n_blocks; i++) track_part_destroy(part->blocks[i].values);
    track_part_destroy(part->middle);
    depth_part_release(&part->depths);
    free(part->blocks);
    free(part);
}

/* Adds the bases that a record covers. */
static void add_bases(const struct depth_track *to, struct depth_part *depths, const uint8_t *rec)
{
    const struct depth_track_options *options = &to->options;
    int32_t tid = bam_record_tid(rec);
    int64_t ref_bases = (int64_t)sam_hdr_tid2len(to->settings.header, tid);
    int64_t pos = bam_record_true_pos(rec), x = pos, from = pos;
    struct bam_aux cg;
    struct bam_cigar cigar = bam_record_find_cigar(rec, &cg);
    depth_part_add_record(depths, tid, pos);
    for (size_t i = 0; i <= cigar.n_ops; i++) {
        bool is_end = i == cigar.n_ops;
        uint32_t op = is_end ? 0 : get_u32(cigar.ops + 4 * i);
        bool is_gap = (bam_cigar_op(op) == BAM_CDEL && !options->covers_deletions) ||
                      (bam_cigar_op(op) == BAM_CREF_SKIP && options->splits);
        if (is_end || is_gap)
            depth_part_add(depths, from < 0 ? 0 : from, x < ref_bases ? x : ref_bases, false);
        if (bam_cigar_type(bam_cigar_op(op)) & 2) x += bam_cigar_oplen(op);
        if (is_gap) from = x;
    }
}

static bool is_on_strand(const struct depth_track_options *options, uint32_t flag)
{
    const uint32_t second = BAM_FPAIRED | BAM_FREAD2;
    bool is_reverse = flag & BAM_FREVERSE;
    if (options->swaps_mates && (flag & second) == second) is_reverse = !is_reverse;
    return options->strand == 0 || is_reverse == (options->strand == '-');
}

static int add_records(struct record_observer *observer, void *arg,
                       const struct observed_records *observed)
{
    const struct depth_track *to = of(observer);
    const struct depth_track_options *options = &to->options;
    struct part *part = arg;
    struct bam_records records = observed->all;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        uint32_t flag = bam_record_flag(rec);
        if (bam_record_tid(rec) < 0 || flag & BAM_FUNMAP || flag & (uint32_t)options->excluded ||
            (options->included && !(flag & (uint32_t)options->included)) ||
            rec[BAM_MAPQ_AT] < options->min_mapq)
            continue;
        part->n_records++;
        if (is_on_strand(options, flag)) add_bases(to, &part->depths, rec);
    }
    return 0;
}

/* Adds the runs of n steps, the last of which another step ends. Returns the depth of that. */
static int64_t add_runs(struct track_part *to, int32_t tid, const struct depth_step *steps,
                        size_t n, int64_t depth)
{
    for (size_t i = 0; i < n; i++) {
        depth += steps[i].change;
        track_part_add(to, tid, steps[i].pos, steps[i + 1].pos, (double)depth);
    }
    return depth;
}

/* Makes a block of the steps that it names, from the first one on. */
static void add_block(const struct depth_track *to, struct part *part, const struct block *block,
                      const struct depth_step *steps, int32_t tid)
{
    xgrow(&part->blocks, &part->blocks_room, part->n_blocks + 1, part->n_blocks + 4,
          sizeof *part->blocks);
    struct block *made = &part->blocks[part->n_blocks++];
    *made = *block;
    made->values = track_part_create(&to->settings);
    made->begin = steps[0].pos;
    made->end = steps[block->n_steps].pos;
    made->last_depth = add_runs(made->values, tid, steps, block->n_steps, block->depth);
    part->failed |= track_part_end(made->values);
}

/* Makes the blocks of a piece: they end where its last record begins, or before. */
static struct piece_blocks make_blocks(const struct depth_track *to, struct part *part,
                                       const struct depth_piece *piece)
{
    enum { LEAST_STEPS = 64, MOST_STEPS = 8192 };
    const struct depth_step *steps = depth_piece_steps(&part->depths, piece);
    struct piece_blocks made = {.first = part->n_blocks};
    size_t n = piece->n_steps, size = LEAST_STEPS;
    while (n > 0 && steps[n - 1].pos > piece->last_begin) n--;
    for (size_t at = 0; at + 1 < n; at = made.n_steps) {
        struct block block = {.first_step = at, .depth = made.depth};
        block.n_steps = n - 1 - at < size ? n - 1 - at : size;
        add_block(to, part, &block, steps + at, piece->tid);
        made.n++;
        made.n_steps += block.n_steps;
        made.depth = part->blocks[part->n_blocks - 1].last_depth;
        if (size < MOST_STEPS) size *= 2;
    }
    return made;
}

static void end(struct record_observer *observer, void *arg)
{
    struct part *part = arg;
    const struct depth_track *to = of(observer);
    depth_part_end(&part->depths);
    size_t n = part->depths.n_pieces;
    const struct depth_piece *pieces = part->depths.pieces;
    if (n == 0) return;
    part->first = make_blocks(to, part, &pieces[0]);
    if (n == 1) return;
    part->last = make_blocks(to, part, &pieces[n - 1]);
    part->middle = track_part_create(&to->settings);
    for (const struct depth_piece *piece = pieces + 1; piece < pieces + n - 1; piece++)
        if (piece->n_steps > 0)
            (void)add_runs(part->middle, piece->tid, depth_piece_steps(&part->depths, piece),
                           piece->n_steps - 1, 0);
    part->failed |= track_part_end(part->middle);
}

/* ---- the sum ---- */

static void visit_run(void *arg, const struct depth_run *run)
{
    struct depth_track *sum = arg;
    if (run->depth == 0) return;
    if (!sum->joined) sum->joined = track_part_create(&sum->settings);
    track_part_add(sum->joined, sum->tid, run->begin, run->end, (double)run->depth);
}

/* Takes the joined runs. */
static int take_joined(struct depth_track *sum)
{
    struct track_part *joined = sum->joined;
    sum->joined = NULL;
    if (!joined) return 0;
    if (track_part_end(joined) == 0) return track_take(sum->track, joined);
    track_part_destroy(joined);
    return -1;
}

static int take_runs_until(struct depth_track *sum, int64_t until)
{
    depth_join_add_piece(&sum->join, NULL, NULL, until);
    return take_joined(sum);
}

/* Ends the reference, if any. */
static int end_reference(struct depth_track *sum)
{
    if (sum->tid < 0) return 0;
    depth_join_finish(&sum->join, (int64_t)sam_hdr_tid2len(sum->settings.header, sum->tid));
    int r = take_joined(sum);
    sum->tid = -1;
    return r;
}

/* Takes a block, or the steps of it. */
static int take_block(struct depth_track *sum, struct block *block, struct depth_step *steps)
{
    struct track_part *values = block->values;
    if (block->is_clear) {
        int r = take_runs_until(sum, block->begin + 1);
        if (r < 0) return r;
        block->values = NULL;
        return track_take(sum->track, values);
    }
    const struct depth_step fall = {block->end, -block->last_depth};
    steps->change += block->depth;
    depth_join_add(&sum->join, steps, block->n_steps);
    depth_join_add(&sum->join, &fall, 1);
    return 0;
}

static int take_piece(struct depth_track *sum, struct part *part, const struct depth_piece *piece,
                      const struct piece_blocks *made)
{
    struct depth_step *steps = part->depths.steps.at + piece->first_step;
    struct block *blocks = part->blocks + made->first;
    struct depth_cursor cursor = {0};
    int r = 0;
    if (piece->tid != sum->tid) {
        r = end_reference(sum);
        sum->tid = piece->tid;
        depth_join_begin(&sum->join);
    }
    for (size_t i = 0; i < made->n; i++)
        blocks[i].is_clear = depth_join_is_clear(&sum->join, &cursor, blocks[i].begin,
                                                 blocks[i].end);
    for (size_t i = 0; r == 0 && i < made->n; i++)
        r = take_block(sum, &blocks[i], steps + blocks[i].first_step);
    if (r == 0 && made->n_steps < piece->n_steps) {
        steps[made->n_steps].change += made->depth;
        depth_join_add(&sum->join, steps + made->n_steps, piece->n_steps - made->n_steps);
    }
    return r < 0 ? r : take_runs_until(sum, piece->last_begin);
}

static int combine(struct record_observer *observer, void *arg)
{
    struct depth_track *sum = of(observer);
    struct part *part = arg;
    struct track_part *middle = part->middle;
    const struct depth_piece *pieces = part->depths.pieces;
    size_t n = part->depths.n_pieces;
    int r = part->failed;
    sum->n_records += part->n_records;
    if (r == 0 && n > 0) r = take_piece(sum, part, &pieces[0], &part->first);
    if (r == 0 && n > 1) r = end_reference(sum);
    if (r == 0 && n > 1) {
        part->middle = NULL;
        r = track_take(sum->track, middle);
    }
    if (r == 0 && n > 1) r = take_piece(sum, part, &pieces[n - 1], &part->last);
    discard(part);
    return r;
}

static int finish(struct record_observer *observer)
{
    struct depth_track *sum = of(observer);
    struct track_item all;
    double cpm = sum->n_records > 0 ? 1e6 / (double)sum->n_records : 1;
    int r = end_reference(sum);
    if (r == 0) r = track_finish(sum->track, cpm, &all);
    return r < 0 || !sum->format->finish ? r : sum->format->finish(sum->file, &all);
}

static void destroy(struct record_observer *observer)
{
    struct depth_track *sum = of(observer);
    track_part_destroy(sum->joined);
    track_destroy(sum->track);
    if (sum->file && sum->format->close) sum->format->close(sum->file);
    depth_join_release(&sum->join);
    free(sum);
}

/* Windows of the zoom levels: from 160 bases, or ten bins, to the longest reference. */
static void set_windows(struct track_settings *settings)
{
    enum { LEAST_WINDOW = 160, BINS_PER_WINDOW = 10, GROWTH = 4 };
    int64_t longest = 0, window = settings->bin_bases * BINS_PER_WINDOW;
    for (int32_t tid = 0; tid < sam_hdr_nref(settings->header); tid++) {
        int64_t n_bases = (int64_t)sam_hdr_tid2len(settings->header, tid);
        if (n_bases > longest) longest = n_bases;
    }
    if (window < LEAST_WINDOW) window = LEAST_WINDOW;
    for (; window < longest && settings->n_levels < TRACK_MOST_LEVELS; window *= GROWTH)
        settings->windows[settings->n_levels++] = window;
}

struct record_observer *depth_track_observe(const struct count_setup *setup,
                                            const struct depth_track_format *format)
{
    enum { TAPE_BYTES = 4 << 20, SHARE = 4 };
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .end = end, .combine = combine,
        .discard = discard, .finish = finish, .destroy = destroy};
    struct depth_track *sum = xcalloc(1, sizeof *sum);
    const struct depth_track_options *options = setup->options;
    struct track_settings *settings = &sum->settings;
    sum->base.kind = &kind;
    sum->options = *options;
    sum->format = format;
    sum->tid = -1;
    sum->join.visit = visit_run;
    sum->join.arg = sum;
    *settings = (struct track_settings){
        .header = setup->header, .bin_bases = options->bin_bases, .scale = options->scale,
        .n_levels = 1, .encode = format->encode, .encode_arg = setup->header,
        .write = format->write, .places = setup->places, .threads = setup->threads,
        .tape_bytes = setup->memory_bytes / SHARE < TAPE_BYTES ? setup->memory_bytes / SHARE
                                                               : TAPE_BYTES};
    if (format->has_zooms) set_windows(settings);
    sum->file = settings->write_arg = format->open(setup, settings);
    sum->track = track_create(settings);
    if (sum->file) return &sum->base;
    destroy(&sum->base);
    return NULL;
}
