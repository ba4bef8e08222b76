/* run_writer.c -- see run_writer.h. */
#include "spill/run_writer.h"

#include "os/thread_pool.h"
#include "spill/bam_block.h"
#include "spill/sort_buffer.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* The header of each block in the buffer of a spill chunk; key and value follow. */
struct chunk_block {
    uint32_t key_bytes;
    uint32_t value_bytes;
};

struct spill_chunk {
    struct file_range *file;
    struct merge_slice *slices; /* one for each sort buffer */
    uint64_t first_index;       /* index in the run of the chunk's first record */
    size_t max_block_bytes;     /* largest block of several records, uncompressed and with the tags
                                   that they may get */
    uint8_t *blocks;            /* chunk_blocks; reused for the next chunk */
    size_t n_bytes, room;
    struct observed_parts parts;
    uint8_t *ordinals;          /* of the records of the next block, if needed */
    size_t ordinals_bytes, ordinals_room;
    bool done;                  /* under the lock */
};

/* The range of a run's keys in one file, and the thread that writes it. */
struct file_range {
    struct run_writer *run;
    unsigned number;
    size_t first_place, end_place;      /* of run->places: [first, end) */
    pthread_t thread;
    int result;
    size_t *cut_at;             /* end of the last chunk in each source; start of the range */
    uint64_t n_records;         /* records of the run before that end */
    size_t max_block_bytes;     /* the largest of the stored chunks */
    struct spill_chunk *ring;
    unsigned ring_at, ring_used;
};

struct run_writer {
    struct run_writer_settings settings;
    struct cut_place *places;
    size_t n_places;
    size_t n_sources;
    struct merge_source *sources;
    struct sort_buffer *const *buffers; /* one for each source */
    struct file_range *files;
    unsigned n_files;
    unsigned n_ring;            /* spill chunks of each */
    struct stored_run *stored;
};

struct chunk_scratch {
    struct temp_coder coder;
    struct merge_bound last;    /* of the last record of a block */
    uint8_t *raw;               /* records of the next block */
    size_t raw_room;
};

static void release_scratch(void *arg)
{
    struct chunk_scratch *scratch = arg;
    temp_coder_release(&scratch->coder);
    merge_bound_release(&scratch->last);
    free(scratch->raw);
}

static const struct scratch_kind scratch_kind = {sizeof(struct chunk_scratch), release_scratch};

/* Records [from, to) of a merged chunk, and their bytes. */
struct span {
    size_t from, to, raw_bytes;
};

/* Encodes a span as one block. scratch->raw holds its bytes. Returns 0, or -1 after a message. */
static int end_block(struct spill_chunk *chunk, struct chunk_scratch *scratch,
                     const struct merge_source *merged, struct span span)
{
    size_t from = span.from, to = span.to, raw_bytes = span.raw_bytes;
    const struct run_writer_settings *s = &chunk->file->run->settings;
    size_t grown_bytes = raw_bytes + (to - from) * s->record_growth;
    if (to - from > 1 && grown_bytes > chunk->max_block_bytes) chunk->max_block_bytes = grown_bytes;
    enum sort_order order = s->rules->order;
    struct merge_bound *last = &scratch->last;
    struct chunk_block block;
    merge_bound_release(last);
    if (to - from > 1) merge_bound_set(last, order, merged, to - 1);
    size_t key_bytes = merge_bound_bytes(order, &merged->entries[from]);
    size_t most = sizeof block + key_bytes + chunk->ordinals_bytes +
                  bam_block_bound(s->codec, raw_bytes, last->n_bytes);
    xgrow(&chunk->blocks, &chunk->room, chunk->n_bytes + most, chunk->room / 2, 1);
    uint8_t *at = chunk->blocks + chunk->n_bytes, *value = at + sizeof block + key_bytes;
    const struct bam_block content = {
        s->codec, (uint32_t)(to - from), raw_bytes, last->bytes, last->n_bytes,
        chunk->ordinals_bytes > 0 ? chunk->ordinals : NULL, .payload = scratch->raw,
    };
    ssize_t value_bytes = bam_block_encode(&scratch->coder, &content, value);
    if (value_bytes < 0) {
        diag_error("a block of temporary data cannot be compressed with %s; please report this",
                   temp_codec_name(s->codec));
        return -1;
    }
    block.key_bytes = (uint32_t)merge_bound_store(order, merged, from, at + sizeof block);
    block.value_bytes = (uint32_t)value_bytes;
    memcpy(at, &block, sizeof block);
    chunk->n_bytes += sizeof block + key_bytes + (size_t)value_bytes;
    chunk->ordinals_bytes = 0;
    return 0;
}

/* Shows a record that will be in the next block to the observers. Returns 0, or -1 after a
   message. */
static int show_record(struct spill_chunk *chunk, const uint8_t *rec, uint64_t index)
{
    const struct run_writer *run = chunk->file->run;
    struct observed_records one = {.all = {rec, rec + bam_record_bytes(rec)},
                                   .run = run->settings.label.run, .first_record = index};
    if (record_ordinals_are_needed(run->settings.rules)) {
        size_t at = chunk->ordinals_bytes, end = at + BAM_BLOCK_ORDINAL_BYTES;
        xgrow(&chunk->ordinals, &chunk->ordinals_room, end, end, 1);
        bam_block_put_ordinal(chunk->ordinals + at,
                              record_ordinal(run->buffers, run->n_sources, rec));
        one.ordinals = chunk->ordinals + at;
        chunk->ordinals_bytes = end;
    }
    return observed_parts_show(&chunk->parts, &one);
}

/* Prefetches a short read: a sort takes 4 % less CPU time. */
static inline void prefetch_record(const uint8_t *rec)
{
    for (size_t i = 0; i < 384; i += 64) __builtin_prefetch(rec + i);
}

/*
 * Merges a chunk and cuts it into blocks. A block ends before the record that would make it larger
 * than block_bytes, when all its records have their tags. So a larger record gets a block of its
 * own, which the merge need not hold until blocks of other runs arrive. Returns 0, or -1 after a
 * message.
 */
static int make_blocks(struct spill_chunk *chunk, struct worker *worker)
{
    enum { PREFETCH = 8 };
    const struct run_writer *run = chunk->file->run;
    const struct run_writer_settings *s = &run->settings;
    enum sort_order order = s->rules->order;
    struct chunk_scratch *scratch = worker_scratch(worker, &scratch_kind);
    struct merge_source merged = {.run = s->label.run, .first_index = chunk->first_index};
    merged.n_entries = merge_slices(s->rules, chunk->slices, run->n_sources,
                                    worker_merge_space(worker), &merged.entries);
    bool is_observed = s->observers->n > 0;
    size_t from = 0, raw_bytes = 0;
    for (size_t i = 0; i < merged.n_entries; i++) {
        if (i + PREFETCH < merged.n_entries)
            prefetch_record(sort_entry_record(order, &merged.entries[i + PREFETCH]));
        const uint8_t *rec = sort_entry_record(order, &merged.entries[i]);
        size_t rec_bytes = bam_record_bytes(rec);
        size_t most_bytes = raw_bytes + rec_bytes + (i + 1 - from) * s->record_growth;
        if (raw_bytes > 0 && most_bytes > s->block_bytes) {
            if (end_block(chunk, scratch, &merged, (struct span){from, i, raw_bytes}) < 0)
                return -1;
            from = i;
            raw_bytes = 0;
        }
        xgrow(&scratch->raw, &scratch->raw_room, raw_bytes + rec_bytes,
              (raw_bytes + rec_bytes) / 4, 1);
        memcpy(scratch->raw + raw_bytes, rec, rec_bytes);
        raw_bytes += rec_bytes;
        if (is_observed && show_record(chunk, rec, merged.first_index + i) < 0) return -1;
    }
    return end_block(chunk, scratch, &merged, (struct span){from, merged.n_entries, raw_bytes});
}

static void chunk_job(struct worker *worker, void *arg)
{
    struct spill_chunk *chunk = arg;
    struct threads *threads = chunk->file->run->settings.threads;
    chunk->n_bytes = 0;
    chunk->max_block_bytes = 0;
    chunk->ordinals_bytes = 0;
    observed_parts_begin(&chunk->parts, chunk->file->run->settings.observers);
    int r = thread_pool_failed(threads) ? -1 : make_blocks(chunk, worker);
    if (observed_parts_close(&chunk->parts, r) < 0) thread_pool_fail(threads);
    thread_pool_lock(threads);
    chunk->done = true;
    thread_pool_unlock(threads);
}

/* ---- storing chunks ---- */

/* Puts a block into the store, in parts if it is large. Returns 0, or a code of the store. */
static int put_block(const struct file_range *file, const struct chunk_block *block,
                     const uint8_t *key)
{
    const struct run_writer *run = file->run;
    const size_t block_bytes = run->settings.block_bytes;
    const uint8_t *value = key + block->key_bytes;
    uint8_t part_key[BAM_BLOCK_PART_KEY_BYTES];
    size_t most = bam_block_part_bytes(block_bytes, block->key_bytes, 0), left = block->value_bytes;
    size_t n = left < most ? left : most;
    int r = run_store_put(run->stored, file->number, key, block->key_bytes, value, n);
    for (uint32_t number = 1; r == 0 && (left -= n) > 0; number++) {
        value += n;
        most = bam_block_part_bytes(block_bytes, block->key_bytes, number);
        n = left < most ? left : most;
        size_t key_bytes = bam_block_part_key(key, block->key_bytes, number, part_key);
        r = run_store_put(run->stored, file->number, part_key, key_bytes, value, n);
    }
    return r;
}

/* Takes the oldest chunk of a file from the ring after its job has ended. */
static struct spill_chunk *take_oldest_chunk(struct file_range *file)
{
    struct threads *threads = file->run->settings.threads;
    struct spill_chunk *chunk = &file->ring[file->ring_at];
    thread_pool_lock(threads);
    while (!chunk->done) thread_pool_wait_for(threads, WAIT_SPILLER_WORKERS);
    thread_pool_unlock(threads);
    file->ring_at = (file->ring_at + 1) % file->run->n_ring;
    file->ring_used--;
    return chunk;
}

/* Waits for the oldest chunk and puts its blocks into the store. Returns 0, or a code of the store.
   */
static int store_oldest_chunk(struct file_range *file)
{
    const struct spill_chunk *chunk = take_oldest_chunk(file);
    if (thread_pool_failed(file->run->settings.threads)) return RUN_STORE_ERROR;
    if (chunk->max_block_bytes > file->max_block_bytes)
        file->max_block_bytes = chunk->max_block_bytes;
    int r = 0;
    for (const uint8_t *at = chunk->blocks, *end = at + chunk->n_bytes; at < end && r == 0;) {
        struct chunk_block block;
        memcpy(&block, at, sizeof block);
        at += sizeof block;
        r = put_block(file, &block, at);
        at += block.key_bytes + block.value_bytes;
    }
    return r;
}

/* Makes a chunk of the next records of a file, up to the bound, and submits it to a worker. Returns
   0, or a code of the store. */
static int start_chunk(struct file_range *file, const struct merge_bound *bound)
{
    struct run_writer *run = file->run;
    int r = file->ring_used == run->n_ring ? store_oldest_chunk(file) : 0;
    if (r < 0) return r;
    struct spill_chunk *chunk = &file->ring[(file->ring_at + file->ring_used) % run->n_ring];
    chunk->first_index = file->n_records;
    chunk->done = false;
    for (size_t i = 0; i < run->n_sources; i++) {
        const struct merge_source *source = &run->sources[i];
        size_t from = file->cut_at[i], to = merge_cut(run->settings.rules, source, bound);
        chunk->slices[i] = (struct merge_slice){source->entries + from, to - from};
        file->n_records += to - from;
        file->cut_at[i] = to;
    }
    if (file->n_records == chunk->first_index) return 0;
    file->ring_used++;
    if (thread_pool_submit(run->settings.threads, chunk_job, chunk) == 0) return 0;
    file->ring_used--;
    return RUN_STORE_ERROR;
}

/* Sets the bound to that at a place; at the end of all places, above all records. */
static void set_bound(const struct run_writer *run, size_t number, struct merge_bound *bound)
{
    const struct cut_place *place = &run->places[number];
    if (number == run->n_places)
        merge_bound_release(bound);
    else
        merge_bound_set(bound, run->settings.rules->order, place->source, place->index);
}

/* Makes the chunks of a file and stores them. Returns 0, or a code of the store. */
static int store_chunks(struct file_range *file)
{
    const struct run_writer *run = file->run;
    struct merge_bound bound = {0};
    size_t n_bytes = 0;
    int r = 0;
    for (size_t i = file->first_place; r == 0 && i < file->end_place; i++) {
        if (n_bytes >= run->settings.budget.spill_chunk_bytes) {
            set_bound(run, i, &bound);
            r = start_chunk(file, &bound);
            n_bytes = 0;
        }
        n_bytes += run->places[i].n_bytes;
    }
    set_bound(run, file->end_place, &bound);
    if (r == 0) r = start_chunk(file, &bound);
    while (r == 0 && file->ring_used > 0) r = store_oldest_chunk(file);
    merge_bound_release(&bound);
    return r;
}

/* ---- files ---- */

/* Writes a file of the run. When it returns, no worker has a chunk of this file. */
static void *write_file(void *arg)
{
    struct file_range *file = arg;
    struct run_writer *run = file->run;
    file->result = store_chunks(file);
    if (file->result == RUN_STORE_ERROR) thread_pool_fail(run->settings.threads);
    while (file->ring_used > 0) (void)take_oldest_chunk(file);
    return NULL;
}

/* Writes all files: the last one itself, each other one in a thread of its own or, if no thread can
   be started, itself. Returns 0, or a code of the store. */
static int write_files(struct run_writer *run)
{
    unsigned n_started = 0;
    int r = 0;
    while (n_started < run->n_files - 1 &&
           thread_start(&run->files[n_started].thread, "spiller", write_file,
                        &run->files[n_started]) == 0)
        n_started++;
    for (unsigned i = n_started; i < run->n_files; i++) (void)write_file(&run->files[i]);
    for (unsigned i = 0; i < run->n_files; i++) {
        if (i < n_started) (void)pthread_join(run->files[i].thread, NULL);
        if (run->files[i].result < 0) r = run->files[i].result;
    }
    return thread_pool_failed(run->settings.threads) ? RUN_STORE_ERROR : r;
}

static size_t open_bytes_of(const struct run_writer *run)
{
    size_t most = 0;
    for (unsigned i = 0; i < run->n_files; i++)
        if (run->files[i].max_block_bytes > most) most = run->files[i].max_block_bytes;
    return most + most * (run->n_files - 1) / 2;
}

static int label_run(struct run_writer *run)
{
    uint8_t bytes[RUN_LABEL_BYTES];
    struct run_label label = run->settings.label;
    label.open_bytes = open_bytes_of(run);
    run_label_encode(&label, bytes);
    return run_store_label_run(run->stored, label.run, bytes, sizeof bytes);
}

/* Tries once to write the run. Returns 0, or a code of the store. */
static int write_run(struct run_writer *run, struct stored_run **stored)
{
    const struct run_writer_settings *s = &run->settings;
    record_observers_begin_run(s->observers);
    int r = run_store_begin_run(s->store, run->n_files, &run->stored);
    if (r == 0) {
        r = write_files(run);
        if (r == 0) r = label_run(run);
        if (r == RUN_STORE_FULL) r = run_store_make_room(run->stored);
    }
    *stored = run->stored;
    run->stored = NULL;
    if (r == 0) return 0;
    run_store_abandon_run(*stored);
    *stored = NULL;
    if (r == RUN_STORE_AGAIN) record_observers_undo_run(s->observers, s->label.run);
    if (r == RUN_STORE_ERROR) thread_pool_fail(s->threads);
    return r;
}

/* ---- creating and destroying ---- */

/* Begins a range at a place. It has the place's record, and the range before it one of an earlier
   place. */
static void begin_range(struct run_writer *run, size_t place)
{
    struct merge_bound bound = {0};
    struct file_range *file = &run->files[run->n_files++];
    set_bound(run, place, &bound);
    for (size_t i = 0; i < run->n_sources; i++) {
        file->cut_at[i] = merge_cut(run->settings.rules, &run->sources[i], &bound);
        file->n_records += file->cut_at[i];
    }
    merge_bound_release(&bound);
    file->first_place = file[-1].end_place = place;
    file->end_place = run->n_places;
}

/* Divides the places into ranges of about equal size. */
static void divide(struct run_writer *run)
{
    const unsigned most = run->settings.n_files;
    size_t all_bytes = 0, n_bytes = 0;
    for (size_t i = 0; i < run->n_places; i++) all_bytes += run->places[i].n_bytes;
    run->files[0].end_place = run->n_places;
    run->n_files = 1;
    for (size_t i = 1; i < run->n_places && run->n_files < most; i++) {
        n_bytes += run->places[i - 1].n_bytes;
        if (n_bytes >= all_bytes / most * run->n_files) begin_range(run, i);
    }
}

static void make_files(struct run_writer *run)
{
    const unsigned most = run->settings.n_files;
    run->files = xcalloc(most, sizeof *run->files);
    for (unsigned i = 0; i < most; i++) {
        struct file_range *file = &run->files[i];
        file->run = run;
        file->number = i;
        file->cut_at = xcalloc(run->n_sources, sizeof *file->cut_at);
    }
    divide(run);
    run->n_ring = run->settings.budget.n_spill_chunks / run->n_files;
    for (unsigned i = 0; i < run->n_files; i++) {
        run->files[i].ring = xcalloc(run->n_ring, sizeof *run->files[i].ring);
        for (unsigned k = 0; k < run->n_ring; k++) {
            struct spill_chunk *chunk = &run->files[i].ring[k];
            chunk->file = &run->files[i];
            chunk->slices = xcalloc(run->n_sources, sizeof *chunk->slices);
        }
    }
}

static struct run_writer *create_run(const struct run_writer_settings *settings,
                                     struct sort_buffer *const *buffers, size_t n)
{
    struct run_writer *run = xcalloc(1, sizeof *run);
    size_t *raw_bytes = xcalloc(n, sizeof *raw_bytes);
    run->settings = *settings;
    run->n_sources = n;
    run->buffers = buffers;
    run->sources = xcalloc(n, sizeof *run->sources);
    for (size_t i = 0; i < n; i++) {
        const struct sort_buffer *buffer = buffers[i];
        run->sources[i] = (struct merge_source){buffer->entries, buffer->n_records, (uint32_t)i, 0};
        raw_bytes[i] = buffer->raw_bytes;
    }
    run->places = merge_cut_places(settings->rules, run->sources, raw_bytes, n,
                                   settings->budget.spill_chunk_bytes / 8, &run->n_places);
    free(raw_bytes);
    make_files(run);
    return run;
}

static void destroy_run(struct run_writer *run)
{
    for (unsigned i = 0; i < run->settings.n_files; i++) {
        struct file_range *file = &run->files[i];
        for (unsigned k = 0; file->ring && k < run->n_ring; k++) {
            free(file->ring[k].slices);
            free(file->ring[k].blocks);
            free(file->ring[k].ordinals);
        }
        free(file->ring);
        free(file->cut_at);
    }
    free(run->files);
    free(run->sources);
    free(run->places);
    free(run);
}

int run_writer_write(const struct run_writer_settings *settings,
                     struct sort_buffer *const *buffers, size_t n_buffers,
                     struct stored_run **stored, size_t *open_bytes)
{
    int r;
    do {
        struct run_writer *run = create_run(settings, buffers, n_buffers);
        r = write_run(run, stored);
        *open_bytes = open_bytes_of(run);
        destroy_run(run);
    } while (r == RUN_STORE_AGAIN);
    return r;
}
