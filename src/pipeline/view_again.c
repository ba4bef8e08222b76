/* view_again.c -- see view_again.h. */
#include "pipeline/view_again.h"

#include "pipeline/feed.h"
#include "store/bam_block.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* A block and its views. */
struct viewed_block {
    const struct view_again_settings *settings;
    const char *dir;            /* that it is in, for messages */
    uint8_t *value;             /* as it was stored; the job frees it */
    size_t value_bytes;
    uint32_t run;
    uint64_t first_index;
    uint32_t n_records;
    struct duplicate_looks looks;
    bool done;                  /* under the lock */
};

struct block_ring {
    struct viewed_block *blocks;
    unsigned n, at, n_used;
};

static int view_records(struct viewed_block *block, struct worker *worker, const uint8_t *raw,
                        uint32_t n_records)
{
    for (uint32_t i = 0; i < n_records; i++, raw += bam_record_bytes(raw))
        if (duplicate_looks_add(block->settings->duplicates, &worker->views, &block->looks, raw,
                                block->run, block->first_index + i) < 0)
            return -1;
    duplicate_looks_end(&worker->views, &block->looks, block->run);
    block->n_records = n_records;
    return duplicates_take(block->settings->duplicates, &block->looks);
}

static int report_damage(const struct viewed_block *block)
{
    diag_damaged("the temporary data in '%s' are damaged: run %u fails its checksum; sort again on "
                 "another disk", block->dir, (unsigned)block->run);
    return -1;
}

/* Verifies and decompresses the block, and makes its views. Returns 0, or -1 after a message. */
static int view_block(struct viewed_block *block, struct worker *worker)
{
    const struct view_again_settings *s = block->settings;
    struct bam_block stored;
    if (bam_block_parse(block->value, block->value_bytes, &stored) < 0 ||
        !bam_block_verify(block->value, block->value_bytes))
        return report_damage(block);
    uint8_t *raw = xmalloc(stored.raw_bytes);
    bool is_sound = temp_codec_decompress(&worker->temp, stored.codec, stored.payload,
                                          stored.payload_bytes, raw, stored.raw_bytes) == 0 &&
                    bam_block_measure(s->rules, &stored, raw, s->n_refs) >= 0;
    int r = is_sound ? view_records(block, worker, raw, stored.n_records) : report_damage(block);
    free(raw);
    return r;
}

static void view_job(struct worker *worker, void *arg)
{
    struct viewed_block *block = arg;
    struct crew *crew = block->settings->crew;
    if (!crew_failed(crew) && view_block(block, worker) < 0) crew_fail(crew);
    free(block->value);
    block->value = NULL;
    crew_lock(crew);
    block->done = true;
    crew_unlock(crew);
}

/* Waits for the views of the oldest block. Returns 0, or -1 if the crew has failed. */
static int finish_oldest(const struct view_again_settings *s, struct block_ring *ring)
{
    struct viewed_block *oldest = &ring->blocks[ring->at];
    crew_lock(s->crew);
    while (!oldest->done) crew_wait(s->crew);
    crew_unlock(s->crew);
    ring->at = (ring->at + 1) % ring->n;
    ring->n_used--;
    if (crew_failed(s->crew)) return -1;
    duplicates_end_run(s->duplicates, oldest->run, oldest->first_index + oldest->n_records);
    return 0;
}

/* Hands a block to a worker, unless this process wrote it. Returns 0, or -1 after a message. */
static int start_block(const struct view_again_settings *s, struct block_ring *ring,
                       struct fed_block *fed)
{
    uint32_t run;
    uint64_t first_index;
    merge_bound_position(fed->key, fed->key_bytes, &run, &first_index);
    if (run >= s->end_run) return 0;
    if (ring->n_used == ring->n && finish_oldest(s, ring) < 0) return -1;
    struct viewed_block *block = &ring->blocks[(ring->at + ring->n_used) % ring->n];
    *block = (struct viewed_block){
        .settings = s, .dir = fed->dir, .value = fed->value, .value_bytes = fed->value_bytes,
        .run = run, .first_index = first_index, .looks = block->looks,
    };
    fed->value = NULL;
    ring->n_used++;
    if (crew_submit(s->crew, view_job, block) == 0) return 0;
    ring->n_used--;
    free(block->value);
    return -1;
}

static int view_all(const struct view_again_settings *s, struct feeders *feeders,
                    struct block_ring *ring)
{
    struct fed_block *fed;
    int r;
    while ((r = feeders_next(feeders, &fed)) > 0) {
        if (!merge_bound_is_sound(fed->key_bytes)) {
            diag_damaged("the temporary data in '%s' are damaged: an entry is not a block; sort "
                         "again on another disk", fed->dir);
            r = -1;
        } else {
            r = start_block(s, ring, fed);
        }
        feeders_drop(feeders);
        if (r < 0) break;
    }
    while (ring->n_used > 0)
        if (finish_oldest(s, ring) < 0) r = -1;
    return r;
}

int view_again(const struct view_again_settings *s)
{
    struct run_scan **scans;
    size_t n_scans = run_store_scan(s->store, &scans);
    const struct feed_settings feed = {
        .crew = s->crew, .scans = scans, .n_scans = n_scans, .dropped_runs = s->dropped_runs,
        .n_dropped = s->n_dropped, .queue_bytes = s->queue_bytes, .rules = s->rules,
    };
    struct block_ring ring = {.n = 2 * s->n_threads};
    ring.blocks = xcalloc(ring.n, sizeof *ring.blocks);
    struct feeders *feeders = feeders_start(&feed);
    int r = feeders ? view_all(s, feeders, &ring) : -1;
    if (r < 0) crew_fail(s->crew);
    feeders_stop(feeders);
    for (unsigned i = 0; i < ring.n; i++) duplicate_looks_release(&ring.blocks[i].looks);
    free(ring.blocks);
    for (size_t i = 0; i < n_scans; i++) run_scan_close(scans[i]);
    free(scans);
    return r;
}
