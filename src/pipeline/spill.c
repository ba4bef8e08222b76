/* spill.c -- see spill.h. */
#include "pipeline/spill.h"

#include "pipeline/spill_policy.h"
#include "pipeline/thread.h"
#include "store/bam_block.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

struct spiller {
    struct spill_settings settings;
    struct codec_chooser codecs;
    pthread_t thread;
    bool space_is_checked;
    struct spill_totals totals; /* under the crew's lock */
};

/* The sizes before each block in the buffer of a pack; the key and the value follow. */
struct packed_block {
    uint32_t key_bytes;
    uint32_t value_bytes;
};

struct pack {
    struct spilled_run *run;
    struct merge_slice *slices; /* one for each batch */
    uint64_t first_index;       /* index in the run of the pack's first record */
    size_t max_block_bytes;     /* largest block that several records share, uncompressed and with
                                   the tags that they may get */
    uint8_t *blocks;            /* packed_blocks, reused from pack to pack */
    size_t n_bytes, room;
    struct duplicate_looks looks;       /* at its records */
    bool done;                  /* under the lock */
};

/* A run that is being spilled. */
struct spilled_run {
    struct spiller *spiller;
    struct crew *crew;
    const struct sort_rules *rules;
    struct mem_budget budget;   /* a copy, made when the run began */
    struct run_label label;
    struct stored_run *stored;
    uint64_t n_runs_expected;
    enum temp_codec codec;
    size_t block_bytes;
    size_t record_growth;       /* by so many bytes a record may get longer when it is read */
    size_t max_block_bytes;     /* the largest of the packs that were stored */
    struct cut_place *places;
    size_t n_places;
    size_t n_sources;
    struct merge_source *sources;
    size_t *cut_at;             /* in each source: where the last pack ends */
    uint64_t n_records;         /* records in packs so far */
    struct pack *ring;
    unsigned n_ring, ring_at, ring_used;
};

/* Records [from, to) of a merged pack, and their bytes. */
struct stretch {
    size_t from, to, raw_bytes;
};

/* Encodes a stretch as one block. worker->raw holds its bytes. Returns 0, or -1 after a message. */
static int end_block(struct pack *pack, struct worker *worker, const struct merge_source *merged,
                     struct stretch stretch)
{
    size_t from = stretch.from, to = stretch.to, raw_bytes = stretch.raw_bytes;
    const struct spilled_run *run = pack->run;
    size_t grown_bytes = raw_bytes + (to - from) * run->record_growth;
    if (to - from > 1 && grown_bytes > pack->max_block_bytes) pack->max_block_bytes = grown_bytes;
    enum sort_order order = run->rules->order;
    struct merge_bound *last = &worker->bound;
    struct packed_block block;
    merge_bound_set(last, order, merged, to - 1);
    size_t key_bytes = merge_bound_bytes(order, &merged->entries[from]);
    size_t most = sizeof block + key_bytes + bam_block_bound(run->codec, raw_bytes, last->n_bytes);
    xgrow(&pack->blocks, &pack->room, pack->n_bytes + most, pack->room / 2, 1);
    uint8_t *at = pack->blocks + pack->n_bytes, *value = at + sizeof block + key_bytes;
    const struct bam_block_content content = {worker->raw, raw_bytes, (uint32_t)(to - from),
                                              last->bytes, last->n_bytes};
    ssize_t value_bytes = bam_block_encode(&worker->temp, run->codec, &content, value);
    if (value_bytes < 0) {
        diag_error("a block of temporary data cannot be compressed with %s; please report this",
                   temp_codec_name(run->codec));
        return -1;
    }
    block.key_bytes = (uint32_t)merge_bound_store(order, merged, from, at + sizeof block);
    block.value_bytes = (uint32_t)value_bytes;
    memcpy(at, &block, sizeof block);
    pack->n_bytes += sizeof block + key_bytes + (size_t)value_bytes;
    return 0;
}

/* Has the processor fetch a short read into its cache, for later: a sort takes 4 % less CPU time. */
static inline void prefetch_record(const uint8_t *rec)
{
    for (size_t i = 0; i < 384; i += 64) __builtin_prefetch(rec + i);
}

/*
 * Merges a pack and cuts it into blocks. A block ends before the record that would make it larger
 * than planned, when all its records have their tags. So a record that is larger than a planned
 * block gets a block of its own. The merge need not hold a block of one record until blocks of
 * other runs have come.
 * Returns 0, or -1 after a message.
 */
static int make_blocks(struct pack *pack, struct worker *worker)
{
    enum { PREFETCH = 8 };
    const struct spilled_run *run = pack->run;
    enum sort_order order = run->rules->order;
    struct merge_source merged = {.run = run->label.run, .first_index = pack->first_index};
    merged.n_entries =
        merge_slices(run->rules, pack->slices, run->n_sources, &worker->space, &merged.entries);
    struct duplicates *duplicates = run->spiller->settings.duplicates;
    size_t from = 0, raw_bytes = 0;
    for (size_t i = 0; i < merged.n_entries; i++) {
        if (i + PREFETCH < merged.n_entries)
            prefetch_record(sort_entry_record(order, &merged.entries[i + PREFETCH]));
        const uint8_t *rec = sort_entry_record(order, &merged.entries[i]);
        size_t rec_bytes = bam_record_bytes(rec);
        size_t most_bytes = raw_bytes + rec_bytes + (i + 1 - from) * run->record_growth;
        if (raw_bytes > 0 && most_bytes > run->block_bytes) {
            if (end_block(pack, worker, &merged, (struct stretch){from, i, raw_bytes}) < 0)
                return -1;
            from = i;
            raw_bytes = 0;
        }
        worker_reserve_raw(worker, raw_bytes + rec_bytes);
        memcpy(worker->raw + raw_bytes, rec, rec_bytes);
        raw_bytes += rec_bytes;
        if (duplicates && duplicate_looks_add(duplicates, &worker->views, &pack->looks, rec,
                                              merged.run, merged.first_index + i) < 0)
            return -1;
    }
    if (duplicates) {
        duplicate_looks_end(&worker->views, &pack->looks, merged.run);
        if (duplicates_take(duplicates, &pack->looks) < 0) return -1;
    }
    return end_block(pack, worker, &merged, (struct stretch){from, merged.n_entries, raw_bytes});
}

static void pack_job(struct worker *worker, void *arg)
{
    struct pack *pack = arg;
    struct crew *crew = pack->run->crew;
    pack->n_bytes = 0;
    pack->max_block_bytes = 0;
    pack->looks.n_bytes = 0;
    if (!crew_failed(crew) && make_blocks(pack, worker) < 0) crew_fail(crew);
    crew_lock(crew);
    pack->done = true;
    crew_unlock(crew);
}

/* Puts a block into the store, in parts if it is large. Returns 0, or a code of the store. */
static int put_block(struct spilled_run *run, const struct packed_block *block, const uint8_t *key)
{
    const uint8_t *value = key + block->key_bytes;
    uint8_t part_key[BAM_BLOCK_PART_KEY_BYTES];
    size_t most = bam_block_part_bytes(run->block_bytes, 0), left = block->value_bytes;
    size_t n = left < most ? left : most;
    int r = run_store_put(run->stored, key, block->key_bytes, value, n);
    for (uint32_t number = 1; r == 0 && (left -= n) > 0; number++) {
        value += n;
        most = bam_block_part_bytes(run->block_bytes, number);
        n = left < most ? left : most;
        size_t key_bytes = bam_block_part_key(key, block->key_bytes, number, part_key);
        r = run_store_put(run->stored, part_key, key_bytes, value, n);
    }
    return r;
}

/* Waits for the oldest pack and puts its blocks into the store. Returns 0, or a code of the
   store. */
static int store_oldest_pack(struct spilled_run *run)
{
    struct pack *pack = &run->ring[run->ring_at];
    crew_lock(run->crew);
    while (!pack->done) crew_wait_for(run->crew, WAIT_SPILLER_WORKERS);
    crew_unlock(run->crew);
    run->ring_at = (run->ring_at + 1) % run->n_ring;
    run->ring_used--;
    if (crew_failed(run->crew)) return RUN_STORE_ERROR;
    if (pack->max_block_bytes > run->max_block_bytes) run->max_block_bytes = pack->max_block_bytes;
    int r = 0;
    for (const uint8_t *at = pack->blocks, *end = at + pack->n_bytes; at < end && r == 0;) {
        struct packed_block block;
        memcpy(&block, at, sizeof block);
        at += sizeof block;
        r = put_block(run, &block, at);
        at += block.key_bytes + block.value_bytes;
    }
    return r;
}

/* Makes a pack of all records below the bound that are in no pack yet, and hands it to a worker.
   Returns 0, or a code of the store. */
static int start_pack(struct spilled_run *run, const struct merge_limit *bound)
{
    int r = run->ring_used == run->n_ring ? store_oldest_pack(run) : 0;
    if (r < 0) return r;
    struct pack *pack = &run->ring[(run->ring_at + run->ring_used) % run->n_ring];
    pack->first_index = run->n_records;
    pack->done = false;
    for (size_t i = 0; i < run->n_sources; i++) {
        const struct merge_source *source = &run->sources[i];
        size_t from = run->cut_at[i], to = merge_cut(run->rules, source, bound);
        pack->slices[i] = (struct merge_slice){source->entries + from, to - from};
        run->n_records += to - from;
        run->cut_at[i] = to;
    }
    if (run->n_records == pack->first_index) return 0;
    run->ring_used++;
    if (crew_submit(run->crew, pack_job, pack) == 0) return 0;
    run->ring_used--;
    return RUN_STORE_ERROR;
}

/* Makes the run's packs and stores them. Returns 0, or a code of the store. */
static int spill_packs(struct spilled_run *run)
{
    static const struct merge_limit end = {NULL, 0, NULL};
    struct merge_bound bound;
    size_t n_bytes = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->n_places; i++) {
        const struct cut_place *place = &run->places[i];
        if (n_bytes >= run->budget.pack_bytes) {
            merge_bound_set(&bound, run->rules->order, place->source, place->index);
            const struct merge_limit limit = merge_limit_of(&bound);
            r = start_pack(run, &limit);
            n_bytes = 0;
        }
        n_bytes += place->n_bytes;
    }
    if (r == 0) r = start_pack(run, &end);
    while (r == 0 && run->ring_used > 0) r = store_oldest_pack(run);
    return r;
}

/* ---- a run ---- */

static void prepare_sources(struct spilled_run *run, struct batch *const *batches, size_t n)
{
    size_t *raw_bytes = xcalloc(n, sizeof *raw_bytes);
    run->n_ring = run->budget.n_packs;
    run->n_sources = n;
    run->sources = xcalloc(n, sizeof *run->sources);
    run->cut_at = xcalloc(n, sizeof *run->cut_at);
    run->ring = xcalloc(run->n_ring, sizeof *run->ring);
    for (size_t i = 0; i < n; i++) {
        const struct batch *batch = batches[i];
        run->sources[i] = (struct merge_source){batch->entries, batch->n_records, (uint32_t)i, 0};
        raw_bytes[i] = batch_raw_bytes(batch);
    }
    for (unsigned i = 0; i < run->n_ring; i++) {
        run->ring[i].run = run;
        run->ring[i].slices = xcalloc(n, sizeof *run->ring[i].slices);
    }
    run->places = merge_cut_places(run->rules, run->sources, raw_bytes, n,
                                   run->budget.pack_bytes / 8, &run->n_places);
    free(raw_bytes);
}

static void release_run(struct spilled_run *run)
{
    for (unsigned i = 0; i < run->n_ring; i++) {
        free(run->ring[i].slices);
        free(run->ring[i].blocks);
        duplicate_looks_release(&run->ring[i].looks);
    }
    free(run->ring);
    free(run->cut_at);
    free(run->sources);
    free(run->places);
}

/* Makes the label of the next run from its batches. */
static struct run_label make_label(const struct spill_totals *before, struct batch *const *batches,
                                   size_t n)
{
    struct run_label label = {.run = before->next_run, .before = before->last_run,
                              .end = batches[n - 1]->end};
    for (size_t i = 0; i < n; i++) {
        content_sum_join(&label.sum, &batches[i]->sum);
        label.any_placed |= batches[i]->any_placed;
    }
    return label;
}

static int label_run(struct spilled_run *run)
{
    uint8_t bytes[RUN_LABEL_BYTES];
    run->label.max_block_bytes = run->max_block_bytes;
    run_label_encode(&run->label, bytes);
    return run_store_label_run(run->stored, run->label.run, bytes, sizeof bytes);
}

/* After a write error: waits until no worker has a pack of the run, and resets the run so that it
   can be written again. */
static void forget_packs(struct spilled_run *run)
{
    crew_lock(run->crew);
    for (; run->ring_used > 0; run->ring_used--) {
        while (!run->ring[run->ring_at].done) crew_wait(run->crew);
        run->ring_at = (run->ring_at + 1) % run->n_ring;
    }
    crew_unlock(run->crew);
    for (unsigned i = 0; i < run->n_ring; i++) duplicate_looks_release(&run->ring[i].looks);
    run->n_records = run->max_block_bytes = 0;
    memset(run->cut_at, 0, run->n_sources * sizeof *run->cut_at);
}

/* Writes the run and hands it to the ender. Returns 0, or a code of the store. */
static int write_run(struct spilled_run *run)
{
    struct temp_store *store = run->spiller->settings.store;
    struct duplicates *duplicates = run->spiller->settings.duplicates;
    if (duplicates) duplicates_begin_run(duplicates);
    int r = run_store_begin_run(temp_store_runs(store), &run->stored);
    if (r == 0) r = spill_packs(run);
    if (r == 0) r = label_run(run);
    if (r == 0) {
        if (duplicates) duplicates_end_run(duplicates, run->label.run, run->n_records);
        const struct written_run written = {run->stored, run->label.sum.n_bytes, run->codec,
                                            run->n_runs_expected};
        return run_ender_take(temp_store_ender(store), &written);
    }
    if (r != RUN_STORE_AGAIN) crew_fail(run->crew);
    run_store_abandon_run(run->stored);
    forget_packs(run);
    if (duplicates && r == RUN_STORE_AGAIN && duplicates_undo_run(duplicates) < 0)
        r = RUN_STORE_ERROR;
    return r;
}

/* Collects the facts for the choice of a codec. */
static struct codec_sight look(struct spiller *spiller)
{
    const struct spill_settings *s = &spiller->settings;
    crew_lock(s->crew);
    const struct load_counts *counts = load_totals_locked(s->totals);
    struct run_ender_seconds seconds = run_ender_seconds(temp_store_ender(s->store));
    struct codec_sight sight = {
        .expected_bytes = counts->expected_bytes,
        .was_told = s->space.asked_bytes > 0,
        .raw_bytes_read = counts->sum.n_bytes,
        .raw_bytes_spilled = spiller->totals.raw_bytes,
        .put_seconds = seconds.put,
        .end_seconds = seconds.end,
        .wait_seconds = seconds.wait,
        .job_seconds = crew_job_seconds(s->crew),
    };
    crew_unlock(s->crew);
    return sight;
}

/* Chooses codec and block size for the run. Tells the store how many bytes are still to come. */
static void plan_run(struct spilled_run *run, const struct spill_totals *before)
{
    struct spiller *spiller = run->spiller;
    struct run_store *store = temp_store_runs(spiller->settings.store);
    struct codec_sight sight = look(spiller);
    uint64_t expected = sight.expected_bytes, done = before->raw_bytes;
    run->codec = codec_chooser_next(&spiller->codecs, store, &sight);
    run_store_expect(store, done, expected > done ? expected - done : 0);
    uint64_t n_expected = mem_budget_expect_runs(&run->budget, expected, before->n_runs, done);
    run->block_bytes = mem_budget_block_bytes(&run->budget, before->n_runs, (unsigned)n_expected);
    /* This estimate counts the run itself, too: it is used when the run has ended. */
    run->n_runs_expected = mem_budget_expect_runs(&run->budget, expected, before->n_runs + 1,
                                                  done + run->label.sum.n_bytes);
}

/* Warns if there is too little space; checks only once in a sort. How much is needed is measured on
   n sorted batches that are in no run. */
static void check_space(struct spiller *spiller, struct run_store *store,
                        struct batch *const *batches, size_t n)
{
    const struct spill_settings *s = &spiller->settings;
    struct load_counts counts;
    struct mem_budget budget;
    struct space_sight sight = {.budget = &budget, .store = store};
    load_totals_look(s->totals, &counts);
    batch_pool_budget(s->pool, &budget);
    sight.expected_bytes = counts.is_loading ? counts.expected_bytes : counts.sum.n_bytes;
    if (spiller->space_is_checked || sight.expected_bytes == 0) return;
    spiller->space_is_checked = true;
    sight.dirs = checkpoint_writer_directories(s->checkpoint, &sight.n_dirs);
    space_check(&s->space, &sight, batches, n);
}

/* Writes n sorted batches as one run. */
static int spill_run(struct spiller *spiller, struct batch *const *batches, size_t n)
{
    const struct spill_settings *s = &spiller->settings;
    struct spill_totals totals;
    if (temp_store_open(s->store) < 0) return -1;
    spill_look(spiller, &totals);
    struct spilled_run run = {
        .spiller = spiller,
        .crew = s->crew,
        .rules = s->rules,
        .label = make_label(&totals, batches, n),
        .record_growth = duplicates_growth(s->duplicates),
    };
    batch_pool_budget(s->pool, &run.budget);
    plan_run(&run, &totals);
    if (totals.n_runs == 0) check_space(spiller, temp_store_runs(s->store), batches, n);
    prepare_sources(&run, batches, n);
    int r;
    while ((r = write_run(&run)) == RUN_STORE_AGAIN) continue;
    if (r == 0) {
        totals.n_runs++;
        totals.last_run = totals.next_run++;
        totals.raw_bytes += run.label.sum.n_bytes;
        totals.open_bytes += run.max_block_bytes;
        crew_lock(s->crew);
        spiller->totals = totals;
        crew_unlock(s->crew);
    }
    release_run(&run);
    return r < 0 ? -1 : 0;
}

/* Spills the n oldest batches, and frees them for the reader. */
static int spill_oldest(struct spiller *spiller, size_t n)
{
    const struct spill_settings *s = &spiller->settings;
    struct batch **oldest = xcalloc(n, sizeof *oldest);
    int r = batch_pool_oldest(s->pool, n, oldest);
    if (r == 0) r = spill_run(spiller, oldest, n);
    if (r == 0)
        batch_pool_spilled(s->pool, n);
    else
        crew_fail(s->crew);                     /* the reader may be waiting for these batches */
    free(oldest);
    return r;
}

/* ---- the spiller ---- */

struct spiller *spill_create(const struct spill_settings *settings)
{
    struct spiller *spiller = xcalloc(1, sizeof *spiller);
    spiller->settings = *settings;
    spiller->totals.last_run = RUN_LABEL_NONE;
    spiller->codecs = (struct codec_chooser){.is_auto = settings->space.codec_auto,
                                             .fixed = settings->space.codec,
                                             .n_threads = settings->n_threads};
    return spiller;
}

void spill_destroy(struct spiller *spiller)
{
    free(spiller);
}

void spill_go_on(struct spiller *spiller, const struct spill_totals *totals)
{
    crew_lock(spiller->settings.crew);          /* the progress thread reads the totals */
    spiller->totals = *totals;
    crew_unlock(spiller->settings.crew);
}

static void *spill_while_loading(void *arg)
{
    struct spiller *spiller = arg;
    const struct spill_settings *s = &spiller->settings;
    const struct load_counts *counts;
    for (;;) {
        size_t n;
        crew_lock(s->crew);
        counts = load_totals_locked(s->totals);
        while ((n = batch_pool_n_due(s->pool, counts->expected_bytes)) == 0 &&
               counts->is_loading && !crew_failed(s->crew))
            crew_wait_for(s->crew, WAIT_SPILLER_BATCHES);
        bool go_on = counts->is_loading && !crew_failed(s->crew);
        crew_unlock(s->crew);
        if (!go_on || spill_oldest(spiller, n) < 0) return NULL;
    }
}

int spill_start(struct spiller *spiller)
{
    int error = thread_start(&spiller->thread, "spiller", spill_while_loading, spiller);
    if (error) diag_no_thread(error);
    return error ? -1 : 0;
}

void spill_join(struct spiller *spiller)
{
    (void)pthread_join(spiller->thread, NULL);
}

/* True if the merge has the memory that it needs. */
static bool merge_fits(const struct spiller *spiller, const struct mem_budget *budget)
{
    const struct spill_settings *s = &spiller->settings;
    struct run_store *store = temp_store_runs(s->store);
    size_t scan_bytes = store ? run_store_scan_bytes(store) : 0;
    return batch_pool_kept_bytes(s->pool) <=
           spill_policy_kept_bytes(budget, spiller->totals.open_bytes, scan_bytes);
}

int spill_to_fit(struct spiller *spiller)
{
    const struct spill_settings *s = &spiller->settings;
    for (;;) {
        struct run_ender *ender = temp_store_ender(s->store);
        struct mem_budget budget;
        if (ender && run_ender_drain(ender) < 0) return -1;
        if (crew_failed(s->crew)) return -1;
        batch_pool_budget(s->pool, &budget);
        size_t left = batch_pool_n_kept(s->pool);
        bool fits = merge_fits(spiller, &budget);
        if (left == 0 || (fits && !checkpoint_writer_needs_all_runs(s->checkpoint) &&
                          !duplicates_need_runs(s->duplicates)))
            return ender ? run_ender_settle(ender) : 0;
        if (spill_oldest(spiller, spill_policy_run_batches(&budget, left)) < 0) return -1;
    }
}

void spill_check_output(struct spiller *spiller)
{
    size_t n;
    struct batch *const *kept = batch_pool_kept(spiller->settings.pool, &n);
    check_space(spiller, NULL, kept, n);
}

void spill_look(struct spiller *spiller, struct spill_totals *totals)
{
    crew_lock(spiller->settings.crew);
    *totals = spiller->totals;
    crew_unlock(spiller->settings.crew);
}

const struct spill_totals *spill_locked(const struct spiller *spiller)
{
    crew_assert_locked(spiller->settings.crew);
    return &spiller->totals;
}

unsigned spill_n_runs(struct spiller *spiller)
{
    struct spill_totals totals;
    spill_look(spiller, &totals);
    return totals.n_runs;
}

enum codec_reason spill_codec_reason(const struct spiller *spiller)
{
    return spiller->codecs.reason;
}
