/* feed.c -- see feed.h. */
#include "pipeline/feed.h"

#include "order/slice_merge.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

struct feeder {
    struct feeders *all;
    struct run_scan *scan;
    pthread_t thread;
    bool started;
    /* under the lock */
    struct fed_block *first, **last;    /* the queue */
    size_t n_bytes;             /* in the queue and in `taken` */
    bool waits;                 /* for room in the queue */
    bool ended;
    /* dispatcher only */
    struct fed_block *taken;    /* from the queue, all at once */
};

struct feeders {
    struct feed_settings settings;
    size_t most_bytes;          /* for each */
    bool stopped;               /* under the lock */
    size_t n;
    struct feeder *feeders;
    struct feeder *shown;
};

static struct fed_block *copy_block(struct run_scan *scan, const uint8_t *key, size_t key_bytes)
{
    const uint8_t *value;
    size_t value_bytes;
    run_scan_value(scan, &value, &value_bytes);
    struct fed_block *block = xmalloc(sizeof *block + key_bytes);
    *block = (struct fed_block){
        .dir = run_scan_dir(scan),
        .value = xmemdup(value, value_bytes),
        .value_bytes = value_bytes,
        .key_bytes = key_bytes,
    };
    memcpy(block->key, key, key_bytes);
    return block;
}

static void free_fed_block(struct fed_block *block)
{
    free(block->value);
    free(block);
}

static void free_list(struct fed_block *block)
{
    while (block) {
        struct fed_block *next = block->next;
        free_fed_block(block);
        block = next;
    }
}

/* Appends to the queue when there is room; an empty queue always has. */
static bool queue_block(struct feeder *feeder, struct fed_block *block)
{
    struct crew *crew = feeder->all->settings.crew;
    crew_lock(crew);
    while (feeder->n_bytes > 0 && feeder->n_bytes + block->value_bytes > feeder->all->most_bytes &&
           !feeder->all->stopped && !crew_failed(crew)) {
        feeder->waits = true;
        crew_wait_for(crew, WAIT_FEEDERS_QUEUE);
    }
    feeder->waits = false;
    bool go_on = !feeder->all->stopped && !crew_failed(crew);
    if (go_on) {
        /* The dispatcher waits for the first block only. */
        if (!feeder->first) crew_announce(crew);
        *feeder->last = block;
        feeder->last = &block->next;
        feeder->n_bytes += block->value_bytes;
    }
    crew_unlock(crew);
    if (!go_on) free_fed_block(block);
    return go_on;
}

/* True for a block of a run that does not count. */
static bool is_dropped(const struct feed_settings *s, const uint8_t *key, size_t key_bytes)
{
    uint32_t run;
    uint64_t index;
    if (s->n_dropped == 0 || key_bytes <= MERGE_BOUND_TAIL_BYTES) return false;
    merge_bound_position(key, key_bytes, &run, &index);
    for (size_t i = 0; i < s->n_dropped; i++)
        if (s->dropped_runs[i] == run) return true;
    return false;
}

static void *feed(void *arg)
{
    struct feeder *feeder = arg;
    struct crew *crew = feeder->all->settings.crew;
    const uint8_t *key;
    size_t key_bytes;
    int r;
    while ((r = run_scan_key(feeder->scan, &key, &key_bytes)) > 0) {
        if (!is_dropped(&feeder->all->settings, key, key_bytes) &&
            !queue_block(feeder, copy_block(feeder->scan, key, key_bytes)))
            break;
        run_scan_next(feeder->scan);
    }
    if (r < 0) crew_fail(crew);
    crew_lock(crew);
    feeder->ended = true;
    crew_announce(crew);
    crew_unlock(crew);
    return NULL;
}

struct feeders *feeders_start(const struct feed_settings *settings)
{
    struct run_scan **scans;
    struct feeders *all = xcalloc(1, sizeof *all);
    all->settings = *settings;
    all->n = run_store_scan(settings->store, &scans);
    all->feeders = xcalloc(all->n, sizeof *all->feeders);
    all->most_bytes = all->n > 0 ? settings->queue_bytes / all->n : 0;
    for (size_t i = 0; i < all->n; i++) {
        struct feeder *feeder = &all->feeders[i];
        *feeder = (struct feeder){.all = all, .scan = scans[i]};
        feeder->last = &feeder->first;
    }
    free(scans);
    for (size_t i = 0; i < all->n; i++) {
        int error = pthread_create(&all->feeders[i].thread, NULL, feed, &all->feeders[i]);
        all->feeders[i].started = error == 0;
        if (!error) continue;
        diag_no_thread(error);
        feeders_stop(all);
        return NULL;
    }
    return all;
}

/* The first block of a feeder, for which it waits; NULL after the last or after a failure. */
static struct fed_block *first_block(struct feeder *feeder)
{
    struct crew *crew = feeder->all->settings.crew;
    if (feeder->taken) return feeder->taken;
    crew_lock(crew);
    while (!feeder->first && !feeder->ended && !crew_failed(crew))
        crew_wait_for(crew, WAIT_DISPATCHER_BLOCKS);
    feeder->taken = feeder->first;
    feeder->first = NULL;
    feeder->last = &feeder->first;
    crew_unlock(crew);
    return feeder->taken;
}

int feeders_next(struct feeders *all, struct fed_block **block)
{
    all->shown = NULL;
    for (size_t i = 0; i < all->n; i++) {
        struct feeder *feeder = &all->feeders[i];
        struct fed_block *first = first_block(feeder);
        const struct fed_block *best = all->shown ? all->shown->taken : NULL;
        if (first && (!best || merge_bound_compare(first->key, first->key_bytes, best->key,
                                                   best->key_bytes) < 0))
            all->shown = feeder;
    }
    if (crew_failed(all->settings.crew)) return -1;
    *block = all->shown ? all->shown->taken : NULL;
    return all->shown ? 1 : 0;
}

void feeders_drop(struct feeders *all)
{
    struct feeder *feeder = all->shown;
    struct fed_block *block = feeder->taken;
    struct crew *crew = all->settings.crew;
    feeder->taken = block->next;
    crew_lock(crew);
    feeder->n_bytes -= block->value_bytes;
    if (feeder->waits) crew_announce(crew);
    crew_unlock(crew);
    free_fed_block(block);
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
        run_scan_close(feeder->scan);
    }
    free(all->feeders);
    free(all);
}
