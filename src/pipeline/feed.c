/* feed.c -- see feed.h. */
#include "pipeline/feed.h"

#include "pipeline/thread.h"
#include "store/bam_block.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct feeder {
    struct feeders *all;
    struct run_scan *scan;
    pthread_t thread;
    bool started;
    /* under the lock */
    struct fed_block *first, **last;    /* the queue */
    size_t n_bytes;             /* of the blocks in the queue and in `taken` */
    bool waits;                 /* the thread waits for room in the queue */
    bool ended;
    /* dispatcher only */
    struct fed_block *taken;    /* blocks from the queue, taken all at once */
};

struct feeders {
    struct feed_settings settings;
    size_t most_bytes;          /* limit for the queue of each feeder */
    bool stopped;               /* under the lock */
    size_t n;
    struct feeder *feeders;
};

/* ---- blocks ---- */

/* Makes the block at the scan's position, without its value. */
static struct fed_block *find_block(struct run_scan *scan, const uint8_t *key, size_t key_bytes)
{
    const uint8_t *part;
    size_t part_bytes;
    struct fed_block *block = xmalloc(sizeof *block + key_bytes);
    *block = (struct fed_block){.dir = run_scan_dir(scan), .key_bytes = key_bytes};
    memcpy(block->key, key, key_bytes);
    run_scan_value(scan, &part, &part_bytes);
    block->value_bytes = bam_block_value_bytes(part, part_bytes);
    /* Not a block: the merge will print a message about it. */
    if (block->value_bytes == 0) block->value_bytes = part_bytes;
    return block;
}

/* Moves the scan to the next part. Returns 1, 0 if the block has no more parts, or -1. */
static int next_part(const struct fed_block *block, struct run_scan *scan)
{
    const uint8_t *key;
    size_t key_bytes;
    run_scan_next(scan);
    int r = run_scan_key(scan, &key, &key_bytes);
    return r > 0 ? bam_block_is_part(key, key_bytes, block->key, block->key_bytes) : r;
}

/* Reads the value with all its parts (bam_block.h), and moves the scan to the next block. If a part
   is missing, the value is too short and will not parse. Returns 0, or -1 after a message. */
static int fetch_block(struct fed_block *block, struct run_scan *scan)
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
    block->value_bytes = n;
    return r < 0 ? -1 : 0;
}

/* Moves the scan to the next block without reading the value. Returns 0, or -1 after a message. */
static int skip_block(const struct fed_block *block, struct run_scan *scan)
{
    int r;
    while ((r = next_part(block, scan)) > 0) continue;
    return r;
}

/* True if the block belongs to a run that is to be left out. */
static bool is_dropped(const struct fed_block *block, const struct feed_settings *s)
{
    uint32_t run;
    uint64_t index;
    if (s->n_dropped == 0 || !merge_bound_is_sound(block->key_bytes)) return false;
    merge_bound_position(block->key, block->key_bytes, &run, &index);
    for (size_t i = 0; i < s->n_dropped; i++)
        if (s->dropped_runs[i] == run) return true;
    return false;
}

int fed_block_report_run(const char *dir, uint32_t run)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: run %" PRIu32 " fails its "
                  "checksum; sort again on another disk", dir, run);
    return -1;
}

int fed_block_report_entry(const char *dir)
{
    diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: an entry is not a block; sort "
                  "again on another disk", dir);
    return -1;
}

void fed_block_free(struct fed_block *block)
{
    if (!block) return;
    free(block->value);
    free(block);
}

/* ---- the threads ---- */

static void free_list(struct fed_block *block)
{
    while (block) {
        struct fed_block *next = block->next;
        fed_block_free(block);
        block = next;
    }
}

/* With the lock held: true unless the feeder should end. */
static bool goes_on(const struct feeder *feeder)
{
    return !feeder->all->stopped && !crew_failed(feeder->all->settings.crew);
}

/* Waits until the queue has room for n_bytes; an empty queue always has. Returns false if the
   feeder should end. */
static bool wait_for_room(struct feeder *feeder, size_t n_bytes)
{
    struct crew *crew = feeder->all->settings.crew;
    crew_lock(crew);
    while (feeder->n_bytes > 0 && feeder->n_bytes + n_bytes > feeder->all->most_bytes &&
           goes_on(feeder)) {
        feeder->waits = true;
        crew_wait_for(crew, WAIT_FEEDERS_QUEUE);
    }
    feeder->waits = false;
    bool go_on = goes_on(feeder);
    crew_unlock(crew);
    return go_on;
}

/* Appends to the queue. */
static void queue_block(struct feeder *feeder, struct fed_block *block)
{
    struct crew *crew = feeder->all->settings.crew;
    crew_lock(crew);
    /* The dispatcher waits only while the queue is empty. */
    if (!feeder->first) crew_announce(crew);
    *feeder->last = block;
    feeder->last = &block->next;
    feeder->n_bytes += block->key_bytes + block->value_bytes;
    crew_unlock(crew);
}

/* Reads the block at the scan's position into the queue, or skips it if its run is to be left out.
   Returns 1, 0 if the feeder should end, or -1 after a message. */
static int feed_block(struct feeder *feeder, const uint8_t *key, size_t key_bytes)
{
    const struct feed_settings *s = &feeder->all->settings;
    struct fed_block *block = find_block(feeder->scan, key, key_bytes);
    int r = 1;
    if (is_dropped(block, s)) {
        if (skip_block(block, feeder->scan) < 0) r = -1;
    } else if (!wait_for_room(feeder, block->key_bytes + block->value_bytes)) {
        r = 0;
    } else if (fetch_block(block, feeder->scan) < 0) {
        r = -1;
    } else {
        queue_block(feeder, block);
        return 1;
    }
    fed_block_free(block);
    return r;
}

static void *feed(void *arg)
{
    struct feeder *feeder = arg;
    const struct feed_settings *s = &feeder->all->settings;
    const uint8_t *key;
    size_t key_bytes;
    int r;
    while ((r = run_scan_key(feeder->scan, &key, &key_bytes)) > 0)
        if ((r = feed_block(feeder, key, key_bytes)) <= 0) break;
    if (r < 0) crew_fail(s->crew);
    crew_lock(s->crew);
    feeder->ended = true;
    crew_announce(s->crew);
    crew_unlock(s->crew);
    return NULL;
}

struct feeders *feeders_start(const struct feed_settings *settings)
{
    struct feeders *all = xcalloc(1, sizeof *all);
    all->settings = *settings;
    all->n = settings->n_scans;
    all->feeders = xcalloc(all->n, sizeof *all->feeders);
    all->most_bytes = all->n > 0 ? settings->queue_bytes / all->n : 0;
    for (size_t i = 0; i < all->n; i++) {
        struct feeder *feeder = &all->feeders[i];
        *feeder = (struct feeder){.all = all, .scan = settings->scans[i]};
        feeder->last = &feeder->first;
    }
    for (size_t i = 0; i < all->n; i++) {
        int error = thread_start(&all->feeders[i].thread, "feeder", feed, &all->feeders[i]);
        all->feeders[i].started = error == 0;
        if (!error) continue;
        diag_no_thread(error);
        feeders_stop(all);
        return NULL;
    }
    return all;
}

int feeders_first(struct feeders *all, size_t i, struct fed_block **block)
{
    struct feeder *feeder = &all->feeders[i];
    struct crew *crew = all->settings.crew;
    if (!feeder->taken) {
        crew_lock(crew);
        while (!feeder->first && !feeder->ended && !crew_failed(crew))
            crew_wait_for(crew, WAIT_DISPATCHER_BLOCKS);
        feeder->taken = feeder->first;
        feeder->first = NULL;
        feeder->last = &feeder->first;
        crew_unlock(crew);
    }
    *block = feeder->taken;
    if (crew_failed(crew)) return -1;
    return feeder->taken ? 1 : 0;
}

void feeders_drop(struct feeders *all, size_t i)
{
    struct feeder *feeder = &all->feeders[i];
    struct fed_block *block = feeder->taken;
    struct crew *crew = all->settings.crew;
    feeder->taken = block->next;
    crew_lock(crew);
    feeder->n_bytes -= block->key_bytes + block->value_bytes;
    if (feeder->waits) crew_announce(crew);
    crew_unlock(crew);
    fed_block_free(block);
}

void feeders_stop(struct feeders *all)
{
    if (!all) return;
    struct crew *crew = all->settings.crew;
    crew_lock(crew);
    all->stopped = true;
    crew_announce(crew);
    crew_unlock(crew);
    for (size_t i = 0; i < all->n; i++) {
        struct feeder *feeder = &all->feeders[i];
        if (feeder->started) (void)pthread_join(feeder->thread, NULL);
        free_list(feeder->taken);
        free_list(feeder->first);
    }
    free(all->feeders);
    free(all);
}
