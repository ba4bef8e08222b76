/*
 * output_chunk.c -- see output_chunk.h.
 *
 * To open a block, a job verifies its checksum, decompresses it and makes the entries of its
 * records. To merge an output chunk, a job finds its slice of every open block and sort buffer by
 * two binary searches each, merges the slices, and encodes the records (chunk_encoder.h) for each
 * output in turn.
 */
#include "sort/output_chunk.h"

#include "markdup/duplicate_tags.h"
#include "spill/bam_block.h"
#include "spill/sort_buffer.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdio.h>
#include <stdlib.h>

/* Initial estimate of `expansion`. Columns take 1.5 times the size of short reads, columns and
   lines 5 times that of arrays of small numbers. With 4, each worker has an output chunk to
   merge. */
enum { FIRST_EXPANSION = 4 };

struct output_chunker *output_chunker_create(const struct sort_context *sort,
                                             const struct merge_source *kept, size_t n_kept,
                                             size_t chunk_bytes)
{
    struct output_chunker *s = xcalloc(1, sizeof *s);
    s->sort = sort;
    s->kept = kept;
    s->n_kept = n_kept;
    for (unsigned i = 0; i < sort->output.n_files; i++)
        /* Output chunks, above all the last one, may be larger than planned. */
        s->forms[i] = (struct output_form){.number = i, .file = &sort->output.files[i],
                                           .column_batch_bytes = 2 * chunk_bytes};
    s->n_refs = sam_hdr_nref(sort->header);
    s->order = sort->rules.order;
    s->record_growth = markdup_usual_growth(sort->duplicates);
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

void output_chunker_drop_block(struct open_block *block)
{
    if (--block->n_users > 0) return;
    block->output_chunker->block_bytes -= block->n_bytes;
    free_block(block);
}

/* The offset of the entries, after raw_bytes of stored records. */
static size_t entries_at(size_t raw_bytes)
{
    return (raw_bytes + 15) & ~(size_t)15;
}

/* Makes the entries of a block's n records up to `end`, with keys at `keyed` if keys are variable.
   sum, any_placed: as in record_entries.h. */
static void make_entries(struct output_chunker *s, struct open_block *block, size_t n,
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

/* Estimates the memory of a block's entries: all keys as long as the longer one of its bounds, but
   at most twice the bytes of the records. */
static size_t expect_entries(const struct output_chunker *s, const struct stored_block *queued,
                             const struct bam_block *stored)
{
    size_t bound_bytes = queued->key_bytes > stored->last_bound_bytes ? queued->key_bytes
                                                                   : stored->last_bound_bytes;
    size_t keyed_bytes = stored->n_records *
                         keyed_record_bytes(bound_bytes - MERGE_BOUND_TAIL_BYTES);
    if (sort_order_is_fixed(s->order)) keyed_bytes = 0;
    if (keyed_bytes > 2 * stored->raw_bytes) keyed_bytes = 2 * stored->raw_bytes;
    return stored->n_records * sizeof(struct sort_entry) + keyed_bytes;
}

/* With the lock held: updates the counted memory of a block. */
static void count_block(struct open_block *block, size_t entry_bytes)
{
    /* The value counts even when the block is open: RocksDB may have a copy. */
    size_t n_bytes = block->value_bytes + block->raw_bytes + entry_bytes + block->last.n_bytes;
    block->output_chunker->block_bytes += n_bytes - block->n_bytes;
    block->n_bytes = n_bytes;
}

/* Marks duplicates among the n records of a block. Tags may enlarge them: updates *raw_bytes.
   Returns 0, or -1 after a message. */
static int mark_duplicates(struct output_chunker *s, struct open_block *block, size_t n,
                           size_t *raw_bytes)
{
    const struct markdup *duplicates = s->sort->duplicates;
    uint32_t run = block->source.run;
    uint64_t first_index = block->source.first_index;
    struct marked_records records = {block->raw, *raw_bytes, n};
    if (markdup_mark(duplicates, run, first_index, &records, 15 + n * sizeof(struct sort_entry)) <
        0)
        return -1;
    if (records.bytes == block->raw) return 0;
    free(block->memory);
    block->memory = block->raw = records.bytes;
    *raw_bytes = records.n_bytes;
    return 0;
}

/* Verifies and decompresses a block. Returns the total bytes of its keys, or -1. */
static ssize_t unpack_block(const struct output_chunker *s, struct temp_coder *coder,
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
static int open_block(struct output_chunker *s, struct temp_coder *coder, struct open_block *block)
{
    struct bam_block stored;
    /* block->raw_bytes must not change: the dispatcher reads it meanwhile. */
    size_t raw_bytes = block->raw_bytes;
    bool any_placed = false;
    ssize_t keyed_bytes = unpack_block(s, coder, block, &stored);
    if (keyed_bytes < 0) return stored_block_report_run(block->dir, block->source.run);
    if (s->sort->duplicates && mark_duplicates(s, block, stored.n_records, &raw_bytes) < 0)
        return -1;
    if (!sort_order_is_fixed(s->order)) block->keyed = xmalloc((size_t)keyed_bytes);
    make_entries(s, block, stored.n_records, block->raw + raw_bytes,
                 (struct sort_entry *)(block->raw + entries_at(raw_bytes)), block->keyed, NULL,
                 &any_placed);
    free(block->value);
    block->value = NULL;
    thread_pool_lock(s->sort->threads);
    count_block(block, raw_bytes - block->raw_bytes +
                           stored.n_records * sizeof(struct sort_entry) + (size_t)keyed_bytes);
    thread_pool_unlock(s->sort->threads);
    return 0;
}

struct output_chunk_scratch {
    struct temp_coder coder;
    struct merge_slice *slices;
    size_t slices_room;
};

static void release_scratch(void *arg)
{
    struct output_chunk_scratch *scratch = arg;
    temp_coder_release(&scratch->coder);
    free(scratch->slices);
}

static const struct scratch_kind scratch_kind = {sizeof(struct output_chunk_scratch),
                                                 release_scratch};

static void output_chunk_job(struct worker *worker, void *arg);

/* With the lock held: takes the first waiting output chunk. NULL if there is none, or if some of
   its blocks are not open. */
static struct output_chunk *take_ready_chunk(struct output_chunker *s)
{
    struct output_chunk *output_chunk = s->waiting;
    if (!output_chunk || output_chunk->n_blocks_needed > s->n_opened) return NULL;
    s->waiting = output_chunk->next;
    if (!s->waiting) s->last_waiting = &s->waiting;
    return output_chunk;
}

/* Submits all output chunks whose blocks are open. Returns 0, or -1 after a message. */
static int submit_ready_chunk(struct output_chunker *s)
{
    for (;;) {
        thread_pool_lock(s->sort->threads);
        struct output_chunk *output_chunk = take_ready_chunk(s);
        thread_pool_unlock(s->sort->threads);
        if (!output_chunk) return 0;
        if (thread_pool_submit(s->sort->threads, output_chunk_job, output_chunk) < 0) return -1;
    }
}

static void open_block_job(struct worker *worker, void *arg)
{
    struct open_block *block = arg;
    struct output_chunker *s = block->output_chunker;
    struct threads *threads = s->sort->threads;
    struct output_chunk_scratch *scratch = worker_scratch(worker, &scratch_kind);
    if (!thread_pool_failed(threads) && open_block(s, &scratch->coder, block) < 0)
        thread_pool_fail(threads);
    thread_pool_lock(threads);
    block->opened = true;
    while (s->unopened && s->unopened->opened) {
        s->unopened = s->unopened->next_unopened;
        s->n_opened++;
    }
    if (!s->unopened) s->last_unopened = &s->unopened;
    thread_pool_unlock(threads);
    (void)submit_ready_chunk(s);
}

/* Makes an unopened block, which takes ownership of the stored value. NULL after a message. */
static struct open_block *take_block(struct output_chunker *s, struct stored_block *queued)
{
    struct bam_block stored;
    if (!merge_bound_is_sound(queued->key_bytes) ||
        bam_block_parse(queued->value, queued->value_bytes, &stored) < 0) {
        (void)stored_block_report_entry(queued->dir);
        return NULL;
    }
    const struct merge_limit first = {queued->key, queued->key_bytes};
    const struct merge_limit last = {stored.last_bound, stored.last_bound_bytes};
    struct open_block *block = xcalloc(1, sizeof *block);
    block->output_chunker = s;
    block->n_users = 1;
    block->dir = queued->dir;
    block->value = queued->value;
    block->value_bytes = queued->value_bytes;
    queued->value = NULL;
    block->raw_bytes = stored.raw_bytes;
    block->grown_bytes = stored.raw_bytes + stored.n_records * s->record_growth;
    merge_bound_copy(&block->last, stored.n_records == 1 ? &first : &last);
    merge_bound_position(queued->key, queued->key_bytes, &block->source.run,
                         &block->source.first_index);
    thread_pool_lock(s->sort->threads);
    count_block(block, block->grown_bytes - block->raw_bytes + expect_entries(s, queued, &stored));
    thread_pool_unlock(s->sort->threads);
    return block;
}

struct open_block *output_chunker_open_block(struct output_chunker *s, struct stored_block *queued)
{
    struct open_block *block = take_block(s, queued);
    if (!block) return NULL;
    thread_pool_lock(s->sort->threads);
    *s->last_unopened = block;
    s->last_unopened = &block->next_unopened;
    thread_pool_unlock(s->sort->threads);
    (void)thread_pool_submit(s->sort->threads, open_block_job, block);
    return block;
}

/* ---- blocks of records that were read ---- */

/* Adds the checked records of a block to the sum, and marks duplicates among them. Returns 0, or -1
   after a message. */
static int mark_records(struct output_chunker *s, struct open_block *block,
                        struct input_records *records, size_t *raw_bytes)
{
    const struct markdup_rules *rules = s->sort->rules.duplicates;
    uint8_t *end = block->raw + *raw_bytes;
    for (uint8_t *rec = block->raw; rec < end; rec += bam_record_bytes(rec))
        duplicate_sum_add_input(rules, &records->sum, rec);
    records->problem.text = NULL;
    return mark_duplicates(s, block, records->span->n_records, raw_bytes);
}

/* Makes the entries of the block's records, and adds these to the sum unless that was done. Returns
   0, or -1 with *problem if a record has no key. */
static int index_records(struct output_chunker *s, struct open_block *block, size_t raw_bytes,
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

/* Copies the name of a bad read, because the record is freed before the message. */
static void keep_read_name(struct input_records *records)
{
    if (!records->problem.read_name) return;
    (void)snprintf(records->read_name, sizeof records->read_name, "%s",
                   records->problem.read_name);
    records->problem.read_name = records->read_name;
}

struct open_block *output_chunker_adopt_records(struct output_chunker *s,
                                                struct input_records *records)
{
    struct open_block *block = xcalloc(1, sizeof *block);
    block->output_chunker = s;
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

void output_chunker_count_adopted(struct open_block *block)
{
    count_block(block, block->entry_bytes);
}

/* ---- output chunks ---- */

struct output_chunk *output_chunk_create(struct output_chunker *s, const struct merge_limit *low,
                                         const struct merge_limit *high,
                                         struct open_block *const *blocks, size_t n)
{
    struct output_chunk *output_chunk = xcalloc(1, sizeof *output_chunk);
    output_chunk->output_chunker = s;
    merge_bound_copy(&output_chunk->low, low);
    merge_bound_copy(&output_chunk->high, high);
    output_chunk->blocks = xmemdup(blocks, n * sizeof *blocks);
    output_chunk->n_blocks = n;
    thread_pool_lock(s->sort->threads);
    for (size_t i = 0; i < n; i++) blocks[i]->n_users++;
    thread_pool_unlock(s->sort->threads);
    return output_chunk;
}

int output_chunker_merge(struct output_chunker *s, struct output_chunk *output_chunk)
{
    thread_pool_lock(s->sort->threads);
    *s->last_waiting = output_chunk;
    s->last_waiting = &output_chunk->next;
    thread_pool_unlock(s->sort->threads);
    return submit_ready_chunk(s);
}

void output_chunk_drop_blocks(struct output_chunk *output_chunk)
{
    for (size_t i = 0; i < output_chunk->n_blocks; i++)
        output_chunker_drop_block(output_chunk->blocks[i]);
    output_chunk->n_blocks = 0;
}

void output_chunk_destroy(struct output_chunk *output_chunk)
{
    free(output_chunk->blocks);
    merge_bound_release(&output_chunk->low);
    merge_bound_release(&output_chunk->high);
    for (unsigned i = 0; i < MOST_OUTPUTS; i++) chunk_encoder_release(&output_chunk->outputs[i]);
    observed_parts_discard(&output_chunk->observed);
    free(output_chunk);
}

/* ---- merging an output chunk ---- */

/* The part of a source that belongs to the output chunk. */
static struct merge_slice slice_of(const struct output_chunk *output_chunk,
                                   const struct merge_source *source)
{
    const struct sort_rules *rules = &output_chunk->output_chunker->sort->rules;
    const struct merge_limit low = merge_limit_of(&output_chunk->low);
    const struct merge_limit high = merge_limit_of(&output_chunk->high);
    size_t from = low.bytes ? merge_cut(rules, source, &low) : 0;
    size_t to = merge_cut(rules, source, &high);
    return (struct merge_slice){source->entries + from, to - from};
}

/* True if the records are in order and within the output chunk's bounds. The checksum of all
   records does not depend on order, so it cannot detect such an error. */
static bool is_in_order(const struct output_chunk *output_chunk, const struct sort_entry *merged,
                        size_t n)
{
    const struct sort_rules *rules = &output_chunk->output_chunker->sort->rules;
    const struct merge_limit low = merge_limit_of(&output_chunk->low);
    const struct merge_limit high = merge_limit_of(&output_chunk->high);
    return n == 0 || (merge_is_sorted(rules, merged, n) &&
                      (!low.bytes || merge_compare(rules, merged, &low) >= 0) &&
                      (!high.bytes || merge_compare(rules, merged + n - 1, &high) <= 0));
}

/* Merges the output chunk and writes its output. Returns 0, or -1 after a message. */
static int merge_chunk(struct output_chunk *output_chunk, struct worker *worker,
                       struct content_sum *sum)
{
    struct output_chunker *s = output_chunk->output_chunker;
    const struct sort_context *sort = s->sort;
    size_t n_sources = output_chunk->n_blocks + s->n_kept;
    struct output_chunk_scratch *scratch = worker_scratch(worker, &scratch_kind);
    const struct sort_entry *merged;
    xgrow(&scratch->slices, &scratch->slices_room, n_sources, n_sources, sizeof *scratch->slices);
    for (size_t i = 0; i < output_chunk->n_blocks; i++)
        scratch->slices[i] = slice_of(output_chunk, &output_chunk->blocks[i]->source);
    for (size_t i = 0; i < s->n_kept; i++)
        scratch->slices[output_chunk->n_blocks + i] = slice_of(output_chunk, &s->kept[i]);
    size_t n = merge_slices(&sort->rules, scratch->slices, n_sources,
                            worker_merge_space(worker), &merged);
    if (!is_in_order(output_chunk, merged, n)) {
        diag_error("the output would not be in order: the memory of this machine may be faulty; "
                   "if it is not, please report this");
        return -1;
    }
    observed_parts_begin(&output_chunk->observed, &sort->observers_out);
    struct chunk_records records = {
        .rules = &sort->rules, .header = sort->header, .split = sort->output.plan,
        .entries = merged, .n_entries = n, .sum = sum,
        .observed = &output_chunk->observed,
    };
    int r = 0;
    for (unsigned i = 0; r == 0 && i < sort->output.n_files; i++) {
        records.is_first = i == 0;
        r = chunk_encoder_make(&output_chunk->outputs[i], &s->forms[i], &records, worker);
    }
    return observed_parts_end(&output_chunk->observed) < 0 ? -1 : r;
}

/* With the lock held: updates `expansion` from the lines or largest column batch, or the output if
   that is larger. */
static void remember_expansion(const struct output_chunk *output_chunk)
{
    size_t n_bytes = 0;
    for (unsigned i = 0; i < MOST_OUTPUTS; i++) {
        const struct chunk_encoder *out = &output_chunk->outputs[i];
        if (out->large_bytes == 0) continue;
        n_bytes += out->large_bytes > out->n_bytes ? out->large_bytes : out->n_bytes;
    }
    if (n_bytes > 0)
        output_chunk->output_chunker->expansion = (double)n_bytes / (double)output_chunk->raw_bytes;
}

static void output_chunk_job(struct worker *worker, void *arg)
{
    struct output_chunk *output_chunk = arg;
    struct output_chunker *s = output_chunk->output_chunker;
    struct threads *threads = s->sort->threads;
    struct content_sum sum = {0};
    if (!thread_pool_failed(threads) && merge_chunk(output_chunk, worker, &sum) < 0)
        thread_pool_fail(threads);
    output_chunk->n_records = sum.n_records;
    output_chunk->raw_bytes = sum.n_bytes;
    thread_pool_lock(threads);
    output_chunk_drop_blocks(output_chunk);
    content_sum_join(&s->sum, &sum);
    remember_expansion(output_chunk);
    output_chunk->done = true;
    thread_pool_unlock(threads);
}
