/* merge.c -- see merge.h. */
#include "pipeline/merge.h"

#include "util/diag.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>

struct merger {
    const struct merge_settings *settings;
    struct crew *crew;
    enum sort_order order;
    struct mem_budget budget;   /* as it is when loading has ended */
    struct segmenter *segmenter;
    struct feeders *feeders;    /* NULL: all is in memory */
    /* batches in memory */
    struct merge_source *kept;
    size_t n_kept;
    struct cut_place *places;
    size_t n_places, next_place;
    struct merge_bound place;   /* of the next one */
    /* dispatcher only */
    struct open_block **live;   /* open blocks not wholly below the last cut, by run and index */
    size_t n_live, live_room;
    uint64_t n_taken;           /* blocks */
    size_t gathered_bytes;      /* taken since the last cut, */
    size_t place_bytes;         /* of which from batches */
    struct bound last_cut;
    size_t limit_bytes;         /* for the memory of blocks */
    /* under the lock */
    struct segment **ring;      /* segments that are cut and not written, by number */
    uint64_t n_cut, n_written;
    bool all_cut;
};

/* ---- the writer ---- */

/* Waits for the next segment to be merged. NULL if there are no more, or the crew has failed. */
static struct segment *next_segment(struct merger *m)
{
    struct segment *segment = NULL;
    crew_lock(m->crew);
    while (!crew_failed(m->crew)) {
        segment = m->n_written < m->n_cut ? m->ring[m->n_written % m->budget.n_segments] : NULL;
        if ((segment && segment->done) || (!segment && m->all_cut)) break;
        crew_wait_for(m->crew, WAIT_WRITER_SEGMENTS);
    }
    crew_unlock(m->crew);
    return crew_failed(m->crew) ? NULL : segment;
}

static void *write_segments(void *arg)
{
    struct merger *m = arg;
    struct merge_counts *counts = m->settings->counts;
    struct sorted_output *output = m->settings->output;
    struct segment *segment;
    while ((segment = next_segment(m))) {
        double start = monotonic_seconds();
        if (sorted_output_write(output, segment) < 0) crew_fail(m->crew);
        crew_add_wait(m->crew, WAIT_WRITER_OUTPUT, monotonic_seconds() - start);
        crew_lock(m->crew);
        if (bam_writer_takes_bytes(&output->settings.format))
            counts->output_bytes += segment->out_bytes;
        counts->n_records += segment->n_records;
        counts->raw_bytes += segment->raw_bytes;
        m->ring[m->n_written++ % m->budget.n_segments] = NULL;
        crew_announce(m->crew);
        crew_unlock(m->crew);
        segment_destroy(segment);
    }
    return NULL;
}

/* ---- the dispatcher ---- */

/* Takes the block that is fed next and has it opened. */
static int take_block(struct merger *m, struct fed_block *fed)
{
    struct open_block *block = segmenter_open_block(m->segmenter, fed);
    if (!block) return -1;
    xgrow(&m->live, &m->live_room, m->n_live + 1, m->n_live + 64, sizeof *m->live);
    size_t at = m->n_live++;
    for (; at > 0; at--) {      /* blocks of a run come in order: only the run decides */
        if (m->live[at - 1]->source.run <= block->source.run) break;
        m->live[at] = m->live[at - 1];
    }
    m->live[at] = block;
    m->n_taken++;
    m->gathered_bytes += block->raw_bytes;
    return 0;
}

/* True if the block's last record lies below the frontier. */
static bool ends_below(const struct open_block *block, const struct bound *frontier)
{
    return merge_bound_compare(block->last.key, block->last.n_bytes, frontier->key,
                               frontier->n_bytes) < 0;
}

/* Bytes that were gathered and end below the frontier, about. */
static size_t complete_bytes(const struct merger *m, const struct bound *frontier)
{
    size_t complete = m->place_bytes;
    for (size_t i = 0; i < m->n_live; i++)
        if (ends_below(m->live[i], frontier)) complete += m->live[i]->raw_bytes;
    return complete;
}

/* Waits until another segment may be cut. */
static int wait_for_segment_slot(struct merger *m)
{
    crew_lock(m->crew);
    while (!crew_failed(m->crew) && m->n_cut - m->n_written >= m->budget.n_segments)
        crew_wait_for(m->crew, WAIT_DISPATCHER_SEGMENTS);
    crew_unlock(m->crew);
    return crew_failed(m->crew) ? -1 : 0;
}

/* Takes live blocks that end below the frontier off the list. */
static void close_blocks(struct merger *m, const struct bound *frontier)
{
    size_t n_left = 0;
    crew_lock(m->crew);
    for (size_t i = 0; i < m->n_live; i++) {
        struct open_block *block = m->live[i];
        if (ends_below(block, frontier))
            segmenter_drop_block(block);
        else
            m->live[n_left++] = block;
    }
    m->n_live = n_left;
    crew_unlock(m->crew);
}

/* Makes a segment of all records from the last cut up to the frontier; key NULL: up to the end. */
static int cut_segment(struct merger *m, const struct bound *frontier)
{
    if (wait_for_segment_slot(m) < 0) return -1;
    struct segment *segment =
        segment_create(m->segmenter, &m->last_cut, frontier, m->live, m->n_live);
    segment->n_blocks_needed = m->n_taken;
    free(m->last_cut.key);
    m->last_cut = bound_copy(frontier->key, frontier->n_bytes);
    m->gathered_bytes = m->place_bytes = 0;
    crew_lock(m->crew);
    m->ring[m->n_cut++ % m->budget.n_segments] = segment;
    crew_unlock(m->crew);
    close_blocks(m, frontier);
    return segmenter_merge(m->segmenter, segment);
}

/* True if blocks take more than their share of memory. */
static bool over_limit(struct merger *m)
{
    crew_lock(m->crew);
    bool over = segmenter_block_bytes(m->segmenter) > m->limit_bytes;
    crew_unlock(m->crew);
    return over;
}

/* Waits until blocks were closed or nothing is under way that could close any. */
static int wait_for_memory(struct merger *m)
{
    crew_lock(m->crew);
    while (!crew_failed(m->crew) && segmenter_block_bytes(m->segmenter) > m->limit_bytes &&
           m->n_written < m->n_cut)
        crew_wait_for(m->crew, WAIT_DISPATCHER_MEMORY);
    crew_unlock(m->crew);
    return crew_failed(m->crew) ? -1 : 0;
}

/* Cuts at the frontier if a segment's worth lies below it, or if memory is short. */
static int maybe_cut(struct merger *m, const struct bound *frontier)
{
    size_t want = m->budget.segment_bytes;
    bool over = over_limit(m);
    if (m->gathered_bytes < want && !over) return 0;
    size_t complete = complete_bytes(m, frontier);
    if ((complete >= want || (over && complete > 0)) && cut_segment(m, frontier) < 0) return -1;
    return over ? wait_for_memory(m) : 0;
}

/* Takes blocks and places in key order, cutting as they come. */
static int dispatch_all(struct merger *m)
{
    static const struct bound end = {NULL, 0};
    for (;;) {
        if (crew_failed(m->crew)) return -1;
        struct fed_block *fed = NULL;
        int have_block = m->feeders ? feeders_next(m->feeders, &fed) : 0;
        if (have_block < 0) return -1;
        bool have_place = m->next_place < m->n_places;
        if (!have_block && !have_place) return cut_segment(m, &end);
        const struct cut_place *next = have_place ? &m->places[m->next_place] : NULL;
        if (next) merge_bound_set(&m->place, m->order, next->source, next->index);
        const struct bound place = {m->place.key, m->place.n_bytes};
        if (have_block && (!next || merge_bound_compare(fed->key, fed->key_bytes, place.key,
                                                        place.n_bytes) < 0)) {
            const struct bound first = {fed->key, fed->key_bytes};
            if (maybe_cut(m, &first) < 0 || take_block(m, fed) < 0) return -1;
            feeders_drop(m->feeders);
        } else {
            if (maybe_cut(m, &place) < 0) return -1;
            m->gathered_bytes += next->n_bytes;
            m->place_bytes += next->n_bytes;
            m->next_place++;
        }
    }
}

/* ---- the phase ---- */

/* Makes sources of the batches that are in memory; their runs come after those in the store. */
static void prepare_kept(struct merger *m)
{
    size_t n;
    struct batch *const *batches = batch_pool_kept(m->settings->pool, &n);
    size_t *raw_bytes = xcalloc(n, sizeof *raw_bytes);
    m->kept = xcalloc(n, sizeof *m->kept);
    m->n_kept = n;
    for (size_t i = 0; i < n; i++) {
        const struct batch *batch = batches[i];
        m->kept[i] = (struct merge_source){batch->entries, batch->n_records,
                                           m->settings->next_run + (uint32_t)i, 0};
        raw_bytes[i] = batch_raw_bytes(batch);
    }
    m->places = merge_cut_places(m->order, m->kept, raw_bytes, n, m->budget.segment_bytes / 8,
                                 &m->n_places);
    free(raw_bytes);
}

/* Splits what memory is left among blocks and what feeders read ahead. Returns the bytes of the
   feeders' queues. */
static size_t plan_memory(struct merger *m)
{
    const struct merge_settings *s = m->settings;
    const struct mem_budget *budget = &m->budget;
    size_t out_bytes = budget->n_segments * budget->segment_bytes;
    size_t queue_bytes = budget->total_bytes / 16;
    size_t read_bytes = s->store ? run_store_scan_bytes(s->store) + queue_bytes : 0;
    size_t fixed = batch_pool_kept_bytes(s->pool) + out_bytes + read_bytes + s->open_bytes / 2;
    size_t least = s->open_bytes + out_bytes;
    m->limit_bytes = budget->total_bytes > fixed ? budget->total_bytes - fixed : 0;
    if (m->limit_bytes < least) m->limit_bytes = least;
    return queue_bytes;
}

static int prepare_merge(struct merger *m)
{
    const struct merge_settings *s = m->settings;
    struct sorted_output *output = s->output;
    batch_pool_drop_free(s->pool);
    crew_lock(m->crew);
    crew_wait_for_jobs(m->crew);
    crew_unlock(m->crew);
    batch_pool_budget(s->pool, &m->budget);
    prepare_kept(m);
    struct feed_settings feed = {
        .crew = m->crew,
        .store = s->store,
        .dropped_runs = s->dropped_runs,
        .n_dropped = s->n_dropped,
        .queue_bytes = plan_memory(m),
    };
    struct segment_settings segments = {
        .crew = m->crew,
        .rules = s->rules,
        .header = s->header,
        .format = &output->settings.format,
        .level = output->settings.level,
        .index = output->index,
        .kept = m->kept,
        .n_kept = m->n_kept,
    };
    m->ring = xcalloc(m->budget.n_segments, sizeof *m->ring);
    m->segmenter = segmenter_create(&segments);
    if (s->store) m->feeders = feeders_start(&feed);
    return s->store && !m->feeders ? -1 : 0;
}

static int dispatch_and_write(struct merger *m)
{
    pthread_t writer_thread;
    int error = pthread_create(&writer_thread, NULL, write_segments, m);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    if (dispatch_all(m) < 0) crew_fail(m->crew);
    crew_lock(m->crew);
    m->all_cut = true;
    crew_announce(m->crew);
    crew_unlock(m->crew);
    (void)pthread_join(writer_thread, NULL);
    feeders_stop(m->feeders);
    m->feeders = NULL;
    crew_lock(m->crew);
    crew_wait_for_jobs(m->crew);
    crew_unlock(m->crew);
    return crew_failed(m->crew) ? -1 : 0;
}

static int check_content(const struct merge_settings *s, const struct content_sum *out)
{
    const struct content_sum *in = s->sum;
    if (content_sum_equal(in, out)) return 0;
    if (s->resumed_path)
        diag_damaged("the temporary data in '%s' are damaged: of %" PRIu64 " records %" PRIu64
                     " were found, or others; sort the input again",
                     s->resumed_path, in->n_records, out->n_records);
    else
        diag_error("the output is not what was read: %" PRIu64 " records in, %" PRIu64
                   " out, checksums %016" PRIx64 " and %016" PRIx64 "; please report this",
                   in->n_records, out->n_records, in->hash, out->hash);
    return -1;
}

/* With all threads and jobs done. After a failure blocks and segments may be anywhere. */
static void release_merger(struct merger *m)
{
    feeders_stop(m->feeders);
    for (unsigned i = 0; m->ring && i < m->budget.n_segments; i++) {
        if (!m->ring[i]) continue;
        segment_drop_blocks(m->ring[i]);
        segment_destroy(m->ring[i]);
    }
    for (size_t i = 0; i < m->n_live; i++) segmenter_drop_block(m->live[i]);
    segmenter_destroy(m->segmenter);
    free(m->last_cut.key);
    merge_bound_release(&m->place);
    free(m->ring);
    free(m->live);
    free(m->places);
    free(m->kept);
}

int merge_to_output(const struct merge_settings *settings, struct content_sum *sum_out)
{
    struct merger m = {
        .settings = settings,
        .crew = settings->crew,
        .order = settings->rules->order,
    };
    int r = prepare_merge(&m);
    if (r == 0) r = sorted_output_open(settings->output, settings->header, settings->sum->n_bytes);
    if (r == 0) r = dispatch_and_write(&m);
    *sum_out = segmenter_sum(m.segmenter);
    if (r == 0) r = check_content(settings, sum_out);
    release_merger(&m);
    return r;
}
