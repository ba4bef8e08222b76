/* plan_sample.c -- see plan_sample.h. */
#include "command/plan_sample.h"

#include "bam/bam_long.h"
#include "bam/bgzf_block.h"
#include "input/bam_reader.h"
#include "input/input_error.h"
#include "pipeline/batch.h"
#include "util/diag.h"
#include "util/monotonic.h"

#include <stdlib.h>

enum {
    BATCH_BYTES = 32 << 20,
    SAMPLE_BYTES = 8 << 20,     /* 25,000 short reads: ratios are right within a few percent */
    PIECE_BYTES = 256 << 10,
    TEXT_BYTES = 64 << 10,
    BLOCK_BYTES = PLAN_SAMPLE_MOST_BLOCK_BYTES,
};

/* Deflating at level 9 takes so long that less must do. */
static const double most_deflate_seconds = 0.6;

struct sampler {
    const struct plan_sample_settings *settings;
    struct plan_sample *sample;
    struct sort_rules rules;
    struct bam_reader *reader;
    struct bam_key_template *ends;
    struct batch *batch;
    struct bam_piece piece;
    struct bgzf_coder bgzf;
    struct temp_coder temp;
    struct merge_space space;
    bam1_t *record;
    uint8_t *sorted;            /* the records in order */
    uint8_t *packed, *unpacked; /* a block's room */
};

static int no_memory(void)
{
    diag_no_memory();
    return -1;
}

/* CPU time, which does not depend on what else the machine does. */
static double since(double start)
{
    return thread_cpu_seconds() - start;
}

static const char *format_name(const htsFormat *format)
{
    switch (format->format) {
    case sam: return "SAM";
    case bam: return "BAM";
    case cram: return "CRAM";
    default: return "other";
    }
}

/* Adds the records between the last part and `to` to the batch, and indexes them. */
static int index_records(struct sampler *s, size_t to, size_t n_records, const uint8_t *source)
{
    struct plan_sample *sample = s->sample;
    struct record_problem problem;
    struct content_sum sum = {0};
    size_t n_bytes = to - s->batch->walk_at;
    if (n_records == 0) return 0;
    struct batch_part *part =
        batch_add_part(s->batch, to, n_records, sample->n_records);
    if (!part) return no_memory();
    part->source = source;
    double start = thread_cpu_seconds();
    int n_refs = sam_hdr_nref(bam_reader_header(s->reader));
    if (batch_index_part(part, n_refs, &sum, &problem) < 0) {
        record_problem_print(&problem, bam_reader_name(s->reader));
        return -1;
    }
    sample->sort_seconds += since(start);
    sample->n_records += n_records;
    sample->raw_bytes += n_bytes;
    return 0;
}

/* Whole records from the end of the last part on. */
static int take_raw(struct sampler *s)
{
    const struct batch *batch = s->batch;
    struct bam_walk walk = {.at = batch->mem + batch->walk_at, .end = batch->mem + batch->raw_end};
    size_t n_records = 0;
    while (bam_walk_next(&walk)) n_records++;
    return index_records(s, (size_t)(walk.at - batch->mem), n_records, NULL);
}

/* Parses lines and takes as many of their records as fit. */
static int take_lines(struct sampler *s)
{
    struct sam_chunk *lines = &s->piece.lines;
    double start = thread_cpu_seconds();
    sam_chunk_parse(lines, bam_reader_header(s->reader), s->record);
    s->sample->decode_seconds += since(start);
    size_t room = batch_room(s->batch), n_records = 0;
    if (room > lines->raw_bytes) room = lines->raw_bytes;
    struct bam_walk walk = {.at = lines->raw, .end = lines->raw + room};
    while (bam_walk_next(&walk)) n_records++;
    batch_append(s->batch, (size_t)(walk.at - lines->raw));
    if (index_records(s, s->batch->raw_end, n_records, lines->raw) < 0) return -1;
    if (n_records < lines->n_records || !lines->problem) return 0;
    input_error_record(bam_reader_name(s->reader), s->sample->n_records + 1, lines->problem_name,
                        lines->problem);
    return -1;
}

/* Fetches and takes a piece. Returns 1, 0 at the end or when the batch is full, -1. */
static int take_piece(struct sampler *s)
{
    struct plan_sample *sample = s->sample;
    struct batch *batch = s->batch;
    uint8_t *raw = batch->mem + batch->raw_end;
    bool is_text = bam_reader_is_text(s->reader);
    double start = thread_cpu_seconds(), start_of_waiting = monotonic_seconds();
    int r = bam_reader_next(s->reader, &s->piece, raw, is_text ? TEXT_BYTES : PIECE_BYTES,
                            batch_room(batch));
    sample->decode_seconds += since(start);
    sample->read_seconds += monotonic_seconds() - start_of_waiting - since(start);
    sample->whole = r == BAM_READER_END;
    if (r == BAM_READER_ERROR) return -1;
    if (r != BAM_READER_PIECE) return 0;
    if (is_text) return take_lines(s) < 0 ? -1 : 1;
    start = thread_cpu_seconds();
    if (s->piece.compressed_bytes > 0 && bam_piece_inflate(&s->piece, &s->bgzf, raw) < 0) {
        input_error_piece(bam_reader_name(s->reader), &s->piece);
        return -1;
    }
    sample->decode_seconds += since(start);
    batch_append(batch, s->piece.raw_bytes);
    return take_raw(s) < 0 ? -1 : 1;
}

static int read_sample(struct sampler *s)
{
    int r = 1;
    while (r > 0 && s->sample->raw_bytes < SAMPLE_BYTES) r = take_piece(s);
    s->sample->file_bytes = bam_reader_offset(s->reader);
    return r < 0 ? -1 : 0;
}

/* Sorts the batch and copies its records to s->sorted. */
static int sort_sample(struct sampler *s)
{
    struct plan_sample *sample = s->sample;
    double start = thread_cpu_seconds();
    sample->memory_ratio = (double)batch_used_bytes(s->batch) / (double)sample->raw_bytes;
    if (batch_sort(s->batch, &s->space) < 0) return no_memory();
    sample->sort_seconds += since(start);
    s->sorted = malloc(sample->raw_bytes);
    if (!s->sorted) return no_memory();
    start = thread_cpu_seconds();
    uint8_t *at = s->sorted;
    for (size_t i = 0; i < s->batch->n_records; i++) {
        const uint8_t *rec = sort_entry_record(s->rules.order, &s->batch->entries[i]);
        size_t n_bytes = bam_record_bytes(rec);
        memcpy(at, rec, n_bytes);
        at += n_bytes;
    }
    sample->gather_seconds = since(start);
    return 0;
}

/* Packs and unpacks the sorted records with one codec. */
static int measure_codec(struct sampler *s, enum temp_codec codec)
{
    struct plan_sample *sample = s->sample;
    size_t packed_bytes = 0, room = temp_codec_bound(codec, BLOCK_BYTES);
    size_t block_bytes = s->settings->block_bytes;
    for (size_t at = 0; at < sample->raw_bytes; at += block_bytes) {
        size_t left = sample->raw_bytes - at, n_bytes = left < block_bytes ? left : block_bytes;
        double start = thread_cpu_seconds();
        ssize_t packed = temp_codec_compress(&s->temp, codec, s->sorted + at, n_bytes, s->packed,
                                             room);
        sample->pack_seconds[codec] += since(start);
        start = thread_cpu_seconds();
        if (packed < 0 || temp_codec_decompress(&s->temp, codec, s->packed, (size_t)packed,
                                                s->unpacked, n_bytes) < 0) {
            diag_error("cannot compress a sample of the input with %s; choose another "
                       "--temp-codec", temp_codec_name(codec));
            return -1;
        }
        sample->unpack_seconds[codec] += since(start);
        packed_bytes += (size_t)packed;
    }
    sample->pack_ratio[codec] = (double)packed_bytes / (double)sample->raw_bytes;
    return 0;
}

static int measure_codecs(struct sampler *s)
{
    size_t room = 0;
    for (int i = 0; i < TEMP_CODEC_COUNT; i++) {
        size_t bound = temp_codec_bound((enum temp_codec)i, BLOCK_BYTES);
        if (bound > room) room = bound;
    }
    s->packed = malloc(room);
    s->unpacked = malloc(BLOCK_BYTES);
    if (!s->packed || !s->unpacked) return no_memory();
    for (int i = 0; i < TEMP_CODEC_COUNT; i++)
        if (measure_codec(s, (enum temp_codec)i) < 0) return -1;
    return 0;
}

/* Deflates as much as the time allows, and sets the figures of a byte. */
static int measure_deflate(struct sampler *s)
{
    struct plan_sample *sample = s->sample;
    size_t at = 0, deflated_bytes = 0;
    double start = thread_cpu_seconds(), seconds = 0;
    uint8_t *block = malloc(BGZF_MAX_BYTES);
    if (!block) return no_memory();
    while (at < sample->raw_bytes && seconds < most_deflate_seconds) {
        size_t left = sample->raw_bytes - at;
        size_t n_bytes = left < BGZF_PAYLOAD_BYTES ? left : BGZF_PAYLOAD_BYTES;
        ssize_t n =
            bgzf_block_deflate(&s->bgzf, s->settings->level, s->sorted + at, n_bytes, block);
        if (n < 0) break;
        deflated_bytes += (size_t)n;
        at += n_bytes;
        seconds = since(start);
    }
    free(block);
    if (at == 0) {
        diag_error("cannot deflate a sample of the input; please report this");
        return -1;
    }
    sample->deflate_seconds = seconds / (double)at;
    sample->deflate_ratio = (double)deflated_bytes / (double)at;
    return 0;
}

/* From seconds of the sample to seconds of a byte. */
static void divide_seconds(struct plan_sample *sample)
{
    double n_bytes = (double)sample->raw_bytes;
    sample->read_seconds /= n_bytes;
    sample->decode_seconds /= n_bytes;
    sample->sort_seconds /= n_bytes;
    sample->gather_seconds /= n_bytes;
    for (int i = 0; i < TEMP_CODEC_COUNT; i++) {
        sample->pack_seconds[i] /= n_bytes;
        sample->unpack_seconds[i] /= n_bytes;
    }
}

/* Opens the input and makes what its records need. */
static int prepare(struct sampler *s)
{
    const struct plan_sample_settings *settings = s->settings;
    s->reader = bam_reader_open(settings->path, settings->options, NULL);
    if (!s->reader) return -1;
    sam_hdr_t *header = bam_reader_header(s->reader);
    s->sample->format = format_name(bam_reader_format(s->reader));
    s->sample->is_text = bam_reader_is_text(s->reader);
    s->sample->by_blocks = bam_reader_format(s->reader)->format == bam;
    s->rules = settings->rules;
    s->rules.long_positions = bam_header_long_reference(header) >= 0;
    if (s->rules.long_positions && s->rules.order == SORT_COORDINATE)
        s->rules.order = SORT_COORDINATE_LONG;
    if (s->rules.order == SORT_TEMPLATE) {
        s->ends = bam_key_template_create(header);
        if (!s->ends) return no_memory();
        s->rules.template_ends = s->ends;
    }
    s->sample->memory_at_worst = batch_memory_at_worst(s->rules.order);
    s->record = bam_init1();
    s->batch = batch_create(&s->rules, NULL, BATCH_BYTES);
    return s->record && s->batch ? 0 : no_memory();
}

int plan_sample_take(const struct plan_sample_settings *settings, struct plan_sample *sample)
{
    struct sampler s = {.settings = settings, .sample = sample};
    *sample = (struct plan_sample){0};
    int r = prepare(&s);
    if (r == 0) r = read_sample(&s);
    if (r == 0 && sample->raw_bytes > 0) {
        r = sort_sample(&s);
        if (r == 0) r = measure_codecs(&s);
        if (r == 0) r = measure_deflate(&s);
        divide_seconds(sample);
    }
    bam_piece_release(&s.piece);
    batch_destroy(s.batch);
    bam_reader_close(s.reader);
    bam_key_template_destroy(s.ends);
    bgzf_coder_release(&s.bgzf);
    temp_coder_release(&s.temp);
    merge_space_release(&s.space);
    bam_destroy1(s.record);
    free(s.sorted);
    free(s.packed);
    free(s.unpacked);
    return r;
}
