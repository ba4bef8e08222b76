/* view_again.c -- see view_again.h. */
#include "pipeline/view_again.h"

#include "pipeline/feed.h"
#include "pipeline/record_ordinals.h"
#include "store/bam_block.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* A block that is looked at. */
struct viewed_block {
    struct crew_slot slot;
    const struct view_again_settings *settings;
    const char *dir;            /* that it is in, for messages */
    uint8_t *value;             /* as it was stored */
    size_t value_bytes;
    uint32_t run;
    uint64_t first_index;
};

struct viewed_blocks {
    struct viewed_block *all;
    unsigned n;
};

static void release_coder(void *coder)
{
    temp_coder_release(coder);
}

static const struct scratch_kind coder_kind = {sizeof(struct temp_coder), release_coder};

/* Verifies and decompresses the block, and shows its records to the observers. Returns 0, or -1
   after a message. */
static int view_block(struct worker *worker, struct viewed_block *block)
{
    const struct view_again_settings *s = block->settings;
    struct bam_block stored;
    if (bam_block_parse(block->value, block->value_bytes, &stored) < 0 ||
        !bam_block_verify(block->value, block->value_bytes))
        return fed_block_report_run(block->dir, block->run);
    uint8_t *raw = xmalloc(stored.raw_bytes);
    bool is_sound = temp_codec_decompress(worker_scratch(worker, &coder_kind), stored.codec,
                                          stored.payload, stored.payload_bytes, raw,
                                          stored.raw_bytes) == 0 &&
                    bam_block_measure(s->rules, &stored, raw, s->n_refs) >= 0 &&
                    (stored.ordinals || !record_ordinals_are_needed(s->rules));
    const struct observed_records records = {
        .all = {raw, raw + stored.raw_bytes}, .run = block->run,
        .first_record = block->first_index, .ordinals = stored.ordinals, .worker = worker};
    int r = is_sound ? record_observers_look(s->observers, &records)
                     : fed_block_report_run(block->dir, block->run);
    free(raw);
    return r;
}

static int view_and_free(struct worker *worker, void *item)
{
    struct viewed_block *block = item;
    int r = view_block(worker, block);
    free(block->value);
    block->value = NULL;
    return r;
}

/* Hands a block to a worker, unless this process wrote it. Returns 0, or -1 after a message. */
static int start_block(const struct view_again_settings *s, const struct viewed_blocks *blocks,
                       struct fed_block *fed)
{
    struct bam_block stored;
    uint32_t run;
    uint64_t first_index;
    merge_bound_position(fed->key, fed->key_bytes, &run, &first_index);
    if (run >= s->end_run) return 0;
    struct viewed_block *block = crew_take_slot(s->crew, blocks->all, blocks->n, sizeof *block);
    if (!block) return -1;
    block->settings = s;
    block->dir = fed->dir;
    block->value = fed->value;
    block->value_bytes = fed->value_bytes;
    block->run = run;
    block->first_index = first_index;
    fed->value = NULL;
    /* If the number is damaged, the job finds it out. */
    if (bam_block_parse(block->value, block->value_bytes, &stored) < 0)
        return fed_block_report_run(block->dir, run);
    if (s->duplicates) duplicates_end_run(s->duplicates, run, first_index + stored.n_records);
    return crew_submit_slot(s->crew, &block->slot, view_and_free);
}

static int view_all(const struct view_again_settings *s, struct feeders *feeders,
                    const struct viewed_blocks *blocks)
{
    struct fed_block *fed;
    int r;
    while ((r = feeders_next(feeders, &fed)) > 0) {
        r = merge_bound_is_sound(fed->key_bytes) ? start_block(s, blocks, fed)
                                                 : fed_block_report_entry(fed->dir);
        feeders_drop(feeders);
        if (r < 0) break;
    }
    if (r < 0) crew_fail(s->crew);
    return crew_finish_jobs(s->crew);
}

int view_again(const struct view_again_settings *s)
{
    struct run_scan **scans;
    size_t n_scans = run_store_scan(s->store, &scans);
    const struct feed_settings feed = {
        .crew = s->crew, .scans = scans, .n_scans = n_scans, .dropped_runs = s->dropped_runs,
        .n_dropped = s->n_dropped, .queue_bytes = s->queue_bytes,
    };
    struct viewed_blocks blocks = {.n = 2 * s->n_threads};
    blocks.all = xcalloc(blocks.n, sizeof *blocks.all);
    struct feeders *feeders = feeders_start(&feed);
    int r = feeders ? view_all(s, feeders, &blocks) : -1;
    if (r < 0) crew_fail(s->crew);
    feeders_stop(feeders);
    for (unsigned i = 0; i < blocks.n; i++) free(blocks.all[i].value);
    free(blocks.all);
    for (size_t i = 0; i < n_scans; i++) run_scan_close(scans[i]);
    free(scans);
    return r;
}
