/* feed.c -- see feed.h. */
#include "pipeline/feed.h"

#include "order/merge.h"
#include "util/diag.h"

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
    struct pipeline *p;
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
    struct fed_block *block = malloc(sizeof *block + key_bytes);
    if (!block) return NULL;
    *block = (struct fed_block){
        .dir = run_scan_dir(scan),
        .value = malloc(value_bytes),
        .value_bytes = value_bytes,
        .key_bytes = key_bytes,
    };
    if (!block->value) {
        free(block);
        return NULL;
    }
    memcpy(block->key, key, key_bytes);
    memcpy(block->value, value, value_bytes);
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
    struct pipeline *p = feeder->all->p;
    pipeline_lock(p);
    while (feeder->n_bytes > 0 && feeder->n_bytes + block->value_bytes > feeder->all->most_bytes &&
           !feeder->all->stopped && !pipeline_failed(p)) {
        feeder->waits = true;
        pipeline_wait_for(p, WAIT_FEEDERS_QUEUE);
    }
    feeder->waits = false;
    bool go_on = !feeder->all->stopped && !pipeline_failed(p);
    if (go_on) {
        /* The dispatcher waits for the first block only. */
        if (!feeder->first) pipeline_announce(p);
        *feeder->last = block;
        feeder->last = &block->next;
        feeder->n_bytes += block->value_bytes;
    }
    pipeline_unlock(p);
    if (!go_on) free_fed_block(block);
    return go_on;
}

static void *feed(void *arg)
{
    struct feeder *feeder = arg;
    struct pipeline *p = feeder->all->p;
    const uint8_t *key;
    size_t key_bytes;
    int r;
    while ((r = run_scan_key(feeder->scan, &key, &key_bytes)) > 0) {
        if (resume_drops_block(p, key, key_bytes)) {
            run_scan_next(feeder->scan);
            continue;
        }
        struct fed_block *block = copy_block(feeder->scan, key, key_bytes);
        if (!block) (void)pipeline_no_memory(p);
        if (!block || !queue_block(feeder, block)) break;
        run_scan_next(feeder->scan);
    }
    if (r < 0) pipeline_fail(p);
    pipeline_lock(p);
    feeder->ended = true;
    pipeline_announce(p);
    pipeline_unlock(p);
    return NULL;
}

struct feeders *feeders_start(struct pipeline *p, size_t queue_bytes)
{
    struct run_scan **scans = NULL;
    struct feeders *all = calloc(1, sizeof *all);
    int n = all ? run_store_scan(p->store, &scans) : 0;
    if (n > 0) all->feeders = calloc((size_t)n, sizeof *all->feeders);
    if (n < 0 || !all || (n > 0 && !all->feeders)) {
        if (n >= 0) (void)pipeline_no_memory(p);
        for (int i = 0; i < n; i++) run_scan_close(scans[i]);
        free(scans);
        free(all);
        return NULL;
    }
    all->p = p;
    all->n = (size_t)n;
    all->most_bytes = n > 0 ? queue_bytes / (size_t)n : 0;
    for (int i = 0; i < n; i++) {
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

/* The first block of a feeder, for which it waits; NULL behind the last or after a failure. */
static struct fed_block *first_block(struct feeder *feeder)
{
    struct pipeline *p = feeder->all->p;
    if (feeder->taken) return feeder->taken;
    pipeline_lock(p);
    while (!feeder->first && !feeder->ended && !pipeline_failed(p))
        pipeline_wait_for(p, WAIT_DISPATCHER_BLOCKS);
    feeder->taken = feeder->first;
    feeder->first = NULL;
    feeder->last = &feeder->first;
    pipeline_unlock(p);
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
    if (pipeline_failed(all->p)) return -1;
    *block = all->shown ? all->shown->taken : NULL;
    return all->shown ? 1 : 0;
}

void feeders_drop(struct feeders *all)
{
    struct feeder *feeder = all->shown;
    struct fed_block *block = feeder->taken;
    struct pipeline *p = all->p;
    feeder->taken = block->next;
    pipeline_lock(p);
    feeder->n_bytes -= block->value_bytes;
    if (feeder->waits) pipeline_announce(p);
    pipeline_unlock(p);
    free_fed_block(block);
}

void feeders_stop(struct feeders *all)
{
    if (!all) return;
    struct pipeline *p = all->p;
    pipeline_lock(p);
    all->stopped = true;
    pipeline_announce(p);
    pipeline_unlock(p);
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
