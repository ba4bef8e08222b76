/* feed.c -- see feed.h. */
#include "pipeline/feed.h"

#include "pipeline/crew.h"
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
    struct feeder *shown;
};

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
    struct fed_block *block = fed_block_find(feeder->scan, key, key_bytes);
    int r = 1;
    if (fed_block_is_dropped(block, s->dropped_runs, s->n_dropped)) {
        if (fed_block_skip(block, feeder->scan) < 0) r = -1;
    } else if (!wait_for_room(feeder, block->key_bytes + block->value_bytes)) {
        r = 0;
    } else if (fed_block_fetch(block, feeder->scan) < 0) {
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

/* Waits for the first block of a feeder. NULL after the last block or after a failure. */
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
        if (!first) continue;
        const struct merge_limit mine = fed_block_first(first);
        const struct merge_limit best =
            all->shown ? fed_block_first(all->shown->taken) : (struct merge_limit){NULL, 0};
        if (merge_bound_compare(&mine, &best) < 0) all->shown = feeder;
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
