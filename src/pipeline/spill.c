/*
 * spill.c -- the spiller: batches to runs in the store.
 *
 * A run is made of some consecutive sorted batches. Places at which all of them can be cut divide
 * it into *packs*; workers merge the batches' slices of a pack, cut the result into blocks and
 * compress these. Packs are put into the store in order.
 *
 * Spilling begins late: as long as there is memory, the input might still fit, and what is in
 * memory when the input ends need not be spilled at all.
 */
#include "pipeline/pipeline_internal.h"

#include "store/bam_block.h"
#include "store/run_label.h"
#include "util/diag.h"
#include "util/grow.h"

#include <stdlib.h>

/* A block of a pack, as it lies in the pack's buffer: this, the key, the value. */
struct packed_block {
    uint32_t key_bytes;
    uint32_t value_bytes;
};

struct pack {
    struct spill *spill;
    struct merge_slice *slices; /* one of each batch */
    uint64_t first_index;       /* of the pack in the run */
    size_t max_block_bytes;     /* largest block, uncompressed */
    uint8_t *blocks;            /* packed_blocks, reused from pack to pack */
    size_t n_bytes, room;
    bool done;                  /* under the lock */
};

struct spill {
    struct pipeline *p;
    unsigned run;
    struct run_label label;
    struct stored_run *stored;
    enum temp_codec codec;
    size_t block_bytes;
    size_t max_block_bytes;     /* of the packs that are stored */
    size_t n_sources;
    struct merge_source *sources;
    size_t *raw_bytes;
    size_t *cut_at;             /* in each source: end of the last pack */
    uint64_t n_records;         /* in packs so far */
    struct pack *ring;
    unsigned n_ring, ring_at, ring_used;
};

static int compare_places(const void *a_place, const void *b_place)
{
    const struct cut_place *a = a_place, *b = b_place;
    const struct sort_entry *x = &a->source->entries[a->index], *y = &b->source->entries[b->index];
    if (sort_order_is_fixed(a->order)) {
        if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
    } else {
        int c = keyed_record_compare(x->ref, y->ref, 0);
        if (c) return c;
    }
    if (a->source->run != b->source->run) return a->source->run < b->source->run ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

ssize_t find_cut_places(enum sort_order order, const struct merge_source *sources,
                        const size_t *raw_bytes, size_t n_sources, size_t sample_bytes,
                        struct cut_place **places)
{
    size_t n_most = n_sources, n = 0;
    for (size_t i = 0; i < n_sources; i++) n_most += raw_bytes[i] / sample_bytes + 1;
    *places = malloc(n_most * sizeof **places + 1);
    if (!*places) return -1;
    for (size_t i = 0; i < n_sources; i++) {
        size_t n_entries = sources[i].n_entries, n_samples = raw_bytes[i] / sample_bytes + 1;
        if (n_samples > n_entries) n_samples = n_entries;
        for (size_t k = 0; k < n_samples; k++)
            (*places)[n++] = (struct cut_place){&sources[i], k * n_entries / n_samples, order,
                                                raw_bytes[i] / n_samples};
    }
    qsort(*places, n, sizeof **places, compare_places);
    return (ssize_t)n;
}

/* Makes room for n_bytes more in a pack's buffer. */
static int reserve_blocks(struct pack *pack, size_t n_bytes)
{
    return grow_array(&pack->blocks, &pack->room, pack->n_bytes + n_bytes, pack->room / 2, 1);
}

/* Encodes the records [from, to) of a merged pack, gathered in worker->raw, as one block. */
static int encode_block(struct pack *pack, struct worker *worker, const struct merge_source *merged,
                        size_t from, size_t to, size_t raw_bytes)
{
    const struct spill *spill = pack->spill;
    enum sort_order order = spill->p->rules.order;
    struct merge_bound *last = &worker->bound;
    struct packed_block block;
    if (merge_bound_set(last, order, merged, to - 1) < 0) return -1;
    size_t key_bytes = merge_bound_bytes(order, &merged->entries[from]);
    size_t most =
        sizeof block + key_bytes + bam_block_bound(spill->codec, raw_bytes, last->n_bytes);
    if (reserve_blocks(pack, most) < 0) return -1;
    uint8_t *at = pack->blocks + pack->n_bytes, *value = at + sizeof block + key_bytes;
    ssize_t value_bytes = bam_block_encode(&worker->temp, spill->codec, worker->raw, raw_bytes,
                                           (uint32_t)(to - from), last->key, last->n_bytes, value);
    if (value_bytes < 0) return -1;
    block.key_bytes = (uint32_t)merge_bound_store(order, merged, from, at + sizeof block);
    block.value_bytes = (uint32_t)value_bytes;
    memcpy(at, &block, sizeof block);
    pack->n_bytes += sizeof block + key_bytes + (size_t)value_bytes;
    return 0;
}

static int make_blocks(struct pack *pack, struct worker *worker)
{
    enum { PREFETCH = 8 };
    const struct spill *spill = pack->spill;
    enum sort_order order = spill->p->rules.order;
    struct merge_source merged = {.run = spill->run, .first_index = pack->first_index};
    ssize_t n = merge_slices(order, pack->slices, spill->n_sources, &worker->space,
                             &merged.entries);
    if (n < 0) return -1;
    merged.n_entries = (size_t)n;
    size_t from = 0, raw_bytes = 0;
    for (size_t i = 0; i < merged.n_entries; i++) {
        if (i + PREFETCH < merged.n_entries)
            __builtin_prefetch(sort_entry_record(order, &merged.entries[i + PREFETCH]));
        const uint8_t *rec = sort_entry_record(order, &merged.entries[i]);
        size_t rec_bytes = bam_record_bytes(rec);
        if (worker_reserve_raw(worker, raw_bytes + rec_bytes) < 0) return -1;
        memcpy(worker->raw + raw_bytes, rec, rec_bytes);
        raw_bytes += rec_bytes;
        if (raw_bytes < spill->block_bytes && i + 1 < merged.n_entries) continue;
        if (encode_block(pack, worker, &merged, from, i + 1, raw_bytes) < 0) return -1;
        if (raw_bytes > pack->max_block_bytes) pack->max_block_bytes = raw_bytes;
        from = i + 1;
        raw_bytes = 0;
    }
    return 0;
}

static void pack_job(struct pipeline *p, struct worker *worker, void *arg)
{
    struct pack *pack = arg;
    pack->n_bytes = 0;
    pack->max_block_bytes = 0;
    if (!pipeline_failed(p) && make_blocks(pack, worker) < 0) (void)pipeline_no_memory(p);
    pipeline_lock(p);
    pack->done = true;
    pipeline_unlock(p);
}

/* Waits for the oldest pack and puts its blocks into the store. */
static int store_oldest_pack(struct spill *spill)
{
    struct pipeline *p = spill->p;
    struct pack *pack = &spill->ring[spill->ring_at];
    pipeline_lock(p);
    while (!pack->done) pipeline_wait_for(p, WAIT_SPILLER_WORKERS);
    pipeline_unlock(p);
    spill->ring_at = (spill->ring_at + 1) % spill->n_ring;
    spill->ring_used--;
    if (pipeline_failed(p)) return -1;
    if (pack->max_block_bytes > spill->max_block_bytes)
        spill->max_block_bytes = pack->max_block_bytes;
    for (const uint8_t *at = pack->blocks, *end = at + pack->n_bytes; at < end;) {
        struct packed_block block;
        memcpy(&block, at, sizeof block);
        at += sizeof block;
        int r = run_store_put(spill->stored, at, block.key_bytes, at + block.key_bytes,
                              block.value_bytes);
        if (r < 0) return r;
        at += block.key_bytes + block.value_bytes;
    }
    return 0;
}

/* Hands the records before a bound that are in no pack yet to a worker. */
static int start_pack(struct spill *spill, const uint8_t *bound, size_t bound_bytes)
{
    struct pipeline *p = spill->p;
    int r = spill->ring_used == spill->n_ring ? store_oldest_pack(spill) : 0;
    if (r < 0) return r;
    struct pack *pack = &spill->ring[(spill->ring_at + spill->ring_used) % spill->n_ring];
    pack->first_index = spill->n_records;
    pack->done = false;
    for (size_t i = 0; i < spill->n_sources; i++) {
        const struct merge_source *source = &spill->sources[i];
        size_t to = merge_cut(p->rules.order, source, bound, bound_bytes);
        pack->slices[i] = (struct merge_slice){source->entries + spill->cut_at[i],
                                               to - spill->cut_at[i]};
        spill->n_records += to - spill->cut_at[i];
        spill->cut_at[i] = to;
    }
    if (spill->n_records == pack->first_index) return 0;
    spill->ring_used++;
    if (pipeline_submit(p, pack_job, pack) == 0) return 0;
    spill->ring_used--;
    return -1;
}

static int spill_packs(struct spill *spill, const struct cut_place *places, size_t n_places)
{
    struct pipeline *p = spill->p;
    struct merge_bound bound = {0};
    size_t n_bytes = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n_places; i++) {
        if (n_bytes >= p->budget.pack_bytes) {
            r = merge_bound_set(&bound, p->rules.order, places[i].source, places[i].index);
            if (r < 0) (void)pipeline_no_memory(p);
            if (r == 0) r = start_pack(spill, bound.key, bound.n_bytes);
            n_bytes = 0;
        }
        n_bytes += places[i].n_bytes;
    }
    merge_bound_release(&bound);
    if (r == 0) r = start_pack(spill, NULL, 0);
    while (r == 0 && spill->ring_used > 0) r = store_oldest_pack(spill);
    return r;
}

static int prepare_spill(struct spill *spill, struct batch **batches, size_t n)
{
    struct pipeline *p = spill->p;
    spill->n_ring = p->budget.n_packs;
    spill->n_sources = n;
    spill->sources = calloc(n, sizeof *spill->sources);
    spill->raw_bytes = calloc(n, sizeof *spill->raw_bytes);
    spill->cut_at = calloc(n, sizeof *spill->cut_at);
    spill->ring = calloc(spill->n_ring, sizeof *spill->ring);
    if (!spill->sources || !spill->raw_bytes || !spill->cut_at || !spill->ring) return -1;
    for (size_t i = 0; i < n; i++) {
        spill->sources[i] = (struct merge_source){batches[i]->entries, batches[i]->n_records,
                                                  (uint32_t)i, 0};
        spill->raw_bytes[i] = batch_raw_bytes(batches[i]);
    }
    for (unsigned i = 0; i < spill->n_ring; i++) {
        spill->ring[i].spill = spill;
        spill->ring[i].slices = calloc(n, sizeof *spill->ring[i].slices);
        if (!spill->ring[i].slices) return -1;
    }
    return 0;
}

static void release_spill(struct spill *spill)
{
    for (unsigned i = 0; spill->ring && i < spill->n_ring; i++) {
        free(spill->ring[i].slices);
        free(spill->ring[i].blocks);
    }
    free(spill->ring);
    free(spill->cut_at);
    free(spill->raw_bytes);
    free(spill->sources);
}

/* What the run says of itself, from its batches. */
static void make_label(struct spill *spill, struct batch **batches, size_t n)
{
    struct run_label *label = &spill->label;
    label->run = spill->run;
    label->before = spill->p->last_run;
    label->end = batches[n - 1]->end;
    for (size_t i = 0; i < n; i++) {
        content_sum_join(&label->sum, &batches[i]->sum);
        label->any_placed |= batches[i]->any_placed;
    }
}

static int label_run(struct spill *spill)
{
    uint8_t bytes[RUN_LABEL_BYTES];
    spill->label.max_block_bytes = spill->max_block_bytes;
    run_label_encode(&spill->label, bytes);
    return run_store_label_run(spill->stored, spill->run, bytes, sizeof bytes);
}

/* Writes the places' packs as one run, and leaves it to be ended. Returns 0, -1, or
   RUN_STORE_AGAIN. */
static int write_run(struct spill *spill, const struct cut_place *places, size_t n_places)
{
    struct pipeline *p = spill->p;
    int r = run_store_begin_run(p->store, &spill->stored);
    if (r == 0) r = spill_packs(spill, places, n_places);
    if (r == 0) r = label_run(spill);
    if (r == 0) return store_end_run(p, spill->stored);
    if (r != RUN_STORE_AGAIN) pipeline_fail(p);
    run_store_abandon_run(spill->stored);
    /* Packs that are on their way use the ring. */
    pipeline_lock(p);
    for (; spill->ring_used > 0; spill->ring_used--) {
        while (!spill->ring[spill->ring_at].done) pipeline_wait(p);
        spill->ring_at = (spill->ring_at + 1) % spill->n_ring;
    }
    pipeline_unlock(p);
    spill->n_records = spill->max_block_bytes = 0;
    memset(spill->cut_at, 0, spill->n_sources * sizeof *spill->cut_at);
    return r;
}

/* Writes n sorted batches as one run. */
static int spill_run(struct pipeline *p, struct batch **batches, size_t n)
{
    struct spill spill = {.p = p, .run = p->next_run};
    struct cut_place *places = NULL;
    int r = -1;
    if (store_open(p) < 0) return -1;
    make_label(&spill, batches, n);
    spill.codec = store_choose_codec(p);
    pipeline_lock(p);
    uint64_t expected = store_expected_bytes(p), done = p->spilled_bytes;
    pipeline_unlock(p);
    run_store_expect(p->store, done, expected > done ? expected - done : 0);
    spill.block_bytes =
        mem_budget_block_bytes(&p->budget, p->n_runs, (unsigned)store_expected_runs(p));
    ssize_t n_places = -1;
    if (prepare_spill(&spill, batches, n) == 0)
        n_places = find_cut_places(p->rules.order, spill.sources, spill.raw_bytes, n,
                                   p->budget.pack_bytes / 8, &places);
    if (n_places < 0)
        (void)pipeline_no_memory(p);
    else
        while ((r = write_run(&spill, places, (size_t)n_places)) == RUN_STORE_AGAIN) continue;
    if (r == 0) {
        pipeline_lock(p);
        p->n_runs++;
        p->last_run = p->next_run++;
        for (size_t i = 0; i < n; i++) p->spilled_bytes += batch_raw_bytes(batches[i]);
        pipeline_unlock(p);
    }
    p->open_bytes += spill.max_block_bytes;
    free(places);
    release_spill(&spill);
    return r;
}

/* With the lock held: true if the n oldest unspilled batches are sorted. */
static bool oldest_are_sorted(const struct pipeline *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!p->sealed.batches[p->sealed.n_spilled + i]->sorted) return false;
    return true;
}

/* Spills the n oldest batches and makes them free. */
static int spill_oldest(struct pipeline *p, size_t n)
{
    struct batch **oldest = malloc(n * sizeof *oldest);
    if (!oldest) return pipeline_no_memory(p);
    pipeline_lock(p);
    while (!oldest_are_sorted(p, n) && !pipeline_failed(p))
        pipeline_wait_for(p, WAIT_SPILLER_BATCHES);
    memcpy(oldest, p->sealed.batches + p->sealed.n_spilled, n * sizeof *oldest);
    pipeline_unlock(p);
    int r = pipeline_failed(p) ? -1 : spill_run(p, oldest, n);
    if (r < 0) {
        pipeline_fail(p);                       /* the reader may be waiting for these batches */
    } else {
        pipeline_lock(p);
        for (size_t i = 0; i < n; i++) free_batch(p, oldest[i]);
        p->sealed.n_spilled += n;
        pipeline_unlock(p);
    }
    free(oldest);
    return r;
}

/* With the lock held: true if a run should be spilled now. */
static bool batches_crowd(const struct pipeline *p)
{
    const struct mem_budget *budget = &p->budget;
    size_t n_waiting = p->sealed.n - p->sealed.n_spilled;
    bool may_fit = p->sealed.n_spilled == 0 && store_expected_bytes(p) < budget->total_bytes;
    size_t crowd = may_fit ? budget->first_full_batches : budget->full_batches;
    /* Large records fill the memory with fewer batches. */
    return n_waiting >= crowd ||
           (n_waiting > 0 && p->reader_waits && !may_take_batch(p));
}

void *spill_while_loading(void *pipeline)
{
    struct pipeline *p = pipeline;
    for (;;) {
        pipeline_lock(p);
        while (p->loading && !pipeline_failed(p) && !batches_crowd(p))
            pipeline_wait_for(p, WAIT_SPILLER_BATCHES);
        bool go_on = p->loading && !pipeline_failed(p);
        size_t n = p->sealed.n - p->sealed.n_spilled, most = p->budget.run_batches;
        pipeline_unlock(p);
        if (!go_on) break;
        if (spill_oldest(p, n < most ? n : most) < 0) break;
    }
    return NULL;
}

size_t batches_kept_bytes(const struct pipeline *p)
{
    size_t n_bytes = 0;
    for (size_t i = p->sealed.n_spilled; i < p->sealed.n; i++)
        n_bytes += batch_used_bytes(p->sealed.batches[i]);
    return n_bytes;
}

int spill_to_fit(struct pipeline *p)
{
    const struct mem_budget *budget = &p->budget;
    for (;;) {
        if (store_drain(p) < 0) return -1;
        size_t left = p->sealed.n - p->sealed.n_spilled;
        size_t n = left < budget->run_batches ? left : budget->run_batches;
        size_t scan_bytes = p->store ? run_store_scan_bytes(p->store) : 0;
        size_t merge_bytes = mem_budget_merge_bytes(budget, p->open_bytes) + scan_bytes;
        bool fits = batches_kept_bytes(p) + merge_bytes <= budget->total_bytes;
        if (left == 0 || (fits && !resume_needs_all_runs(p))) break;
        if (spill_oldest(p, n) < 0) return -1;
    }
    return store_settle(p);
}
