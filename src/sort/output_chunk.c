/*
 * output_chunk.c -- see output_chunk.h.
 *
 * To open a block, a job verifies its checksum, decompresses it and makes the entries of its
 * records. To merge an output chunk, a job finds its slice of every open block and sort buffer by
 * two binary searches each, merges the slices, and encodes the records (chunk_encoder.h) for each
 * output in turn.
 */
#include "sort/output_chunk.h"

#include "input/record_entries.h"
#include "markdup/duplicate_tags.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* Initial estimate of `expansion`. For short reads columns take 1.5 times the size of the records;
   for arrays of small numbers, columns and lines take 5 times that. 4 still leaves each worker an
   output chunk to merge. */
enum { FIRST_EXPANSION = 4 };

void output_chunker_init(struct output_chunker *s, struct sort_context *sort, size_t chunk_bytes)
{
    *s = (struct output_chunker){.sort = sort, .expansion = FIRST_EXPANSION,
                                 .record_growth = markdup_usual_growth(sort->markdup)};
    for (unsigned i = 0; i < sort->output.n_files; i++)
        /* Output chunks, above all the last one, may be larger than planned. */
        sort->output.files[i].column_batch_bytes = 2 * chunk_bytes;
    s->last_waiting = &s->waiting;
}

/* ---- blocks ---- */

static struct open_block *new_block(struct output_chunker *s, uint32_t run, uint64_t first_index)
{
    struct open_block *block = xcalloc(1, sizeof *block);
    *block = (struct open_block){.output_chunker = s, .n_users = 1,
                                 .source = {.run = run, .first_index = first_index}};
    return block;
}

void output_chunker_drop_block(struct open_block *block)
{
    if (--block->n_users > 0) return;
    block->output_chunker->block_bytes -= block->n_bytes;
    stored_block_free(block->stored);
    free(block->memory);
    free(block->index);
    merge_bound_release(&block->last);
    free(block);
}

void output_chunker_count(struct open_block *block, size_t index_bytes)
{
    size_t n_bytes = block->grown_bytes + index_bytes + block->last.n_bytes;
    block->output_chunker->block_bytes += n_bytes - block->n_bytes;
    block->n_bytes = n_bytes;
}

/* Marks duplicates among the records. Tags may enlarge them: updates `records`, which the block
   owns. Returns 0, or -1 after a message. */
static int mark_duplicates(struct open_block *block, struct marked_records *records)
{
    const struct markdup *markdup = block->output_chunker->sort->markdup;
    const uint8_t *before = records->bytes;
    if (!markdup) return 0;
    if (markdup_mark(markdup, block->source.run, block->source.first_index, records) < 0)
        return -1;
    if (records->bytes == before) return 0;
    free(block->memory);
    block->memory = records->bytes;
    return 0;
}

/* Makes the entries of the records, and keyed_bytes of keys unless these are fixed. sum,
   any_placed: as in record_entries.h. Returns the bytes of entries and keys. */
static size_t make_entries(struct open_block *block, const struct marked_records *records,
                           size_t keyed_bytes, struct content_sum *sum, bool *any_placed)
{
    const struct sort_rules *rules = &block->output_chunker->sort->rules;
    uint8_t *raw = records->bytes, *end = raw + records->n_bytes;
    size_t entries_bytes = records->n * sizeof *block->index;
    block->index = xmalloc(entries_bytes + keyed_bytes);
    block->source.entries = block->index;
    block->source.n_entries = records->n;
    if (sort_order_is_fixed(rules->order)) {
        record_entries_make(rules, raw, end, block->index, sum);
        return entries_bytes;
    }
    uint8_t *keyed = (uint8_t *)(block->index + records->n);
    record_entries_make_keyed(rules, raw, end, keyed, sum, any_placed);
    (void)keyed_records_entries(keyed, records->n, block->index);
    return entries_bytes + keyed_bytes;
}

/* ---- blocks of runs, and of sort buffers ---- */

/* Estimates the memory of a stored block besides its records: the value, which also counts when the
   block is open, because RocksDB may have a copy; the entries; and the keys, each as long as the
   longer bound, but together at most twice the bytes of the records. */
static size_t expect_index(const struct sort_rules *rules, const struct stored_block *stored)
{
    const struct bam_block *parsed = &stored->parsed;
    size_t bound_bytes = stored->key_bytes > parsed->last_bound_bytes ? stored->key_bytes
                                                                    : parsed->last_bound_bytes;
    size_t keyed_bytes = parsed->n_records *
                         keyed_record_bytes(bound_bytes - MERGE_BOUND_TAIL_BYTES);
    if (sort_order_is_fixed(rules->order)) keyed_bytes = 0;
    if (keyed_bytes > 2 * parsed->raw_bytes) keyed_bytes = 2 * parsed->raw_bytes;
    return stored->value_bytes + parsed->n_records * sizeof(struct sort_entry) + keyed_bytes;
}

/* Unpacks and indexes a stored block. Returns 0, or -1 after a message. */
static int open_stored(struct open_block *block, struct temp_coder *coder)
{
    const struct sort_context *sort = block->output_chunker->sort;
    struct stored_block *stored = block->stored;
    size_t keyed_bytes, value_bytes = stored->value_bytes;
    bool any_placed = false;
    block->memory = stored_block_unpack(stored, &sort->rules, sam_hdr_nref(sort->header), coder,
                                        &keyed_bytes);
    struct marked_records records = {block->memory, stored->parsed.raw_bytes,
                                     stored->parsed.n_records};
    if (!block->memory || mark_duplicates(block, &records) < 0) return -1;
    size_t index_bytes = make_entries(block, &records, keyed_bytes, NULL, &any_placed);
    block->stored = NULL;
    stored_block_free(stored);
    thread_pool_lock(sort->threads);
    /* The dispatcher reads grown_bytes, which must not change. */
    output_chunker_count(block,
                         value_bytes + index_bytes + records.n_bytes - block->grown_bytes);
    thread_pool_unlock(sort->threads);
    return 0;
}

/* Marks duplicates through the entries, which point into a sort buffer. */
static int open_kept(const struct open_block *block)
{
    const struct sort_context *sort = block->output_chunker->sort;
    const struct merge_source *source = &block->source;
    struct found_marks found = {0};
    int r = markdup_find(sort->markdup, source->run, source->first_index, source->n_entries,
                         &found);
    for (size_t i = 0; i < source->n_entries && r == 0; i++)
        if (found_marks_have(&found, i)) {
            const uint8_t *rec = sort_entry_record(sort->rules.order, &source->entries[i]);
            (void)put_u16((uint8_t *)(uintptr_t)rec + BAM_FLAG_AT,
                          bam_record_flag(rec) | BAM_FDUP);
        }
    found_marks_release(&found);
    return r;
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
    if (!output_chunk) return NULL;
    for (; output_chunk->n_opened < output_chunk->n_blocks; output_chunk->n_opened++)
        if (!output_chunk->blocks[output_chunk->n_opened]->opened) return NULL;
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
    if (!thread_pool_failed(threads) &&
        (block->stored ? open_stored(block, &scratch->coder) : open_kept(block)) < 0)
        thread_pool_fail(threads);
    thread_pool_lock(threads);
    block->opened = true;
    thread_pool_unlock(threads);
    (void)submit_ready_chunk(s);
}

struct open_block *output_chunker_open_block(struct output_chunker *s, struct stored_block *stored)
{
    const struct bam_block *parsed = &stored->parsed;
    struct open_block *block = new_block(s, stored->run, stored->first_index);
    const struct merge_bound first = {stored->key, stored->key_bytes};
    const struct merge_bound last = {parsed->last_bound, parsed->last_bound_bytes};
    merge_bound_copy(&block->last, parsed->n_records == 1 ? &first : &last);
    block->stored = stored;
    block->grown_bytes = parsed->raw_bytes + parsed->n_records * s->record_growth;
    thread_pool_lock(s->sort->threads);
    output_chunker_count(block, expect_index(&s->sort->rules, stored));
    thread_pool_unlock(s->sort->threads);
    (void)thread_pool_submit(s->sort->threads, open_block_job, block);
    return block;
}

struct open_block *output_chunker_keep(struct output_chunker *s, const struct merge_source *source)
{
    struct open_block *block = new_block(s, source->run, source->first_index);
    block->source = *source;
    block->opened = !s->sort->markdup;
    merge_bound_set(&block->last, s->sort->rules.order, source, source->n_entries - 1);
    if (!block->opened) (void)thread_pool_submit(s->sort->threads, open_block_job, block);
    return block;
}

/* ---- blocks of inputs ---- */

/* Checks that the records of a block are in order. */
static int check_order(const struct open_block *block, const char *input)
{
    const struct sort_context *sort = block->output_chunker->sort;
    const struct merge_source *source = &block->source;
    if (merge_is_sorted(&sort->rules, source->entries, source->n_entries)) return 0;
    size_t i = 1;
    while (merge_is_sorted(&sort->rules, source->entries + i - 1, 2)) i++;
    order_violation_print(&sort->rules, sort->header, input, &source->entries[i - 1],
                          &source->entries[i], source->first_index + i);
    return -1;
}

/* Checks the records of a span, marks duplicates among them, adds them to *sum, and makes their
   entries. Returns the bytes of these, or -1 after a message or with *problem. */
static ssize_t index_span(struct open_block *block, const struct record_span *span,
                          struct content_sum *sum, bool *any_placed, struct record_problem *problem)
{
    const struct sort_context *sort = block->output_chunker->sort;
    const struct sort_rules *rules = &sort->rules;
    const uint8_t *end = record_entries_check(rules, sam_hdr_nref(sort->header), span->from,
                                              span->to, span->first_record, problem);
    if (!end) return -1;
    *problem = (struct record_problem){.text = NULL};
    struct marked_records records = {span->from, (size_t)(end - span->from), span->n_records};
    if (sort->markdup)
        for (uint8_t *rec = span->from; rec < end; rec += bam_record_bytes(rec))
            duplicate_sum_add_input(rules->duplicates, sum, rec);
    if (mark_duplicates(block, &records) < 0) return -1;
    ssize_t keyed_bytes = 0;
    if (!sort_order_is_fixed(rules->order))
        keyed_bytes = record_entries_measure(rules, records.bytes, records.bytes + records.n_bytes,
                                             span->first_record, problem);
    if (keyed_bytes < 0) return -1;
    block->grown_bytes = records.n_bytes;
    return (ssize_t)make_entries(block, &records, (size_t)keyed_bytes,
                                 sort->markdup ? NULL : sum, any_placed);
}

int output_chunker_make_block(void *arg, struct worker *worker, struct queued_span *span,
                              const char *input)
{
    struct output_chunker *s = arg;
    const struct sort_context *sort = s->sort;
    struct open_block *block = new_block(s, span->input, span->records.first_record);
    struct content_sum sum = {0};
    struct record_problem problem;
    bool any_placed = false;
    (void)worker;
    block->opened = true;
    block->memory = record_span_take_memory(&span->records);
    ssize_t index_bytes = index_span(block, &span->records, &sum, &any_placed, &problem);
    if (index_bytes < 0 && problem.text) record_problem_print(&problem, input);
    thread_pool_lock(sort->threads);
    if (index_bytes < 0) {
        output_chunker_drop_block(block);
    } else {
        span->made = block;
        load_totals_add(sort->totals, &sum, any_placed);
    }
    thread_pool_unlock(sort->threads);
    if (index_bytes < 0) return -1;
    span->made_bytes = (size_t)index_bytes;
    merge_bound_set(&block->last, sort->rules.order, &block->source, block->source.n_entries - 1);
    return check_order(block, input);
}

void output_chunker_drop_made(void *arg, void *made)
{
    (void)arg;
    output_chunker_drop_block(made);
}

/* ---- output chunks ---- */

struct output_chunk *output_chunk_create(struct output_chunker *s, const struct merge_bound *low,
                                         const struct merge_bound *high,
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

/* With the lock held, or all threads done. */
static void drop_blocks(struct output_chunk *output_chunk)
{
    for (size_t i = 0; i < output_chunk->n_blocks; i++)
        output_chunker_drop_block(output_chunk->blocks[i]);
    output_chunk->n_blocks = 0;
}

void output_chunk_destroy(struct output_chunk *output_chunk)
{
    drop_blocks(output_chunk);
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
    size_t from = output_chunk->low.bytes ? merge_cut(rules, source, &output_chunk->low) : 0;
    size_t to = merge_cut(rules, source, &output_chunk->high);
    return (struct merge_slice){source->entries + from, to - from};
}

/* True if the records are in order and within the output chunk's bounds. The checksum of all
   records does not depend on order, so it cannot detect such an error. */
static bool is_in_order(const struct output_chunk *output_chunk, const struct sort_entry *merged,
                        size_t n)
{
    const struct sort_rules *rules = &output_chunk->output_chunker->sort->rules;
    const struct merge_bound *low = &output_chunk->low, *high = &output_chunk->high;
    return n == 0 || (merge_is_sorted(rules, merged, n) &&
                      (!low->bytes || merge_compare(rules, merged, low) >= 0) &&
                      (!high->bytes || merge_compare(rules, merged + n - 1, high) <= 0));
}

/* Merges the output chunk and writes its output. Returns 0, or -1 after a message. */
static int merge_chunk(struct output_chunk *output_chunk, struct worker *worker)
{
    struct sort_context *sort = output_chunk->output_chunker->sort;
    size_t n_slices = 0;
    struct output_chunk_scratch *scratch = worker_scratch(worker, &scratch_kind);
    const struct sort_entry *merged;
    xgrow(&scratch->slices, &scratch->slices_room, output_chunk->n_blocks, output_chunk->n_blocks,
          sizeof *scratch->slices);
    for (size_t i = 0; i < output_chunk->n_blocks; i++) {
        const struct merge_source *source = &output_chunk->blocks[i]->source;
        struct merge_slice slice = slice_of(output_chunk, source);
        struct merge_slice *last = n_slices > 0 ? &scratch->slices[n_slices - 1] : NULL;
        bool same_run = last && source->run == output_chunk->blocks[i - 1]->source.run;
        if (same_run && last->entries + last->n_entries == slice.entries)
            last->n_entries += slice.n_entries;         /* two parts of a sort buffer */
        else
            scratch->slices[n_slices++] = slice;
    }
    size_t n = merge_slices(&sort->rules, scratch->slices, n_slices, worker_merge_space(worker),
                            &merged);
    if (!is_in_order(output_chunk, merged, n)) {
        diag_error("the output would not be in order: the memory of this machine may be faulty; "
                   "if it is not, please report this");
        return -1;
    }
    observed_parts_begin(&output_chunk->observed, &sort->observers_out);
    struct chunk_records records = {
        .rules = &sort->rules, .header = sort->header, .split = sort->split,
        .entries = merged, .n_entries = n, .sum = &output_chunk->sum,
        .observed = &output_chunk->observed,
    };
    int r = 0;
    for (unsigned i = 0; r == 0 && i < sort->output.n_files; i++) {
        records.output = i;
        r = chunk_encoder_make(&output_chunk->outputs[i], &sort->output.files[i], &records, worker);
    }
    return observed_parts_end(&output_chunk->observed) < 0 ? -1 : r;
}

/* With the lock held: updates `expansion` from the size of the lines or of the largest column
   batch, or from that of the output if it is larger. */
static void remember_expansion(const struct output_chunk *output_chunk)
{
    size_t n_bytes = 0;
    for (unsigned i = 0; i < MOST_OUTPUTS; i++) {
        const struct chunk_encoder *out = &output_chunk->outputs[i];
        if (out->large_bytes == 0) continue;
        n_bytes += out->large_bytes > out->n_bytes ? out->large_bytes : out->n_bytes;
    }
    if (n_bytes > 0)
        output_chunk->output_chunker->expansion =
            (double)n_bytes / (double)output_chunk->sum.n_bytes;
}

static void output_chunk_job(struct worker *worker, void *arg)
{
    struct output_chunk *output_chunk = arg;
    struct threads *threads = output_chunk->output_chunker->sort->threads;
    if (!thread_pool_failed(threads) && merge_chunk(output_chunk, worker) < 0)
        thread_pool_fail(threads);
    thread_pool_lock(threads);
    drop_blocks(output_chunk);
    remember_expansion(output_chunk);
    output_chunk->done = true;
    thread_pool_unlock(threads);
}
