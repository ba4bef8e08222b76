/* pile_walk.c -- see pile_walk.h. */
#include "pipeline/pile_walk.h"

#include "util/byte_order.h"

#include <string.h>

void pile_walk_init(struct pile_walk *walk, const struct pile_settings *settings,
                    const uint8_t *key)
{
    *walk = (struct pile_walk){.settings = *settings};
    memcpy(walk->key, key, sizeof walk->key);
}

void pile_walk_release(struct pile_walk *walk)
{
    temp_coder_release(&walk->coder);
}

/* Writes into `bound` the key of the pile's block that begins with this record. */
static void put_key(const struct pile_walk *walk, uint32_t run, uint64_t index,
                    uint8_t bound[MERGE_BOUND_MOST_BYTES])
{
    memcpy(bound, walk->key, sizeof walk->key);
    (void)put_big_endian(put_big_endian(bound + sizeof walk->key, run, 4), index, 8);
}

/* Goes to the first block whose run is `run` or a later one. */
static int seek_run(struct pile_walk *walk, uint32_t run)
{
    uint8_t bound[MERGE_BOUND_MOST_BYTES];
    put_key(walk, run, 0, bound);
    walk->settings.counts->n_seeks++;
    return run_scan_seek(walk->scan, bound, sizeof bound);
}

int pile_walk_begin(struct pile_walk *walk, struct run_scan *scan)
{
    walk->scan = scan;
    return seek_run(walk, 0);
}

static bool is_dropped(const struct pile_walk *walk)
{
    for (size_t i = 0; i < walk->settings.n_dropped; i++)
        if (walk->settings.dropped_runs[i] == walk->run) return true;
    return false;
}

int pile_walk_look(struct pile_walk *walk)
{
    for (;;) {
        int r = run_scan_key(walk->scan, &walk->at, &walk->at_bytes);
        if (r <= 0) return r;
        if (walk->at_bytes < MERGE_BOUND_MOST_BYTES ||
            memcmp(walk->at, walk->key, sizeof walk->key) != 0)
            return 0;
        merge_bound_position(walk->at, MERGE_BOUND_MOST_BYTES, &walk->run, &walk->index);
        if (!is_dropped(walk)) return 1;
        if (pile_walk_skip_run(walk) < 0) return -1;
    }
}

void pile_walk_step(struct pile_walk *walk)
{
    walk->settings.counts->n_steps++;
    run_scan_next(walk->scan);
}

int pile_walk_skip_run(struct pile_walk *walk)
{
    if (walk->run < UINT32_MAX) return seek_run(walk, walk->run + 1);
    pile_walk_step(walk);
    return 0;
}

/* Opens a block that was read, and frees it. NULL after a message. */
static struct open_block *open_fed(struct pile_walk *walk, struct fed_block *fed)
{
    struct open_block *block = segmenter_load_block(walk->settings.segmenter, fed, &walk->coder);
    fed_block_free(fed);
    walk->settings.counts->n_reads++;
    return block;
}

struct open_block *pile_walk_fetch(struct pile_walk *walk)
{
    struct fed_block *fed = fed_block_find(walk->scan, walk->at, walk->at_bytes);
    walk->settings.counts->n_steps++;
    if (fed_block_fetch(fed, walk->scan) == 0) return open_fed(walk, fed);
    fed_block_free(fed);
    return NULL;
}

int pile_walk_get(struct pile_walk *walk, struct run_scan *scan, uint32_t run, uint64_t index,
                  struct open_block **block)
{
    uint8_t key[MERGE_BOUND_MOST_BYTES];
    struct fed_block *fed;
    put_key(walk, run, index, key);
    walk->settings.counts->n_gets++;
    int r = fed_block_get(scan, key, sizeof key, &fed);
    if (r <= 0) return r;
    *block = open_fed(walk, fed);
    return *block ? 1 : -1;
}

void pile_walk_drop(const struct pile_walk *walk, struct open_block *block)
{
    crew_lock(walk->settings.crew);
    segmenter_drop_block(block);
    crew_unlock(walk->settings.crew);
}
