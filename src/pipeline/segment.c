/*
 * segment.c -- jobs of the merge phase: opening blocks, merging segments.
 *
 * To open a block is to verify its checksum, decompress it and build the entries of its records. To
 * merge a segment is to find its slice of every open block and every batch by two binary searches
 * each, to merge the slices, and to copy the records, in order, into BGZF payloads that are
 * deflated at once (or, for SAM and CRAM, one behind the other).
 */
#include "pipeline/merge.h"

#include "util/diag.h"
#include "util/grow.h"

#include <inttypes.h>
#include <stdlib.h>

void free_block(struct open_block *block)
{
    free(block->value);
    free(block->raw);
    free(block->keyed);
    free(block->last_bound);
    free(block);
}

void drop_block(struct merger *m, struct open_block *block)
{
    if (--block->n_users > 0) return;
    m->block_bytes -= block->n_bytes;
    free_block(block);
}

void free_segment(struct segment *segment)
{
    free(segment->low.key);
    free(segment->high.key);
    free(segment->blocks);
    free(segment->out);
    bam_index_part_release(&segment->part);
    free(segment);
}

/* ---- opening blocks ---- */

/* Verifies, decompresses and indexes a block. Returns 0, or -1 after a message. */
static int open_block(struct merger *m, struct worker *worker, struct open_block *block)
{
    size_t n = block->block.n_records, raw_bytes = block->raw_bytes;
    size_t entries_at = (raw_bytes + 15) & ~(size_t)15;
    block->raw = malloc(entries_at + n * sizeof(struct sort_entry));
    if (!block->raw) return pipeline_no_memory(m->p);
    struct sort_entry *entries = (struct sort_entry *)(block->raw + entries_at);
    block->source.entries = entries;
    block->source.n_entries = n;
    ssize_t keyed_bytes = -1;
    if (bam_block_verify(block->value, block->value_bytes) &&
        temp_codec_decompress(&worker->temp, block->block.codec, block->block.payload,
                              block->block.payload_bytes, block->raw, raw_bytes) == 0)
        keyed_bytes = bam_block_measure(&m->p->rules, &block->block, block->raw, m->p->n_refs);
    if (keyed_bytes < 0) {
        diag_damaged("the temporary data in '%s' are damaged: run %" PRIu32 " fails its checksum; "
                     "sort again on another disk", block->dir, block->source.run);
        return -1;
    }
    free(block->value);
    block->value = NULL;
    const uint8_t *rec = block->raw;
    if (sort_order_is_fixed(m->order)) {
        for (size_t i = 0; i < n; i++, rec += bam_record_bytes(rec))
            entries[i] = (struct sort_entry){sort_key_fixed(&m->p->rules, rec), rec};
        return 0;
    }
    block->keyed = malloc((size_t)keyed_bytes);
    if (!block->keyed) return pipeline_no_memory(m->p);
    uint8_t *at = block->keyed;
    for (size_t i = 0; i < n; i++, rec += bam_record_bytes(rec)) {
        struct keyed_record *kr = (struct keyed_record *)at;
        kr->record = rec;
        kr->key_bytes = (uint32_t)sort_key_encode(&m->p->rules, rec, kr->key);
        at += keyed_record_bytes(kr->key_bytes);
        entries[i] = (struct sort_entry){0, kr};
    }
    return 0;
}

static void segment_job(struct pipeline *p, struct worker *worker, void *arg);

/* With the lock held: takes the first waiting segment whose blocks are all open, or NULL. */
static struct segment *take_ready_segment(struct merger *m)
{
    struct segment *segment = m->waiting;
    if (!segment || segment->n_blocks_needed > m->n_opened) return NULL;
    m->waiting = segment->next;
    if (!m->waiting) m->last_waiting = &m->waiting;
    return segment;
}

int submit_ready_segments(struct merger *m)
{
    for (;;) {
        pipeline_lock(m->p);
        struct segment *segment = take_ready_segment(m);
        pipeline_unlock(m->p);
        if (!segment) return 0;
        if (pipeline_submit(m->p, segment_job, segment) < 0) return -1;
    }
}

void open_block_job(struct pipeline *p, struct worker *worker, void *arg)
{
    struct open_block *block = arg;
    struct merger *m = block->merger;
    if (!pipeline_failed(p) && open_block(m, worker, block) < 0) pipeline_fail(p);
    pipeline_lock(p);
    block->opened = true;
    while (m->unopened && m->unopened->opened) {
        m->unopened = m->unopened->next_unopened;
        m->n_opened++;
    }
    if (!m->unopened) m->last_unopened = &m->unopened;
    pipeline_unlock(p);
    (void)submit_ready_segments(m);
}

/* ---- merging a segment ---- */

/* Room for n_bytes more. The first buffer is as large as those of earlier segments came to be:
   growing it step by step would copy all output twice. */
static int reserve_out(struct segment *segment, size_t n_bytes)
{
    if (segment->out_room - segment->out_bytes >= n_bytes) return 0;
    size_t hint = atomic_load_explicit(&segment->merger->out_bytes_hint, memory_order_relaxed);
    size_t room = segment->out_bytes + n_bytes + segment->out_room / 2;
    if (room < hint) room = hint;
    return grow_array(&segment->out, &segment->out_room, room, 0, 1);
}

static void remember_out_bytes(const struct segment *segment)
{
    struct merger *m = segment->merger;
    /* Two workers may overwrite each other's hint: it is only a hint. */
    if (segment->out_bytes > atomic_load_explicit(&m->out_bytes_hint, memory_order_relaxed))
        atomic_store_explicit(&m->out_bytes_hint, segment->out_bytes + BGZF_MAX_BYTES,
                              memory_order_relaxed);
}

/*
 * A BGZF payload being gathered: in the worker's buffer, or at level 0 right where the stored block
 * will stand in the segment's output.
 */
struct payload {
    struct segment *segment;
    struct worker *worker;
    uint8_t *bytes;             /* NULL: not begun */
    size_t n_bytes;
};

static int begin_payload(struct payload *payload)
{
    struct segment *segment = payload->segment;
    if (reserve_out(segment, BGZF_MAX_BYTES) < 0) return -1;
    payload->n_bytes = 0;
    if (segment->merger->p->settings->level == 0) {
        payload->bytes = segment->out + segment->out_bytes + BGZF_STORED_OFFSET;
        return 0;
    }
    if (worker_reserve_raw(payload->worker, BGZF_PAYLOAD_BYTES) < 0) return -1;
    payload->bytes = payload->worker->raw;
    return 0;
}

/* Makes a BGZF block of the payload, if there is any. */
static int end_payload(struct payload *payload)
{
    struct segment *segment = payload->segment;
    int level = segment->merger->p->settings->level;
    if (!payload->bytes || payload->n_bytes == 0) return 0;
    uint8_t *out = segment->out + segment->out_bytes;
    ssize_t n = level == 0 ? (ssize_t)bgzf_block_store(out, payload->n_bytes)
                           : bgzf_block_deflate(&payload->worker->bgzf, level, payload->bytes,
                                                payload->n_bytes, out);
    if (n < 0) return -1;
    segment->out_bytes += (size_t)n;
    payload->bytes = NULL;
    return 0;
}

/* Adds a record, as it is or as a line; as htslib does, what does not fit begins a new block. */
static int add_to_payload(struct payload *payload, const uint8_t *rec, const uint8_t *bytes,
                          size_t n_bytes)
{
    struct segment *segment = payload->segment;
    if (payload->bytes && payload->n_bytes + n_bytes > BGZF_PAYLOAD_BYTES &&
        end_payload(payload) < 0)
        return -1;
    if (segment->merger->p->index) {
        uint64_t begin = bam_index_voffset(segment->out_bytes,
                                           payload->bytes ? payload->n_bytes : 0);
        if (bam_index_part_add(&segment->part, rec, begin) < 0) return -1;
    }
    for (;;) {
        if (!payload->bytes && begin_payload(payload) < 0) return -1;
        size_t n = n_bytes < BGZF_PAYLOAD_BYTES ? n_bytes : BGZF_PAYLOAD_BYTES;
        memcpy(payload->bytes + payload->n_bytes, bytes, n);
        payload->n_bytes += n;
        bytes += n;
        n_bytes -= n;
        if (n_bytes == 0) return 0;
        if (end_payload(payload) < 0) return -1;
    }
}

enum { PREFETCH = 8 };          /* records ahead: 8 x 350 bytes are on their way from memory */

static inline const uint8_t *next_record(enum sort_order order, const struct sort_entry *entries,
                                         size_t i, size_t n)
{
    if (i + PREFETCH < n) {
        const uint8_t *ahead = sort_entry_record(order, &entries[i + PREFETCH]);
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + 64);
    }
    const uint8_t *rec = sort_entry_record(order, &entries[i]);
    /* Nobody else looks at this record any more: keys lie elsewhere. */
    sort_rules_restore(order, (uint8_t *)(uintptr_t)rec);
    return rec;
}

static int add_to_output(struct segment *segment, const uint8_t *bytes, size_t n_bytes)
{
    if (reserve_out(segment, n_bytes) < 0) return -1;
    memcpy(segment->out + segment->out_bytes, bytes, n_bytes);
    segment->out_bytes += n_bytes;
    return 0;
}

/* The records as BGZF blocks of BAM. */
static int emit_blocks(struct segment *segment, struct worker *worker,
                       const struct sort_entry *entries, size_t n, struct content_sum *sum)
{
    enum sort_order order = segment->merger->order;
    struct payload payload = {.segment = segment, .worker = worker};
    for (size_t i = 0; i < n; i++) {
        const uint8_t *rec = next_record(order, entries, i, n);
        size_t rec_bytes = bam_record_bytes(rec);
        content_sum_add(sum, rec, rec_bytes);
        if (add_to_payload(&payload, rec, rec, rec_bytes) < 0) return -1;
    }
    return end_payload(&payload);
}

/* The records as lines of SAM, compressed or not. */
static int emit_lines(struct segment *segment, struct worker *worker,
                      const struct sort_entry *entries, size_t n, struct content_sum *sum)
{
    const struct merger *m = segment->merger;
    bool compressed = m->format->compression == bgzf;
    struct payload payload = {.segment = segment, .worker = worker};
    if (!worker->record) worker->record = bam_init1();
    if (!worker->record) return -1;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *rec = next_record(m->order, entries, i, n);
        kstring_t *line = &worker->line;
        content_sum_add(sum, rec, bam_record_bytes(rec));
        if (bam_record_unpack(rec, worker->record) < 0) return -1;
        if (sam_format1(m->p->header, worker->record, line) < 0) {
            diag_error("read '%s' cannot be written as SAM: its tags are damaged",
                       (const char *)bam_record_name(rec));
            return -1;
        }
        if (kputc('\n', line) < 0) return -1;
        const uint8_t *bytes = (const uint8_t *)line->s;
        int r = compressed ? add_to_payload(&payload, rec, bytes, line->l)
                           : add_to_output(segment, bytes, line->l);
        if (r < 0) return -1;
    }
    return end_payload(&payload);
}

/* The records in raw form, for htslib's CRAM writer. */
static int emit_records(struct segment *segment, const struct sort_entry *entries, size_t n,
                        struct content_sum *sum)
{
    enum sort_order order = segment->merger->order;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *rec = next_record(order, entries, i, n);
        size_t rec_bytes = bam_record_bytes(rec);
        content_sum_add(sum, rec, rec_bytes);
        if (add_to_output(segment, rec, rec_bytes) < 0) return -1;
    }
    return 0;
}

/* The part of a source that belongs to the segment. */
static struct merge_slice slice_of(const struct segment *segment, const struct merge_source *source)
{
    enum sort_order order = segment->merger->order;
    const struct bound *low = &segment->low, *high = &segment->high;
    size_t from = low->key ? merge_cut(order, source, low->key, low->n_bytes) : 0;
    size_t to = merge_cut(order, source, high->key, high->n_bytes);
    return (struct merge_slice){source->entries + from, to - from};
}

/* True if the records are in order, and between the segments before and behind. The sum over all
   records, which has no order, would not tell. */
static bool is_in_order(const struct segment *segment, const struct sort_entry *merged, size_t n)
{
    enum sort_order order = segment->merger->order;
    const struct bound *low = &segment->low, *high = &segment->high;
    return n == 0 ||
           (merge_is_sorted(order, merged, n) &&
            (!low->key || merge_compare(order, merged, low->key, low->n_bytes) >= 0) &&
            (!high->key || merge_compare(order, merged + n - 1, high->key, high->n_bytes) <= 0));
}

static int merge_segment(struct segment *segment, struct worker *worker, struct content_sum *sum)
{
    struct merger *m = segment->merger;
    size_t n_sources = segment->n_blocks + m->n_kept;
    const struct sort_entry *merged;
    if (worker_reserve_slices(worker, n_sources) < 0) return -1;
    for (size_t i = 0; i < segment->n_blocks; i++)
        worker->slices[i] = slice_of(segment, &segment->blocks[i]->source);
    for (size_t i = 0; i < m->n_kept; i++)
        worker->slices[segment->n_blocks + i] = slice_of(segment, &m->kept[i]);
    ssize_t n = merge_slices(m->order, worker->slices, n_sources, &worker->space, &merged);
    if (n < 0) return -1;
    if (!is_in_order(segment, merged, (size_t)n)) {
        diag_error("the output would not be in order: the memory of this machine may be faulty; "
                   "if it is not, please report this");
        return -1;
    }
    if (m->p->index) bam_index_part_init(&segment->part, bam_index_shape(m->p->index));
    int r;
    switch (m->format->format) {
    case bam: r = emit_blocks(segment, worker, merged, (size_t)n, sum); break;
    case sam: r = emit_lines(segment, worker, merged, (size_t)n, sum); break;
    default: r = emit_records(segment, merged, (size_t)n, sum);
    }
    if (m->p->index) bam_index_part_end(&segment->part, bam_index_voffset(segment->out_bytes, 0));
    return r;
}

static void segment_job(struct pipeline *p, struct worker *worker, void *arg)
{
    struct segment *segment = arg;
    struct merger *m = segment->merger;
    struct content_sum sum = {0};
    if (!pipeline_failed(p) && merge_segment(segment, worker, &sum) < 0)
        (void)pipeline_no_memory(p);
    remember_out_bytes(segment);
    segment->n_records = sum.n_records;
    segment->raw_bytes = sum.n_bytes;
    pipeline_lock(p);
    for (size_t i = 0; i < segment->n_blocks; i++) drop_block(m, segment->blocks[i]);
    segment->n_blocks = 0;
    content_sum_join(&p->sum_out, &sum);
    segment->done = true;
    pipeline_unlock(p);
}
