/* run_reader.c -- see run_reader.h. */
#include "spill/run_reader.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct run_reader {
    struct run_readers *all;
    struct run_scan *scan;
    pthread_t thread;
    bool started;
    /* under the lock */
    struct stored_block *first, **last; /* the queue */
    size_t n_bytes;             /* of the blocks in the queue and in `taken` */
    bool waits;                 /* the thread waits for room in the queue */
    bool ended;
    /* dispatcher only */
    struct stored_block *taken; /* blocks from the queue, taken all at once */
};

struct run_readers {
    struct threads *threads;
    const uint32_t *dropped_runs;
    size_t n_dropped;
    size_t most_bytes;          /* limit for the queue of each run reader */
    bool stopped;               /* under the lock */
    size_t n;
    struct run_reader *run_readers;
};

/* ---- blocks ---- */

void stored_block_free(struct stored_block *block)
{
    if (!block) return;
    free(block->value);
    free(block);
}

static int report_entry(const struct stored_block *block)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: an entry is not a block; "
                  "sort again on another disk", block->dir);
    return -1;
}

/* Makes the block at the scan's position, without its value. NULL after a message. */
static struct stored_block *find_block(struct run_scan *scan, const uint8_t *key, size_t key_bytes)
{
    const uint8_t *part;
    size_t part_bytes;
    struct stored_block *block = xmalloc(sizeof *block + key_bytes);
    *block = (struct stored_block){.dir = run_scan_dir(scan), .key_bytes = key_bytes};
    memcpy(block->key, key, key_bytes);
    run_scan_value(scan, &part, &part_bytes);
    block->value_bytes = bam_block_value_bytes(part, part_bytes);
    if (block->value_bytes > 0 && merge_bound_is_sound(key_bytes)) {
        merge_bound_position(block->key, key_bytes, &block->run, &block->first_index);
        return block;
    }
    (void)report_entry(block);
    free(block);
    return NULL;
}

/* Moves the scan to the next part. Returns 1, 0 if the block has no more parts, or -1. */
static int next_part(const struct stored_block *block, struct run_scan *scan)
{
    const uint8_t *key;
    size_t key_bytes;
    run_scan_next(scan);
    int r = run_scan_key(scan, &key, &key_bytes);
    return r > 0 ? bam_block_is_part(key, key_bytes, block->key, block->key_bytes) : r;
}

/* Reads the value with all its parts (bam_block.h), and moves the scan to the next block. Returns
   0, or -1 after a message. */
static int fetch_block(struct stored_block *block, struct run_scan *scan)
{
    size_t n = 0;
    int r = 1;
    block->value = xmalloc(block->value_bytes);
    while (r > 0) {
        const uint8_t *part;
        size_t part_bytes;
        run_scan_value(scan, &part, &part_bytes);
        if (part_bytes > block->value_bytes - n) break;
        memcpy(block->value + n, part, part_bytes);
        n += part_bytes;
        r = next_part(block, scan);
    }
    if (r < 0) return -1;
    return bam_block_parse(block->value, n, &block->parsed) < 0 ? report_entry(block) : 0;
}

/* Moves the scan to the next block without reading the value. Returns 0, or -1 after a message. */
static int skip_block(const struct stored_block *block, struct run_scan *scan)
{
    int r;
    while ((r = next_part(block, scan)) > 0) continue;
    return r;
}

/* True if the run of the block is to be skipped. */
static bool is_dropped(const struct stored_block *block, const struct run_readers *all)
{
    for (size_t i = 0; i < all->n_dropped; i++)
        if (all->dropped_runs[i] == block->run) return true;
    return false;
}

uint8_t *stored_block_unpack(const struct stored_block *block, const struct sort_rules *rules,
                             int32_t n_refs, struct temp_coder *coder, size_t *keyed_bytes)
{
    uint8_t *raw = bam_block_verify(block->value, block->value_bytes)
                       ? bam_block_unpack(&block->parsed, rules, n_refs, coder, keyed_bytes) : NULL;
    if (!raw)
        diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: run %" PRIu32 " fails "
                      "its checksum; sort again on another disk", block->dir, block->run);
    return raw;
}

/* ---- the threads ---- */

static void free_list(struct stored_block *block)
{
    while (block) {
        struct stored_block *next = block->next;
        stored_block_free(block);
        block = next;
    }
}

/* With the lock held: false if the run reader should end. */
static bool goes_on(const struct run_reader *run_reader)
{
    return !run_reader->all->stopped && !thread_pool_failed(run_reader->all->threads);
}

/* Waits until the queue has room for n_bytes; an empty queue always has room. Returns false if the
   run reader should end. */
static bool wait_for_room(struct run_reader *run_reader, size_t n_bytes)
{
    struct threads *threads = run_reader->all->threads;
    thread_pool_lock(threads);
    while (run_reader->n_bytes > 0 && run_reader->n_bytes + n_bytes > run_reader->all->most_bytes &&
           goes_on(run_reader)) {
        run_reader->waits = true;
        thread_pool_wait_for(threads, WAIT_RUN_READERS_QUEUE);
    }
    run_reader->waits = false;
    bool go_on = goes_on(run_reader);
    thread_pool_unlock(threads);
    return go_on;
}

/* Appends to the queue. */
static void queue_block(struct run_reader *run_reader, struct stored_block *block)
{
    struct threads *threads = run_reader->all->threads;
    thread_pool_lock(threads);
    /* The dispatcher waits only while the queue is empty. */
    if (!run_reader->first) thread_pool_announce(threads);
    *run_reader->last = block;
    run_reader->last = &block->next;
    run_reader->n_bytes += block->key_bytes + block->value_bytes;
    thread_pool_unlock(threads);
}

/* Reads the block at the scan's position into the queue, or skips it if its run is dropped. Returns
   1, 0 if the run reader should end, or -1 after a message. */
static int read_block(struct run_reader *run_reader, const uint8_t *key, size_t key_bytes)
{
    struct stored_block *block = find_block(run_reader->scan, key, key_bytes);
    int r = 1;
    if (!block) return -1;
    if (is_dropped(block, run_reader->all)) {
        if (skip_block(block, run_reader->scan) < 0) r = -1;
    } else if (!wait_for_room(run_reader, block->key_bytes + block->value_bytes)) {
        r = 0;
    } else if (fetch_block(block, run_reader->scan) < 0) {
        r = -1;
    } else {
        queue_block(run_reader, block);
        return 1;
    }
    stored_block_free(block);
    return r;
}

static void *read_run_blocks(void *arg)
{
    struct run_reader *run_reader = arg;
    struct threads *threads = run_reader->all->threads;
    const uint8_t *key;
    size_t key_bytes;
    int r;
    while ((r = run_scan_key(run_reader->scan, &key, &key_bytes)) > 0)
        if ((r = read_block(run_reader, key, key_bytes)) <= 0) break;
    if (r < 0) thread_pool_fail(threads);
    thread_pool_lock(threads);
    run_reader->ended = true;
    thread_pool_announce(threads);
    thread_pool_unlock(threads);
    return NULL;
}

struct run_readers *run_readers_start(struct threads *threads, struct run_store *store,
                                      const uint32_t *dropped_runs, size_t n_dropped,
                                      size_t queue_bytes)
{
    struct run_readers *all = xcalloc(1, sizeof *all);
    struct run_scan **scans;
    *all = (struct run_readers){.threads = threads, .dropped_runs = dropped_runs,
                                .n_dropped = n_dropped, .n = run_store_scan(store, &scans)};
    all->run_readers = xcalloc(all->n, sizeof *all->run_readers);
    all->most_bytes = all->n > 0 ? queue_bytes / all->n : 0;
    for (size_t i = 0; i < all->n; i++) {
        struct run_reader *run_reader = &all->run_readers[i];
        *run_reader = (struct run_reader){.all = all, .scan = scans[i]};
        run_reader->last = &run_reader->first;
    }
    free(scans);
    for (size_t i = 0; i < all->n; i++) {
        struct run_reader *run_reader = &all->run_readers[i];
        int error = thread_start(&run_reader->thread, "run reader", read_run_blocks, run_reader);
        run_reader->started = error == 0;
        if (!error) continue;
        diag_no_thread(error);
        run_readers_stop(all);
        return NULL;
    }
    return all;
}

size_t run_readers_count(const struct run_readers *all)
{
    return all->n;
}

int run_readers_first(struct run_readers *all, size_t i, struct stored_block **block)
{
    struct run_reader *run_reader = &all->run_readers[i];
    struct threads *threads = all->threads;
    if (!run_reader->taken) {
        thread_pool_lock(threads);
        while (!run_reader->first && !run_reader->ended && !thread_pool_failed(threads))
            thread_pool_wait_for(threads, WAIT_DISPATCHER_BLOCKS);
        run_reader->taken = run_reader->first;
        run_reader->first = NULL;
        run_reader->last = &run_reader->first;
        thread_pool_unlock(threads);
    }
    *block = run_reader->taken;
    if (thread_pool_failed(threads)) return -1;
    return run_reader->taken ? 1 : 0;
}

struct stored_block *run_readers_take(struct run_readers *all, size_t i)
{
    struct run_reader *run_reader = &all->run_readers[i];
    struct stored_block *block = run_reader->taken;
    run_reader->taken = block->next;
    thread_pool_lock(all->threads);
    run_reader->n_bytes -= block->key_bytes + block->value_bytes;
    if (run_reader->waits) thread_pool_announce(all->threads);
    thread_pool_unlock(all->threads);
    return block;
}

void run_readers_stop(struct run_readers *all)
{
    if (!all) return;
    struct threads *threads = all->threads;
    thread_pool_lock(threads);
    all->stopped = true;
    thread_pool_announce(threads);
    thread_pool_unlock(threads);
    for (size_t i = 0; i < all->n; i++) {
        struct run_reader *run_reader = &all->run_readers[i];
        if (run_reader->started) (void)pthread_join(run_reader->thread, NULL);
        free_list(run_reader->taken);
        free_list(run_reader->first);
        run_scan_close(run_reader->scan);
    }
    free(all->run_readers);
    free(all);
}
