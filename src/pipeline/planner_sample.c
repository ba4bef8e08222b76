/*
 * planner_sample.c -- measures records of sorted batches: how much memory they take, and how well
 * they compress, as temporary data and as output. See planner.h.
 */
#include "pipeline/planner.h"

#include "bam/bgzf_block.h"
#include "pipeline/view_chunks.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>

enum {
    SAMPLE_BYTES = 4 << 20,     /* 12,000 short reads: ratios are right within a few percent */
    STRETCHES = 8,              /* of which the sample is made, from all over a batch */
};

/* Of CPU time, which does not depend on what else the machine does. */
static const double most_deflate_seconds = 0.05;

/* Copies records from all over a sorted batch to `sample`, and returns their bytes. */
static size_t take_sample(const struct batch *batch, uint8_t *sample)
{
    size_t n_bytes = 0, n = batch->n_records, each = SAMPLE_BYTES / STRETCHES;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *rec = sort_entry_record(batch->rules->order, &batch->entries[i]);
        size_t size = bam_record_bytes(rec), room = (i * STRETCHES / n + 1) * each - n_bytes;
        if (size > room) continue;
        memcpy(sample + n_bytes, rec, size);
        n_bytes += size;
    }
    return n_bytes;
}

/* Packs the sample in blocks with one codec. */
static int measure_codec(enum temp_codec codec, size_t block_bytes, const uint8_t *sample,
                         size_t n_bytes, double *ratio)
{
    struct temp_coder coder = {0};
    size_t room = temp_codec_bound(codec, block_bytes), packed_bytes = 0;
    uint8_t *packed = xmalloc(room);
    ssize_t n = 0;
    for (size_t at = 0; at < n_bytes && n >= 0; at += block_bytes) {
        size_t n_raw = n_bytes - at < block_bytes ? n_bytes - at : block_bytes;
        n = temp_codec_compress(&coder, codec, sample + at, n_raw, packed, room);
        packed_bytes += n < 0 ? 0 : (size_t)n;
    }
    *ratio = (double)packed_bytes / (double)n_bytes;
    free(packed);
    temp_coder_release(&coder);
    return n < 0 ? -1 : 0;
}

/* Deflates as much of the sample as the time allows. */
static int measure_deflate(struct bgzf_method method, const uint8_t *sample, size_t n_bytes,
                           struct plan_cost *cost)
{
    struct bgzf_coder coder = {0};
    uint8_t *block = xmalloc(BGZF_MAX_BYTES);
    size_t at = 0, deflated_bytes = 0;
    double start = thread_cpu_seconds(), seconds = 0;
    ssize_t n = 0;
    while (at < n_bytes && n >= 0 && seconds <= most_deflate_seconds) {
        size_t n_raw = n_bytes - at < BGZF_PAYLOAD_BYTES ? n_bytes - at : BGZF_PAYLOAD_BYTES;
        n = bgzf_block_deflate(&coder, method, sample + at, n_raw, block);
        deflated_bytes += n < 0 ? 0 : (size_t)n;
        at += n_raw;
        seconds = thread_cpu_seconds() - start;
    }
    *cost = (struct plan_cost){(double)deflated_bytes / (double)at, seconds / (double)at};
    free(block);
    bgzf_coder_release(&coder);
    return n < 0 ? -1 : 0;
}

/* Makes the views of the sample. Groups change little of them. */
static double measure_views(const struct plan *plan, const uint8_t *sample, size_t n_bytes)
{
    struct duplicate_rules rules = plan->settings->duplicate_rules;
    struct bam_walk walk = {.at = sample, .end = sample + n_bytes};
    struct view_gather gather = {0};
    struct record_views views;
    uint8_t *out = NULL;
    const uint8_t *begin = sample;
    size_t out_bytes = 0, room = 0;
    uint32_t index = 0;
    rules.use_read_groups = rules.use_libraries = false;
    for (const uint8_t *rec; (rec = bam_walk_next(&walk)) != NULL; index++) {
        if (duplicate_views_make(&rules, rec, &views)) continue;
        for (unsigned i = 0; i < views.n; i++) {
            views.view[i].ordinal = views.view[i].index = index;
            view_gather_add(&gather, &views.view[i]);
        }
        size_t n_passed = (size_t)(walk.at - begin);
        if (gather.n < VIEW_GATHER_ENOUGH && n_passed < plan->budget.pack_bytes) continue;
        view_gather_end(&gather, 0, &out, &out_bytes, &room);
        begin = walk.at;
    }
    view_gather_end(&gather, 0, &out, &out_bytes, &room);
    view_gather_release(&gather);
    free(out);
    return (double)out_bytes / (double)n_bytes;
}

/* Finds out what a full batch holds. */
static void measure_batches(struct plan *plan, struct batch *const *batches, size_t n)
{
    size_t n_full = n > 1 ? n - 1 : 1;
    double raw_bytes = 0, used_bytes = 0, memory = 0;
    for (size_t i = 0; i < n_full; i++) {
        raw_bytes += (double)batches[i]->raw_bytes;
        used_bytes += (double)batch_used_bytes(batches[i]);
        memory += (double)batches[i]->mem_bytes;
    }
    plan->traits.memory_ratio = used_bytes / raw_bytes;
    plan->batch_memory = fmax(memory / (double)n_full, (double)plan->budget.batch_bytes);
    if (n > 1) plan->batch_raw_bytes = plan->batch_memory * raw_bytes / memory;
}

bool planner_sample(struct plan *plan, struct batch *const *batches, size_t n)
{
    struct plan_traits *t = &plan->traits;
    const struct bgzf_method usual = {.level = -1};
    unsigned n_runs = (unsigned)mem_budget_expect_runs(&plan->budget, plan->expected_bytes, 0, 0);
    size_t block_bytes = mem_budget_block_bytes(&plan->budget, n_runs / 2, n_runs);
    uint8_t *sample = xmalloc(SAMPLE_BYTES);
    size_t n_bytes = take_sample(batches[0], sample);
    int r = n_bytes > 0 ? 0 : -1;
    measure_batches(plan, batches, n);
    for (int i = 0; r == 0 && i < TEMP_CODEC_COUNT; i++)
        r = measure_codec((enum temp_codec)i, block_bytes, sample, n_bytes, &t->pack_ratio[i]);
    if (r == 0 && plan->settings->markdup) t->view_ratio = measure_views(plan, sample, n_bytes);
    if (r == 0)
        r = measure_deflate(sort_settings_method(plan->settings), sample, n_bytes, &t->deflate);
    if (r == 0) r = measure_deflate(usual, sample, n_bytes, &t->usual);
    free(sample);
    return r == 0;
}

void planner_warn(struct plan *plan, struct batch *const *batches, size_t n)
{
    char texts[PLAN_MOST_TEXTS][PLAN_TEXT_BYTES];
    /* No temporary data take more, even if they are compacted; no output takes more than half. */
    double most = 4 * 1.4 * (double)plan->expected_bytes;
    bool has_plenty = (!plan->temporary.known || (double)plan->temporary.free_bytes > most) &&
                      (!plan->output.known || (double)plan->output.free_bytes > most / 2) &&
                      (!plan->also.known || (double)plan->also.free_bytes > most / 2);
    if (n == 0 || has_plenty || !planner_sample(plan, batches, n)) return;
    planner_estimate(plan);
    size_t n_texts = planner_compare_space(plan, texts);
    for (size_t i = 0; i < n_texts; i++) diag_warning("%s", texts[i]);
}
