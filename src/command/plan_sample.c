/* plan_sample.c -- see plan_sample.h. */
#include "command/plan_sample.h"

#include "bam/bgzf_block.h"
#include "input/bam_reader.h"
#include "input/input_error.h"
#include "pipeline/batch.h"
#include "pipeline/rules.h"
#include "template/fixed_records.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <stdlib.h>

enum {
    BATCH_BYTES = 32 << 20,
    SAMPLE_BYTES = 8 << 20,     /* 25,000 short reads: ratios are right within a few percent */
    PIECE_BYTES = 256 << 10,
    TEXT_BYTES = 64 << 10,
    MOST_KEPT_BYTES = 8 << 20,  /* of a template */
};

struct sampler {
    const struct plan_sample_settings *settings;
    struct plan_sample *sample;
    struct rules_maker maker;
    struct sort_rules rules;
    struct bam_reader *reader;
    struct batch *batch;
    struct bam_piece piece;
    struct bgzf_coder bgzf;
    struct merge_space space;
    bam1_t *record;
    /* if mates are fixed */
    struct fixmate_rules fixmate;
    struct template_cutter cutter;
    struct template_stretch stretch;
    struct fixed_records fixed;
    struct record_bytes raw;    /* BAM, as it is read */
    uint64_t n_read;            /* records that were fixed */
    uint64_t bytes_read;        /* of records that may have been fixed */
};

/* CPU time since `start`. It does not depend on what else the machine does. */
static double since(double start)
{
    return thread_cpu_seconds() - start;
}

static const char *format_name(const struct bam_reader *reader)
{
    switch (bam_reader_format(reader)->format) {
    case sam: return "SAM";
    case bam: return "BAM";
    case cram: return "CRAM";
    default: return "other";
    }
}

/* Makes the records from the end of the last part to `to` a part of the batch, and indexes them. */
static int index_records(struct sampler *s, size_t to, size_t n_records, const uint8_t *source)
{
    struct plan_sample *sample = s->sample;
    struct record_problem problem;
    struct content_sum sum = {0};
    size_t n_bytes = to - s->batch->walk_at;
    if (n_records == 0) return 0;
    struct batch_part *part = batch_add_part(s->batch, to, n_records, sample->n_records);
    part->source = source;
    double start = thread_cpu_seconds();
    int n_refs = sam_hdr_nref(bam_reader_header(s->reader));
    if (batch_index_part(part, n_refs, &sum, &problem) < 0) {
        record_problem_print(&problem, bam_reader_name(s->reader));
        return -1;
    }
    sample->traits.sort_seconds += since(start);
    sample->n_records += n_records;
    sample->raw_bytes += n_bytes;
    return 0;
}

/* Takes all whole records after the last part. */
static int take_raw(struct sampler *s)
{
    const struct batch *batch = s->batch;
    struct bam_walk walk = {.at = batch->mem + batch->walk_at, .end = batch->mem + batch->raw_end};
    size_t n_records = 0;
    while (bam_walk_next(&walk)) n_records++;
    return index_records(s, (size_t)(walk.at - batch->mem), n_records, NULL);
}

/* Fixes the templates that n_bytes of records make whole, and takes as many as fit. A large one ends
   the sample. Returns 1, or 0 when it is full, or -1 after a message. */
static int take_templates(struct sampler *s, uint8_t *records, size_t n_bytes, bool is_last)
{
    struct record_problem problem = {.record = s->n_read, .is_damaged = true};
    double start = thread_cpu_seconds();
    s->bytes_read += n_bytes;
    (void)template_cut(&s->cutter, records, n_bytes, is_last, &s->stretch);
    s->n_read += s->stretch.n_records;
    if (fixed_records_make(&s->fixed, &s->fixmate, records, &s->stretch, &problem) < 0) {
        record_problem_print(&problem, bam_reader_name(s->reader));
        return -1;
    }
    s->sample->traits.sort_seconds += since(start);
    struct fixed_group group;
    size_t room = batch_room(s->batch);
    while (fixed_records_take(&s->fixed, room, &group)) {
        if (group.n_bytes > room) return 0;
        batch_append(s->batch, group.n_bytes);
        if (index_records(s, s->batch->raw_end, group.n_records, group.at) < 0) return -1;
        room = batch_room(s->batch);
    }
    s->sample->ends_in_template =
        s->fixed.too_large > 0 || s->cutter.kept.n_bytes > MOST_KEPT_BYTES;
    return !s->sample->ends_in_template;
}

/* Says what is wrong with the line after n_before records, if anything. Returns as take_piece does. */
static int check_lines(const struct sampler *s, uint64_t n_before)
{
    return input_check_lines(bam_reader_name(s->reader), n_before, &s->piece.lines) < 0 ? -1 : 1;
}

/* Parses lines and takes as many of their records as fit. Returns as take_piece does. */
static int take_lines(struct sampler *s)
{
    struct sam_chunk *lines = &s->piece.lines;
    double start = thread_cpu_seconds();
    sam_chunk_parse(lines, bam_reader_header(s->reader), s->record);
    s->sample->traits.decode_seconds += since(start);
    if (s->settings->sort->fixmate) {
        int r = take_templates(s, lines->raw, lines->raw_bytes, lines->problem);
        return r > 0 ? check_lines(s, s->n_read) : r;
    }
    size_t room = batch_room(s->batch), n_records = 0;
    if (room > lines->raw_bytes) room = lines->raw_bytes;
    struct bam_walk walk = {.at = lines->raw, .end = lines->raw + room};
    while (bam_walk_next(&walk)) n_records++;
    batch_append(s->batch, (size_t)(walk.at - lines->raw));
    if (index_records(s, s->batch->raw_end, n_records, lines->raw) < 0) return -1;
    bool takes_all = n_records == lines->n_records;
    return takes_all ? check_lines(s, s->sample->n_records) : 1;
}

/* Takes the last template. Returns as take_piece does. */
static int finish_templates(struct sampler *s)
{
    int r = take_templates(s, NULL, 0, true);
    if (r == 0) s->sample->whole = false;
    return r < 0 ? -1 : 0;
}

/* Makes room for the next piece. Returns as take_piece does. */
static int make_room(struct sampler *s)
{
    size_t n_bytes = bam_reader_room_needed(s->reader);
    if (n_bytes > BATCH_BYTES) return 0;
    xgrow(&s->raw.at, &s->raw.room, n_bytes, 0, 1);
    return 1;
}

/* Fetches and takes a piece. Returns 1, or 0 at the end or when the batch is full, or -1 after a
   message. */
static int take_piece(struct sampler *s)
{
    struct plan_sample *sample = s->sample;
    struct batch *batch = s->batch;
    bool is_text = bam_reader_is_text(s->reader);
    bool is_copied = s->settings->sort->fixmate && !is_text;
    uint8_t *raw = is_copied ? s->raw.at : batch->mem + batch->raw_end;
    double start = thread_cpu_seconds(), start_of_waiting = monotonic_seconds();
    int r = bam_reader_next(s->reader, &s->piece, raw, is_text ? TEXT_BYTES : PIECE_BYTES,
                            is_copied ? s->raw.room : batch_room(batch));
    sample->traits.decode_seconds += since(start);
    sample->traits.read_seconds += monotonic_seconds() - start_of_waiting - since(start);
    sample->whole = r == BAM_READER_END;
    if (r == BAM_READER_ERROR) return -1;
    if (r == BAM_READER_END && s->settings->sort->fixmate) return finish_templates(s);
    if (r == BAM_READER_NO_ROOM && is_copied) return make_room(s);
    if (r != BAM_READER_PIECE) return 0;
    if (is_text) return take_lines(s);
    start = thread_cpu_seconds();
    if (s->piece.compressed_bytes > 0 && bam_piece_inflate(&s->piece, &s->bgzf, raw) < 0) {
        input_error_piece(bam_reader_name(s->reader), &s->piece);
        return -1;
    }
    sample->traits.decode_seconds += since(start);
    if (is_copied) return take_templates(s, raw, s->piece.raw_bytes, false);
    batch_append(batch, s->piece.raw_bytes);
    return take_raw(s) < 0 ? -1 : 1;
}

static int read_sample(struct sampler *s)
{
    int r = 1;
    while (r > 0 && s->sample->raw_bytes < SAMPLE_BYTES) r = take_piece(s);
    s->sample->file_bytes = bam_reader_offset(s->reader);
    if (s->sample->ends_in_template && s->bytes_read > s->sample->raw_bytes)
        s->sample->template_bytes = s->bytes_read - s->sample->raw_bytes;
    return r < 0 ? -1 : 0;
}

/* The size of the record that a byte belongs to, on average. Few large records among many small
   ones count by their bytes. */
static double average_record(const uint8_t *records, size_t n_bytes)
{
    struct bam_walk walk = {.at = records, .end = records + n_bytes};
    double sum = 0;
    for (const uint8_t *rec; (rec = bam_walk_next(&walk)) != NULL;) {
        double size = (double)bam_record_bytes(rec);
        sum += size * (size / (double)n_bytes);
    }
    return sum;
}

/* Sorts the batch, and measures how its records compress. */
static int measure_sample(struct sampler *s)
{
    struct plan_sample *sample = s->sample;
    struct record_traits *traits = &sample->traits;
    double start = thread_cpu_seconds();
    traits->memory_ratio = (double)batch_used_bytes(s->batch) / (double)sample->raw_bytes;
    batch_sort(s->batch, &s->space);
    traits->sort_seconds += since(start);
    uint8_t *sorted = xmalloc(sample->raw_bytes);
    start = thread_cpu_seconds();
    (void)record_sample_gather(s->rules.order, s->batch->entries, s->batch->n_records, sorted,
                               sample->raw_bytes);
    traits->gather_seconds = since(start);
    traits->record_bytes = average_record(sorted, sample->raw_bytes);
    int r = record_sample_measure(&s->settings->measure, sorted, sample->raw_bytes, traits);
    if (r < 0) diag_error("cannot compress a sample of the input; please report this");
    free(sorted);
    return r;
}

/* Turns seconds for the whole sample into seconds for one byte. */
static void divide_seconds(struct plan_sample *sample)
{
    struct record_traits *traits = &sample->traits;
    double n_bytes = (double)sample->raw_bytes;
    traits->read_seconds /= n_bytes;
    traits->decode_seconds /= n_bytes;
    traits->sort_seconds /= n_bytes;
    traits->gather_seconds /= n_bytes;
}

/* Opens the input, completes the rules and makes the batch. */
static int prepare(struct sampler *s)
{
    const struct plan_sample_settings *settings = s->settings;
    const struct sort_settings *sort = settings->sort;
    s->reader = bam_reader_open(settings->path, &sort->input_format, NULL);
    if (!s->reader) return -1;
    sam_hdr_t *header = bam_reader_header(s->reader);
    s->sample->format = format_name(s->reader);
    s->sample->traits.is_text = bam_reader_is_text(s->reader);
    s->sample->traits.by_blocks = bam_reader_format(s->reader)->format == bam &&
                                  !sort->fixmate;
    s->rules = sort->rules;
    s->maker.header_name = bam_reader_name(s->reader);
    if (rules_complete(&s->maker, header, &s->rules) < 0) return -1;
    s->sample->traits.memory_at_worst = batch_memory_at_worst(s->rules.order);
    if (sort->fixmate) {
        s->fixmate = sort->fixmate_rules;
        rules_complete_fixmate(&s->maker, header, &s->fixmate);
        s->fixmate.long_positions = s->rules.long_positions;
        s->fixmate.max_template_bytes = 2 * MOST_KEPT_BYTES;
        xgrow(&s->raw.at, &s->raw.room, PIECE_BYTES, 0, 1);
    }
    s->record = bam_init1();
    xalloc_require(s->record != NULL);
    s->batch = batch_create(&s->rules, NULL, BATCH_BYTES);
    return 0;
}

int plan_sample_take(const struct plan_sample_settings *settings, struct plan_sample *sample)
{
    struct sampler s = {.settings = settings, .sample = sample};
    *sample = (struct plan_sample){0};
    int r = prepare(&s);
    if (r == 0) r = read_sample(&s);
    if (r == 0 && sample->raw_bytes > 0) {
        r = measure_sample(&s);
        divide_seconds(sample);
    }
    bam_piece_release(&s.piece);
    batch_destroy(s.batch);
    bam_reader_close(s.reader);
    rules_release(&s.maker);
    bgzf_coder_release(&s.bgzf);
    merge_space_release(&s.space);
    bam_destroy1(s.record);
    template_cutter_release(&s.cutter);
    template_stretch_release(&s.stretch);
    fixed_records_release(&s.fixed);
    free(s.raw.at);
    return r;
}
