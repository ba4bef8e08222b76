/* merge.c -- see merge.h. */
#include "pipeline/merge.h"

#include "pipeline/feed.h"
#include "pipeline/thread.h"
#include "util/diag.h"
#include "util/loser_tree.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct merger {
    const struct merge_settings *settings;
    struct crew *crew;
    const struct sort_rules *rules;
    struct mem_budget budget;   /* a copy, made after loading */
    struct segmenter *segmenter;
    struct run_scan **scans;    /* of all databases */
    size_t n_scans;
    struct feeders *feeders;    /* NULL: all is in memory */
    struct merge_inputs *inputs;        /* NULL: runs are in the store */
    /* batches in memory */
    struct merge_source *kept;
    size_t n_kept;
    struct cut_place *places;
    size_t n_places, next_place;
    struct merge_bound place;   /* bound of the next place */
    /* dispatcher only */
    size_t n_streams;           /* of blocks: feeders or inputs */
    struct merge_limit *fronts; /* of the next block of each, and of the next place; NULL: it has
                                   ended */
    struct loser_tree tree;     /* of fronts */
    struct open_block **live;   /* open blocks not wholly below the last cut, by run and index */
    size_t n_live, live_room;
    uint64_t n_taken;           /* number of blocks taken */
    size_t gathered_bytes;      /* bytes taken since the last cut, from blocks and batches */
    size_t complete_bytes;      /* the part of it below the frontier, an estimate: in batches, and in
                                   live blocks that end there */
    struct merge_bound last_cut;
    size_t limit_bytes;         /* limit for the memory of blocks */
    size_t segment_bytes;       /* of the records of a segment */
    /* under the lock */
    struct segment **ring;      /* segments that are cut but not written, by number */
    uint64_t n_cut, n_written;
    size_t ring_bytes;          /* of records in these segments, about */
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
        if (sorted_output_write(output, segment->outputs) < 0 ||
            observed_parts_combine(&segment->observed) < 0)
            crew_fail(m->crew);
        crew_add_wait(m->crew, WAIT_WRITER_OUTPUT, monotonic_seconds() - start);
        crew_lock(m->crew);
        if (output_format_has_bytes(&output->files[0].settings.format))
            counts->output_bytes += segment->outputs[0].n_bytes;
        counts->n_records += segment->n_records;
        counts->raw_bytes += segment->raw_bytes;
        m->ring[m->n_written++ % m->budget.n_segments] = NULL;
        m->ring_bytes -= segment->expected_bytes;
        crew_announce(m->crew);
        crew_unlock(m->crew);
        segment_destroy(segment);
    }
    return NULL;
}

/* ---- the dispatcher ---- */

/* Adds a block to the list of live blocks, after all others of its run: they arrive in order. */
static void add_live(struct merger *m, struct open_block *block)
{
    xgrow(&m->live, &m->live_room, m->n_live + 1, m->n_live + 64, sizeof *m->live);
    size_t at = 0, end = m->n_live;
    while (at < end) {
        size_t middle = at + (end - at) / 2;
        if (m->live[middle]->source.run <= block->source.run)
            at = middle + 1;
        else
            end = middle;
    }
    memmove(m->live + at + 1, m->live + at, (m->n_live - at) * sizeof *m->live);
    m->live[at] = block;
    m->n_live++;
    m->gathered_bytes += block->grown_bytes;
}

/* Notes which live blocks end below the frontier: they will not come into a later segment. */
static void note_complete(struct merger *m, const struct merge_limit *frontier)
{
    for (size_t i = 0; i < m->n_live; i++) {
        struct open_block *block = m->live[i];
        const struct merge_limit last = merge_limit_of(&block->last);
        if (block->is_complete || merge_bound_compare(&last, frontier) >= 0) continue;
        block->is_complete = true;
        m->complete_bytes += block->grown_bytes;
    }
}

/* With the lock held: true if another segment of n_bytes may be cut. If large records make segments
   larger than planned, fewer of them may be on their way. */
static bool has_segment_slot(const struct merger *m, size_t n_bytes)
{
    const struct mem_budget *budget = &m->budget;
    size_t most = 2 * budget->n_segments * budget->segment_bytes;
    uint64_t n_used = m->n_cut - m->n_written;
    return n_used == 0 || (n_used < budget->n_segments && m->ring_bytes + n_bytes <= most);
}

/* With the lock held: the memory that the next segment counts for, about. A long record of SAM is
   there as a record of htslib, as a line, and twice in the output while this grows; that of columns
   as values, which are longer, and as a message, while this grows. Columns of short records may
   take many times as much as these: each has a null where a record lacks the tag. Arrays of small
   numbers take five times as much in lines and columns. */
static size_t expect_segment(const struct merger *m)
{
    const struct sorted_output *output = m->settings->output;
    bool is_long = m->gathered_bytes > 2 * m->budget.segment_bytes, may_be_large = false;
    size_t n_times = 0;
    for (unsigned i = 0; i < output->n_files; i++) {
        const struct output_format *format = &output->files[i].settings.format;
        bool is_large = output_format_has_columns(format) || output_format_is_sam(format);
        may_be_large |= is_large;
        n_times += is_large ? 4 : 1;
    }
    size_t n_bytes = is_long ? n_times * m->gathered_bytes : m->gathered_bytes;
    if (!may_be_large) return n_bytes;
    size_t large_bytes = segmenter_expect_large(m->segmenter, m->gathered_bytes);
    return large_bytes > n_bytes ? large_bytes : n_bytes;
}

/* Waits until another segment may be cut. */
static int wait_for_segment_slot(struct merger *m)
{
    crew_lock(m->crew);
    while (!crew_failed(m->crew) && !has_segment_slot(m, expect_segment(m)))
        crew_wait_for(m->crew, WAIT_DISPATCHER_SEGMENTS);
    crew_unlock(m->crew);
    return crew_failed(m->crew) ? -1 : 0;
}

/* Takes complete blocks off the list of live ones. */
static void close_blocks(struct merger *m)
{
    size_t n_left = 0;
    crew_lock(m->crew);
    for (size_t i = 0; i < m->n_live; i++) {
        if (m->live[i]->is_complete)
            segmenter_drop_block(m->live[i]);
        else
            m->live[n_left++] = m->live[i];
    }
    m->n_live = n_left;
    crew_unlock(m->crew);
}

/* Makes a segment of all records from the last cut up to the frontier, for which note_complete was
   called. */
static int cut_segment(struct merger *m, const struct merge_limit *frontier)
{
    if (wait_for_segment_slot(m) < 0) return -1;
    const struct merge_limit last_cut = merge_limit_of(&m->last_cut);
    struct segment *segment = segment_create(m->segmenter, &last_cut, frontier, m->live,
                                             m->n_live);
    segment->n_blocks_needed = m->n_taken;
    merge_bound_copy(&m->last_cut, frontier);
    crew_lock(m->crew);
    segment->expected_bytes = expect_segment(m);
    m->gathered_bytes = m->complete_bytes = 0;
    m->ring[m->n_cut++ % m->budget.n_segments] = segment;
    m->ring_bytes += segment->expected_bytes;
    crew_unlock(m->crew);
    close_blocks(m);
    return segmenter_merge(m->segmenter, segment);
}

/* With the lock held: true if blocks take more than their share of memory. Long records that are
   read ahead (--merge) take from that share. */
static bool is_over_limit(const struct merger *m)
{
    size_t excess = m->inputs ? merge_inputs_excess_bytes(m->inputs) : 0;
    return segmenter_block_bytes(m->segmenter) + excess > m->limit_bytes;
}

/* Waits until blocks take no more than their share, or all segments that were cut are written. */
static int wait_for_memory(struct merger *m)
{
    crew_lock(m->crew);
    while (!crew_failed(m->crew) && is_over_limit(m) && m->n_written < m->n_cut)
        crew_wait_for(m->crew, WAIT_DISPATCHER_MEMORY);
    crew_unlock(m->crew);
    return crew_failed(m->crew) ? -1 : 0;
}

/* Cuts at the frontier if a segment's worth lies below it, or if memory is short. */
static int maybe_cut(struct merger *m, const struct merge_limit *frontier)
{
    size_t want = m->segment_bytes;
    crew_lock(m->crew);
    bool over = is_over_limit(m);
    crew_unlock(m->crew);
    if (m->gathered_bytes < want && !over) return 0;
    note_complete(m, frontier);
    bool has_enough = m->complete_bytes >= (over ? 1 : want);
    if (has_enough && cut_segment(m, frontier) < 0) return -1;
    return over ? wait_for_memory(m) : 0;
}

/* ---- all blocks and places ---- */

static bool comes_first(const void *fronts, size_t a, size_t b)
{
    const struct merge_limit *limits = fronts;
    return merge_bound_compare(&limits[a], &limits[b]) < 0;
}

/* Waits for the next block of stream i, or looks at the next place, and sets its front. */
static int find_front(struct merger *m, size_t i)
{
    struct merge_limit *front = &m->fronts[i];
    struct fed_block *fed;
    if (i < m->n_streams && m->inputs) return merge_inputs_first(m->inputs, i, front);
    *front = (struct merge_limit){NULL, 0};
    if (i < m->n_streams) {
        int r = feeders_first(m->feeders, i, &fed);
        if (r > 0) *front = (struct merge_limit){fed->key, fed->key_bytes};
        return r;
    }
    if (m->next_place < m->n_places) {
        const struct cut_place *place = &m->places[m->next_place];
        merge_bound_set(&m->place, m->rules->order, place->source, place->index);
        *front = merge_limit_of(&m->place);
    }
    return 0;
}

/* Takes the next place, or the next block of stream i; one of the store is opened by a worker. */
static int take(struct merger *m, size_t i)
{
    struct fed_block *fed;
    if (i == m->n_streams) {
        size_t n_bytes = m->places[m->next_place++].n_bytes;
        m->gathered_bytes += n_bytes;
        m->complete_bytes += n_bytes;
        return 0;
    }
    if (m->inputs) {
        add_live(m, merge_inputs_take(m->inputs, i));
        return 0;
    }
    if (feeders_first(m->feeders, i, &fed) < 0) return -1;
    struct open_block *block = segmenter_open_block(m->segmenter, fed);
    if (!block) return -1;
    m->n_taken++;
    add_live(m, block);
    feeders_drop(m->feeders, i);
    return 0;
}

/* Takes blocks and places in key order, cutting as they come. */
static int dispatch_all(struct merger *m)
{
    size_t n = m->n_streams + 1;
    m->fronts = xcalloc(n, sizeof *m->fronts);
    for (size_t i = 0; i < n; i++)
        if (find_front(m, i) < 0) return -1;
    loser_tree_build(&m->tree, n, comes_first, m->fronts);
    while (!crew_failed(m->crew)) {
        size_t i = loser_tree_first(&m->tree);
        const struct merge_limit *frontier = &m->fronts[i];
        if (!frontier->bytes) {
            note_complete(m, frontier);
            return cut_segment(m, frontier);
        }
        if (maybe_cut(m, frontier) < 0 || take(m, i) < 0 || find_front(m, i) < 0) return -1;
        loser_tree_replay(&m->tree, i, comes_first, m->fronts);
    }
    return -1;
}

/* ---- the phase ---- */

/* Makes merge sources of the batches in memory. Their run numbers follow those in the store. */
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
        raw_bytes[i] = batch->raw_bytes;
    }
    m->places = merge_cut_places(m->rules, m->kept, raw_bytes, n, m->segment_bytes / 8,
                                 &m->n_places);
    free(raw_bytes);
}

/* Bytes of the records of a segment: fewer than planned if the columns are so many, and the records
   so short, that the nulls take more memory than the records. */
static size_t plan_segments(const struct merger *m)
{
    enum { LEAST_BYTES = 16 << 10 };
    const struct sorted_output *output = m->settings->output;
    size_t planned = m->budget.segment_bytes, null_bytes = 0;
    struct load_counts read;
    load_totals_look(m->settings->totals, &read);
    for (unsigned i = 0; i < output->n_files; i++) {
        const struct column_output *columns = output->files[i].settings.columns;
        if (columns) null_bytes += column_schema_null_bytes(columns->schema);
    }
    double all_nulls = (double)read.sum.n_records * (double)null_bytes;
    if (all_nulls <= (double)read.sum.n_bytes) return planned;
    double n_bytes = (double)planned * (double)read.sum.n_bytes / all_nulls;
    return n_bytes > LEAST_BYTES ? (size_t)n_bytes : LEAST_BYTES;
}

/* Divides the memory that is left between open blocks and the feeders' queues. Returns the bytes
   of the queues. */
static size_t plan_memory(struct merger *m)
{
    const struct merge_settings *s = m->settings;
    const struct mem_budget *budget = &m->budget;
    size_t out_bytes = (budget->segment_factor - 1) * budget->n_segments * budget->segment_bytes;
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
    batch_pool_drop_free(s->pool);
    (void)crew_finish_jobs(m->crew);
    batch_pool_budget(s->pool, &m->budget);
    m->segment_bytes = plan_segments(m);
    prepare_kept(m);
    if (s->store) m->n_scans = run_store_scan(s->store, &m->scans);
    const struct feed_settings feed = {
        .crew = m->crew,
        .scans = m->scans,
        .n_scans = m->n_scans,
        .dropped_runs = s->dropped_runs,
        .n_dropped = s->n_dropped,
        .queue_bytes = plan_memory(m),
    };
    m->ring = xcalloc(m->budget.n_segments, sizeof *m->ring);
    m->segmenter = segmenter_create(s, m->kept, m->n_kept, m->segment_bytes);
    if (s->streams) {
        m->n_streams = s->streams->n_inputs;
        m->limit_bytes = s->streams->share.block_bytes;
        m->inputs = merge_inputs_start(s->streams, m->segmenter, m->rules, s->header);
        return m->inputs ? 0 : -1;
    }
    m->n_streams = m->n_scans;
    if (s->store) m->feeders = feeders_start(&feed);
    return s->store && !m->feeders ? -1 : 0;
}

static int dispatch_and_write(struct merger *m)
{
    pthread_t writer_thread;
    int error = thread_start(&writer_thread, "writer", write_segments, m);
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
    merge_inputs_stop(m->inputs);
    return crew_finish_jobs(m->crew);
}

static int check_content(const struct merge_settings *s, const struct content_sum *in,
                         const struct content_sum *out)
{
    if (content_sum_equal(in, out)) return 0;
    if (s->resumed_path)
        diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: of %" PRIu64 " records %"
                      PRIu64 " were found, or others; sort the input again",
                      s->resumed_path, in->n_records, out->n_records);
    else
        diag_error("the output is not what was read: %" PRIu64 " records in, %" PRIu64
                   " out, checksums %016" PRIx64 " and %016" PRIx64 "; please report this",
                   in->n_records, out->n_records, in->hash, out->hash);
    return -1;
}

/* With all threads and jobs done. After a failure frees the blocks and segments that are left. */
static void release_merger(struct merger *m)
{
    feeders_stop(m->feeders);
    merge_inputs_stop(m->inputs);
    (void)crew_finish_jobs(m->crew);    /* if the output could not be opened some still work */
    for (unsigned i = 0; m->ring && i < m->budget.n_segments; i++) {
        if (!m->ring[i]) continue;
        segment_drop_blocks(m->ring[i]);
        segment_destroy(m->ring[i]);
    }
    for (size_t i = 0; i < m->n_live; i++) segmenter_drop_block(m->live[i]);
    merge_inputs_destroy(m->inputs);
    merge_bound_release(&m->last_cut);
    merge_bound_release(&m->place);
    segmenter_destroy(m->segmenter);
    for (size_t i = 0; i < m->n_scans; i++) run_scan_close(m->scans[i]);
    free(m->scans);
    loser_tree_release(&m->tree);
    free(m->fronts);
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
        .rules = settings->rules,
    };
    int r = prepare_merge(&m);
    if (r == 0 && !m.inputs)
        r = sorted_output_open(settings->output, settings->header, settings->sum->n_bytes);
    if (r == 0) r = dispatch_and_write(&m);
    *sum_out = segmenter_sum(m.segmenter);
    if (r == 0) {
        const struct content_sum in = m.inputs ? merge_inputs_sum(m.inputs) : *settings->sum;
        r = check_content(settings, &in, sum_out);
    }
    release_merger(&m);
    return r;
}
