/*
 * segment.c -- see segment.h.
 *
 * To open a block is to verify its checksum, decompress it and build the entries of its records. To
 * merge a segment is to find its slice of every open block and every batch by two binary searches
 * each, to merge the slices, and to make what is written of them (segment_output.h), for one output
 * after the other.
 */
#include "pipeline/segment.h"

#include "duplicates/duplicate_tags.h"
#include "pipeline/batch.h"
#include "store/bam_block.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdio.h>
#include <stdlib.h>

/* Until the first segment is done. Columns take 1.5 times as much as short reads, columns and lines
   5 times as much as arrays of small numbers. With 4, each worker has a segment to merge. */
enum { FIRST_EXPANSION = 4 };

struct segmenter *segmenter_create(const struct sort_context *sort,
                                   const struct merge_source *kept, size_t n_kept,
                                   size_t segment_bytes)
{
    struct segmenter *s = xcalloc(1, sizeof *s);
    s->sort = sort;
    s->kept = kept;
    s->n_kept = n_kept;
    for (unsigned i = 0; i < sort->output.n_files; i++)
        /* Some segments are larger than planned, the last one above all. */
        s->forms[i] = (struct output_form){.number = i, .file = &sort->output.files[i],
                                           .column_batch_bytes = 2 * segment_bytes};
    s->n_refs = sam_hdr_nref(sort->header);
    s->order = sort->rules.order;
    s->record_growth = duplicates_usual_growth(sort->duplicates);
    s->expansion = FIRST_EXPANSION;
    s->last_unopened = &s->unopened;
    s->last_waiting = &s->waiting;
    return s;
}

/* ---- opening blocks ---- */

static void free_block(struct open_block *block)
{
    free(block->value);
    free(block->memory);
    free(block->keyed);
    merge_bound_release(&block->last);
    free(block);
}

void segmenter_drop_block(struct open_block *block)
{
    if (--block->n_users > 0) return;
    block->segmenter->block_bytes -= block->n_bytes;
    free_block(block);
}

/* The place of the entries of stored records, after raw_bytes of these. */
static size_t entries_at(size_t raw_bytes)
{
    return (raw_bytes + 15) & ~(size_t)15;
}

/* Makes the entries of a block's n records up to `end`, with keys at `keyed` if the order is not a
   fixed one. sum, any_placed: as in record_entries.h. */
static void make_entries(struct segmenter *s, struct open_block *block, size_t n,
                         const uint8_t *end, struct sort_entry *entries, uint8_t *keyed,
                         struct content_sum *sum, bool *any_placed)
{
    const struct sort_rules *rules = &s->sort->rules;
    block->source.entries = entries;
    block->source.n_entries = n;
    if (sort_order_is_fixed(s->order)) {
        record_entries_make(rules, block->raw, end, entries, sum);
        return;
    }
    record_entries_make_keyed(rules, block->raw, end, keyed, sum, any_placed);
    (void)keyed_records_entries(keyed, n, entries);
}

/* Memory of the entries of a block, if all keys are as long as the longer one of the keys in its
   bounds, but keys have at most twice the bytes of their records. */
static size_t expect_entries(const struct segmenter *s, const struct fed_block *fed,
                             const struct bam_block *stored)
{
    size_t bound_bytes = fed->key_bytes > stored->last_bound_bytes ? fed->key_bytes
                                                                   : stored->last_bound_bytes;
    size_t keyed_bytes = stored->n_records *
                         keyed_record_bytes(bound_bytes - MERGE_BOUND_TAIL_BYTES);
    if (sort_order_is_fixed(s->order)) keyed_bytes = 0;
    if (keyed_bytes > 2 * stored->raw_bytes) keyed_bytes = 2 * stored->raw_bytes;
    return stored->n_records * sizeof(struct sort_entry) + keyed_bytes;
}

/* With the lock held: counts the memory of a block, which was counted otherwise before. */
static void count_block(struct open_block *block, size_t entry_bytes)
{
    /* The value still counts when the block is open: RocksDB may have a copy. */
    size_t n_bytes = block->value_bytes + block->raw_bytes + entry_bytes + block->last.n_bytes;
    block->segmenter->block_bytes += n_bytes - block->n_bytes;
    block->n_bytes = n_bytes;
}

/* Marks the duplicates among the n records of a block. They may grow: *raw_bytes is their size.
   Returns 0, or -1 after a message. */
static int mark_duplicates(struct segmenter *s, struct open_block *block, size_t n,
                           size_t *raw_bytes)
{
    const struct duplicates *duplicates = s->sort->duplicates;
    uint32_t run = block->source.run;
    uint64_t first_index = block->source.first_index;
    struct marked_records records = {block->raw, *raw_bytes, n};
    if (duplicates_mark(duplicates, run, first_index, &records,
                        15 + n * sizeof(struct sort_entry)) < 0)
        return -1;
    if (records.bytes == block->raw) return 0;
    free(block->memory);
    block->memory = block->raw = records.bytes;
    *raw_bytes = records.n_bytes;
    return 0;
}

/* Verifies and decompresses a block. Returns the bytes of the keys of its records, or -1. */
static ssize_t unpack_block(const struct segmenter *s, struct temp_coder *coder,
                            struct open_block *block, struct bam_block *stored)
{
    if (bam_block_parse(block->value, block->value_bytes, stored) < 0 ||
        !bam_block_verify(block->value, block->value_bytes))
        return -1;
    block->memory = xmalloc(entries_at(block->raw_bytes) +
                            stored->n_records * sizeof(struct sort_entry));
    block->raw = block->memory;
    if (temp_codec_decompress(coder, stored->codec, stored->payload, stored->payload_bytes,
                              block->raw, block->raw_bytes) < 0)
        return -1;
    return bam_block_measure(&s->sort->rules, stored, block->raw, s->n_refs);
}

/* Unpacks and indexes a block. Returns 0, or -1 after a message. */
static int open_block(struct segmenter *s, struct temp_coder *coder, struct open_block *block)
{
    struct bam_block stored;
    /* The dispatcher reads block->raw_bytes meanwhile: it stays as it is. */
    size_t raw_bytes = block->raw_bytes;
    bool any_placed = false;
    ssize_t keyed_bytes = unpack_block(s, coder, block, &stored);
    if (keyed_bytes < 0) return fed_block_report_run(block->dir, block->source.run);
    if (s->sort->duplicates && mark_duplicates(s, block, stored.n_records, &raw_bytes) < 0)
        return -1;
    if (!sort_order_is_fixed(s->order)) block->keyed = xmalloc((size_t)keyed_bytes);
    make_entries(s, block, stored.n_records, block->raw + raw_bytes,
                 (struct sort_entry *)(block->raw + entries_at(raw_bytes)), block->keyed, NULL,
                 &any_placed);
    free(block->value);
    block->value = NULL;
    crew_lock(s->sort->crew);
    count_block(block, raw_bytes - block->raw_bytes +
                           stored.n_records * sizeof(struct sort_entry) + (size_t)keyed_bytes);
    crew_unlock(s->sort->crew);
    return 0;
}

struct segment_scratch {
    struct temp_coder coder;
    struct merge_slice *slices;
    size_t slices_room;
};

static void release_scratch(void *arg)
{
    struct segment_scratch *scratch = arg;
    temp_coder_release(&scratch->coder);
    free(scratch->slices);
}

static const struct scratch_kind scratch_kind = {sizeof(struct segment_scratch), release_scratch};

static void segment_job(struct worker *worker, void *arg);

/* With the lock held: takes the first waiting segment. NULL if there is none, or if not all of its
   blocks are open. */
static struct segment *take_ready_segment(struct segmenter *s)
{
    struct segment *segment = s->waiting;
    if (!segment || segment->n_blocks_needed > s->n_opened) return NULL;
    s->waiting = segment->next;
    if (!s->waiting) s->last_waiting = &s->waiting;
    return segment;
}

/* Hands all segments whose blocks are open to workers. Returns 0, or -1 after a message. */
static int submit_ready_segments(struct segmenter *s)
{
    for (;;) {
        crew_lock(s->sort->crew);
        struct segment *segment = take_ready_segment(s);
        crew_unlock(s->sort->crew);
        if (!segment) return 0;
        if (crew_submit(s->sort->crew, segment_job, segment) < 0) return -1;
    }
}

static void open_block_job(struct worker *worker, void *arg)
{
    struct open_block *block = arg;
    struct segmenter *s = block->segmenter;
    struct crew *crew = s->sort->crew;
    struct segment_scratch *scratch = worker_scratch(worker, &scratch_kind);
    if (!crew_failed(crew) && open_block(s, &scratch->coder, block) < 0) crew_fail(crew);
    crew_lock(crew);
    block->opened = true;
    while (s->unopened && s->unopened->opened) {
        s->unopened = s->unopened->next_unopened;
        s->n_opened++;
    }
    if (!s->unopened) s->last_unopened = &s->unopened;
    crew_unlock(crew);
    (void)submit_ready_segments(s);
}

/* Makes a block that is not open yet and takes over the fed block's value. NULL after a message. */
static struct open_block *take_block(struct segmenter *s, struct fed_block *fed)
{
    struct bam_block stored;
    if (!merge_bound_is_sound(fed->key_bytes) ||
        bam_block_parse(fed->value, fed->value_bytes, &stored) < 0) {
        (void)fed_block_report_entry(fed->dir);
        return NULL;
    }
    const struct merge_limit first = {fed->key, fed->key_bytes};
    const struct merge_limit last = {stored.last_bound, stored.last_bound_bytes};
    struct open_block *block = xcalloc(1, sizeof *block);
    block->segmenter = s;
    block->n_users = 1;
    block->dir = fed->dir;
    block->value = fed->value;
    block->value_bytes = fed->value_bytes;
    fed->value = NULL;
    block->raw_bytes = stored.raw_bytes;
    block->grown_bytes = stored.raw_bytes + stored.n_records * s->record_growth;
    merge_bound_copy(&block->last, stored.n_records == 1 ? &first : &last);
    merge_bound_position(fed->key, fed->key_bytes, &block->source.run,
                         &block->source.first_index);
    crew_lock(s->sort->crew);
    count_block(block, block->grown_bytes - block->raw_bytes + expect_entries(s, fed, &stored));
    crew_unlock(s->sort->crew);
    return block;
}

struct open_block *segmenter_open_block(struct segmenter *s, struct fed_block *fed)
{
    struct open_block *block = take_block(s, fed);
    if (!block) return NULL;
    crew_lock(s->sort->crew);
    *s->last_unopened = block;
    s->last_unopened = &block->next_unopened;
    crew_unlock(s->sort->crew);
    (void)crew_submit(s->sort->crew, open_block_job, block);
    return block;
}

/* ---- blocks of records that were read ---- */

/* Adds the block's records, which were checked, to the sum, and marks the duplicates among them.
   Returns 0, or -1 after a message. */
static int mark_records(struct segmenter *s, struct open_block *block,
                        struct input_records *records, size_t *raw_bytes)
{
    const struct duplicate_rules *rules = s->sort->rules.duplicates;
    uint8_t *end = block->raw + *raw_bytes;
    for (uint8_t *rec = block->raw; rec < end; rec += bam_record_bytes(rec))
        duplicate_sum_add_input(rules, &records->sum, rec);
    records->problem.text = NULL;
    return mark_duplicates(s, block, records->span->n_records, raw_bytes);
}

/* Makes the entries of the block's records, and adds these to the sum unless they are in it.
   Returns 0, or -1 with *problem if a record has no key. */
static int index_records(struct segmenter *s, struct open_block *block, size_t raw_bytes,
                         struct input_records *records)
{
    const struct sort_rules *rules = &s->sort->rules;
    struct content_sum *sum = s->sort->duplicates ? NULL : &records->sum;
    const uint8_t *end = block->raw + raw_bytes;
    size_t n = records->span->n_records, entries_bytes = n * sizeof(struct sort_entry);
    ssize_t keyed_bytes = 0;
    if (!sort_order_is_fixed(s->order))
        keyed_bytes = record_entries_measure(rules, block->raw, end, block->source.first_index,
                                             &records->problem);
    if (keyed_bytes < 0) return -1;
    block->keyed = xmalloc(entries_bytes + (size_t)keyed_bytes);
    block->entry_bytes = entries_bytes + (size_t)keyed_bytes;
    make_entries(s, block, n, end, (struct sort_entry *)block->keyed,
                 block->keyed + entries_bytes, sum, &records->any_placed);
    return 0;
}

/* Copies the name of a read that has a problem: the record is freed before the problem is told. */
static void keep_read_name(struct input_records *records)
{
    if (!records->problem.read_name) return;
    (void)snprintf(records->read_name, sizeof records->read_name, "%s",
                   records->problem.read_name);
    records->problem.read_name = records->read_name;
}

struct open_block *segmenter_adopt_records(struct segmenter *s, struct input_records *records)
{
    struct open_block *block = xcalloc(1, sizeof *block);
    block->segmenter = s;
    block->n_users = 1;
    block->opened = true;
    block->memory = record_span_take_memory(records->span);
    block->raw = records->span->from;
    block->source.run = records->run;
    block->source.first_index = records->span->first_record;
    const uint8_t *end = record_entries_check(&s->sort->rules, s->n_refs, block->raw,
                                              records->span->to, block->source.first_index,
                                              &records->problem);
    size_t raw_bytes = end ? (size_t)(end - block->raw) : 0;
    if (!end || (s->sort->duplicates && mark_records(s, block, records, &raw_bytes) < 0) ||
        index_records(s, block, raw_bytes, records) < 0) {
        keep_read_name(records);
        free_block(block);
        return NULL;
    }
    block->raw_bytes = block->grown_bytes = raw_bytes;
    merge_bound_set(&block->last, s->order, &block->source, records->span->n_records - 1);
    return block;
}

void segmenter_count_adopted(struct open_block *block)
{
    count_block(block, block->entry_bytes);
}

/* ---- segments ---- */

struct segment *segment_create(struct segmenter *s, const struct merge_limit *low,
                               const struct merge_limit *high, struct open_block *const *blocks,
                               size_t n)
{
    struct segment *segment = xcalloc(1, sizeof *segment);
    segment->segmenter = s;
    merge_bound_copy(&segment->low, low);
    merge_bound_copy(&segment->high, high);
    segment->blocks = xmemdup(blocks, n * sizeof *blocks);
    segment->n_blocks = n;
    crew_lock(s->sort->crew);
    for (size_t i = 0; i < n; i++) blocks[i]->n_users++;
    crew_unlock(s->sort->crew);
    return segment;
}

int segmenter_merge(struct segmenter *s, struct segment *segment)
{
    crew_lock(s->sort->crew);
    *s->last_waiting = segment;
    s->last_waiting = &segment->next;
    crew_unlock(s->sort->crew);
    return submit_ready_segments(s);
}

void segment_drop_blocks(struct segment *segment)
{
    for (size_t i = 0; i < segment->n_blocks; i++) segmenter_drop_block(segment->blocks[i]);
    segment->n_blocks = 0;
}

void segment_destroy(struct segment *segment)
{
    free(segment->blocks);
    merge_bound_release(&segment->low);
    merge_bound_release(&segment->high);
    for (unsigned i = 0; i < MOST_OUTPUTS; i++) segment_output_release(&segment->outputs[i]);
    observed_parts_discard(&segment->observed);
    free(segment);
}

/* ---- merging a segment ---- */

/* The part of a source that belongs to the segment. */
static struct merge_slice slice_of(const struct segment *segment, const struct merge_source *source)
{
    const struct sort_rules *rules = &segment->segmenter->sort->rules;
    const struct merge_limit low = merge_limit_of(&segment->low);
    const struct merge_limit high = merge_limit_of(&segment->high);
    size_t from = low.bytes ? merge_cut(rules, source, &low) : 0;
    size_t to = merge_cut(rules, source, &high);
    return (struct merge_slice){source->entries + from, to - from};
}

/* True if the records are in order and lie between the segment's bounds. The checksum over all
   records does not depend on their order, so it would not find such an error. */
static bool is_in_order(const struct segment *segment, const struct sort_entry *merged, size_t n)
{
    const struct sort_rules *rules = &segment->segmenter->sort->rules;
    const struct merge_limit low = merge_limit_of(&segment->low);
    const struct merge_limit high = merge_limit_of(&segment->high);
    return n == 0 || (merge_is_sorted(rules, merged, n) &&
                      (!low.bytes || merge_compare(rules, merged, &low) >= 0) &&
                      (!high.bytes || merge_compare(rules, merged + n - 1, &high) <= 0));
}

/* Merges the segment and writes its output. Returns 0, or -1 after a message. */
static int merge_segment(struct segment *segment, struct worker *worker, struct content_sum *sum)
{
    struct segmenter *s = segment->segmenter;
    const struct sort_context *sort = s->sort;
    size_t n_sources = segment->n_blocks + s->n_kept;
    struct segment_scratch *scratch = worker_scratch(worker, &scratch_kind);
    const struct sort_entry *merged;
    xgrow(&scratch->slices, &scratch->slices_room, n_sources, n_sources, sizeof *scratch->slices);
    for (size_t i = 0; i < segment->n_blocks; i++)
        scratch->slices[i] = slice_of(segment, &segment->blocks[i]->source);
    for (size_t i = 0; i < s->n_kept; i++)
        scratch->slices[segment->n_blocks + i] = slice_of(segment, &s->kept[i]);
    size_t n = merge_slices(&sort->rules, scratch->slices, n_sources,
                            worker_merge_space(worker), &merged);
    if (!is_in_order(segment, merged, n)) {
        diag_error("the output would not be in order: the memory of this machine may be faulty; "
                   "if it is not, please report this");
        return -1;
    }
    observed_parts_begin(&segment->observed, &sort->observers_out);
    struct segment_records records = {
        .rules = &sort->rules, .header = sort->header, .split = sort->output.plan,
        .entries = merged, .n_entries = n, .sum = sum,
        .observed = &segment->observed,
    };
    int r = 0;
    for (unsigned i = 0; r == 0 && i < sort->output.n_files; i++) {
        records.is_first = i == 0;
        r = segment_output_make(&segment->outputs[i], &s->forms[i], &records, worker);
    }
    return observed_parts_end(&segment->observed) < 0 ? -1 : r;
}

/* With the lock held: remembers what lines or columns of the segment took: the largest batch, or
   the output. */
static void remember_expansion(const struct segment *segment)
{
    size_t n_bytes = 0;
    for (unsigned i = 0; i < MOST_OUTPUTS; i++) {
        const struct segment_output *out = &segment->outputs[i];
        if (out->large_bytes == 0) continue;
        n_bytes += out->large_bytes > out->n_bytes ? out->large_bytes : out->n_bytes;
    }
    if (n_bytes > 0) segment->segmenter->expansion = (double)n_bytes / (double)segment->raw_bytes;
}

static void segment_job(struct worker *worker, void *arg)
{
    struct segment *segment = arg;
    struct segmenter *s = segment->segmenter;
    struct crew *crew = s->sort->crew;
    struct content_sum sum = {0};
    if (!crew_failed(crew) && merge_segment(segment, worker, &sum) < 0) crew_fail(crew);
    segment->n_records = sum.n_records;
    segment->raw_bytes = sum.n_bytes;
    crew_lock(crew);
    segment_drop_blocks(segment);
    content_sum_join(&s->sum, &sum);
    remember_expansion(segment);
    segment->done = true;
    crew_unlock(crew);
}
