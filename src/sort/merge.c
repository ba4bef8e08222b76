/* merge.c -- see merge.h. */
#include "sort/merge.h"

#include "os/thread_pool.h"
#include "spill/run_reader.h"
#include "util/diag.h"
#include "util/loser_tree.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct merger {
    struct sort_context *sort;
    const struct input_streams_settings *streams;       /* with --merge, else NULL */
    struct threads *threads;
    const struct sort_rules *rules;
    struct run_store *store;    /* NULL: all records are in memory or in the inputs */
    /* copies, made after loading */
    struct memory_budget budget;
    struct spill_totals spilled;
    struct load_counts read;
    struct output_chunker *output_chunker;
    struct run_scan **scans;    /* of all databases */
    size_t n_scans;
    struct run_readers *run_readers; /* NULL: no runs */
    struct merge_inputs *inputs;        /* NULL: runs are in the store */
    /* sort buffers in memory */
    struct merge_source *kept;
    size_t n_kept;
    struct cut_place *places;
    size_t n_places, next_place;
    struct merge_bound place;   /* bound of the next place */
    /* dispatcher only */
    size_t n_streams;           /* of blocks: run readers or inputs */
    struct merge_limit *fronts; /* of the next block of each stream, and of the next place; NULL:
                                   ended */
    struct loser_tree tree;     /* of fronts */
    struct open_block **live;   /* open blocks not wholly below the last cut, by run and index */
    size_t n_live, live_room;
    uint64_t n_taken;           /* blocks taken */
    size_t gathered_bytes;      /* bytes taken since the last cut, from blocks and sort buffers */
    size_t complete_bytes; /* estimate of gathered bytes below the frontier: in sort buffers and in
                              complete live blocks */
    struct merge_bound last_cut;
    size_t limit_bytes;         /* limit for the memory of blocks */
    size_t chunk_bytes;         /* of the records of an output chunk */
    /* under the lock */
    struct output_chunk **ring; /* output chunks cut but not written, by number */
    uint64_t n_cut, n_written;
    size_t ring_bytes;          /* estimated bytes of records in the ring */
    bool all_cut;
};

/* ---- the writer ---- */

/* Waits for the next output chunk to be merged. NULL if there are no more, or the thread pool has
 * failed. */
static struct output_chunk *next_chunk(struct merger *m)
{
    struct output_chunk *output_chunk = NULL;
    thread_pool_lock(m->threads);
    while (!thread_pool_failed(m->threads)) {
        output_chunk = m->n_written < m->n_cut ? m->ring[m->n_written % m->budget.n_chunks] : NULL;
        if ((output_chunk && output_chunk->done) || (!output_chunk && m->all_cut)) break;
        thread_pool_wait_for(m->threads, WAIT_WRITER_CHUNKS);
    }
    thread_pool_unlock(m->threads);
    return thread_pool_failed(m->threads) ? NULL : output_chunk;
}

static void *write_chunk(void *arg)
{
    struct merger *m = arg;
    struct merge_counts *counts = &m->sort->merged;
    struct sorted_output *output = &m->sort->output;
    struct output_chunk *output_chunk;
    while ((output_chunk = next_chunk(m))) {
        double start = monotonic_seconds();
        if (sorted_output_write(output, output_chunk->outputs) < 0 ||
            observed_parts_combine(&output_chunk->observed) < 0)
            thread_pool_fail(m->threads);
        thread_pool_add_wait(m->threads, WAIT_WRITER_OUTPUT, monotonic_seconds() - start);
        thread_pool_lock(m->threads);
        if (output_format_has_bytes(&output->files[0].settings.format))
            counts->output_bytes += output_chunk->outputs[0].n_bytes;
        counts->n_records += output_chunk->n_records;
        counts->raw_bytes += output_chunk->raw_bytes;
        m->ring[m->n_written++ % m->budget.n_chunks] = NULL;
        m->ring_bytes -= output_chunk->expected_bytes;
        thread_pool_announce(m->threads);
        thread_pool_unlock(m->threads);
        output_chunk_destroy(output_chunk);
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

/* Marks live blocks that end below the frontier as complete: no later output chunk needs them. */
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

/* With the lock held: true if another output chunk of n_bytes may be cut. If large records make
   output chunks larger than planned, fewer may be in progress. */
static bool has_chunk_slot(const struct merger *m, size_t n_bytes)
{
    const struct memory_budget *budget = &m->budget;
    size_t most = 2 * budget->n_chunks * budget->chunk_bytes;
    uint64_t n_used = m->n_cut - m->n_written;
    return n_used == 0 || (n_used < budget->n_chunks && m->ring_bytes + n_bytes <= most);
}

/* With the lock held: estimates the memory of the next output chunk. For SAM, a long record is held
   as bam1_t, as a line, and twice in the output while that is reallocated; for columns, as values,
   which are larger, and as a message, while that grows. Columns of short records may take many
   times their size, because each record that lacks a tag adds a null. Arrays of small numbers take
   five times their size in lines and columns. */
static size_t expect_chunk(const struct merger *m)
{
    const struct sorted_output *output = &m->sort->output;
    bool is_long = m->gathered_bytes > 2 * m->budget.chunk_bytes, may_be_large = false;
    size_t n_times = 0;
    for (unsigned i = 0; i < output->n_files; i++) {
        const struct output_format *format = &output->files[i].settings.format;
        bool is_large = output_format_has_columns(format) || output_format_is_sam(format);
        may_be_large |= is_large;
        n_times += is_large ? 4 : 1;
    }
    size_t n_bytes = is_long ? n_times * m->gathered_bytes : m->gathered_bytes;
    if (!may_be_large) return n_bytes;
    size_t large_bytes = (size_t)(m->output_chunker->expansion * (double)m->gathered_bytes);
    return large_bytes > n_bytes ? large_bytes : n_bytes;
}

/* Waits until another output chunk may be cut. */
static int wait_for_chunk_slot(struct merger *m)
{
    thread_pool_lock(m->threads);
    while (!thread_pool_failed(m->threads) && !has_chunk_slot(m, expect_chunk(m)))
        thread_pool_wait_for(m->threads, WAIT_DISPATCHER_CHUNKS);
    thread_pool_unlock(m->threads);
    return thread_pool_failed(m->threads) ? -1 : 0;
}

/* Removes complete blocks from the live ones. */
static void close_blocks(struct merger *m)
{
    size_t n_left = 0;
    thread_pool_lock(m->threads);
    for (size_t i = 0; i < m->n_live; i++) {
        if (m->live[i]->is_complete)
            output_chunker_drop_block(m->live[i]);
        else
            m->live[n_left++] = m->live[i];
    }
    m->n_live = n_left;
    thread_pool_unlock(m->threads);
}

/* Makes an output chunk of all records from the last cut up to the frontier, after
   note_complete. */
static int cut_chunk(struct merger *m, const struct merge_limit *frontier)
{
    if (wait_for_chunk_slot(m) < 0) return -1;
    const struct merge_limit last_cut = merge_limit_of(&m->last_cut);
    struct output_chunk *output_chunk =
        output_chunk_create(m->output_chunker, &last_cut, frontier, m->live, m->n_live);
    output_chunk->n_blocks_needed = m->n_taken;
    merge_bound_copy(&m->last_cut, frontier);
    thread_pool_lock(m->threads);
    output_chunk->expected_bytes = expect_chunk(m);
    m->gathered_bytes = m->complete_bytes = 0;
    m->ring[m->n_cut++ % m->budget.n_chunks] = output_chunk;
    m->ring_bytes += output_chunk->expected_bytes;
    thread_pool_unlock(m->threads);
    close_blocks(m);
    return output_chunker_merge(m->output_chunker, output_chunk);
}

/* With the lock held: true if blocks exceed their share of memory, which includes long records that
   are read ahead (--merge). */
static bool is_over_limit(const struct merger *m)
{
    size_t excess = m->inputs ? input_streams_excess_bytes(m->inputs->streams) : 0;
    return m->output_chunker->block_bytes + excess > m->limit_bytes;
}

/* Waits until blocks fit their share, or all output chunks that were cut are written. */
static int wait_for_memory(struct merger *m)
{
    thread_pool_lock(m->threads);
    while (!thread_pool_failed(m->threads) && is_over_limit(m) && m->n_written < m->n_cut)
        thread_pool_wait_for(m->threads, WAIT_DISPATCHER_MEMORY);
    thread_pool_unlock(m->threads);
    return thread_pool_failed(m->threads) ? -1 : 0;
}

/* Cuts at the frontier if enough records for an output chunk are below it, or if memory is
   short. */
static int maybe_cut(struct merger *m, const struct merge_limit *frontier)
{
    size_t want = m->chunk_bytes;
    thread_pool_lock(m->threads);
    bool over = is_over_limit(m);
    thread_pool_unlock(m->threads);
    if (m->gathered_bytes < want && !over) return 0;
    note_complete(m, frontier);
    bool has_enough = m->complete_bytes >= (over ? 1 : want);
    if (has_enough && cut_chunk(m, frontier) < 0) return -1;
    return over ? wait_for_memory(m) : 0;
}

/* ---- taking blocks and places ---- */

static bool comes_first(const void *fronts, size_t a, size_t b)
{
    const struct merge_limit *limits = fronts;
    return merge_bound_compare(&limits[a], &limits[b]) < 0;
}

/* Sets front i: waits for the next block of stream i, or finds the next place. */
static int find_front(struct merger *m, size_t i)
{
    struct merge_limit *front = &m->fronts[i];
    struct stored_block *queued;
    if (i < m->n_streams && m->inputs) return merge_inputs_first(m->inputs, i, front);
    *front = (struct merge_limit){NULL, 0};
    if (i < m->n_streams) {
        int r = run_readers_first(m->run_readers, i, &queued);
        if (r > 0) *front = (struct merge_limit){queued->key, queued->key_bytes};
        return r;
    }
    if (m->next_place < m->n_places) {
        const struct cut_place *place = &m->places[m->next_place];
        merge_bound_set(&m->place, m->rules->order, place->source, place->index);
        *front = merge_limit_of(&m->place);
    }
    return 0;
}

/* Takes the next block of stream i, or the next place; submits the opening of a stored block. */
static int take(struct merger *m, size_t i)
{
    struct stored_block *queued;
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
    if (run_readers_first(m->run_readers, i, &queued) < 0) return -1;
    struct open_block *block = output_chunker_open_block(m->output_chunker, queued);
    if (!block) return -1;
    m->n_taken++;
    add_live(m, block);
    run_readers_drop(m->run_readers, i);
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
    while (!thread_pool_failed(m->threads)) {
        size_t i = loser_tree_first(&m->tree);
        const struct merge_limit *frontier = &m->fronts[i];
        if (!frontier->bytes) {
            note_complete(m, frontier);
            return cut_chunk(m, frontier);
        }
        if (maybe_cut(m, frontier) < 0 || take(m, i) < 0 || find_front(m, i) < 0) return -1;
        loser_tree_replay(&m->tree, i, comes_first, m->fronts);
    }
    return -1;
}

/* ---- the phase ---- */

/* Makes merge sources of the sort buffers in memory, with run numbers after those in the store. */
static void prepare_kept(struct merger *m)
{
    size_t n;
    struct sort_buffer *const *buffers = sort_buffer_pool_kept(m->sort->pool, &n);
    size_t *raw_bytes = xcalloc(n, sizeof *raw_bytes);
    m->kept = xcalloc(n, sizeof *m->kept);
    m->n_kept = n;
    for (size_t i = 0; i < n; i++) {
        const struct sort_buffer *buffer = buffers[i];
        m->kept[i] = (struct merge_source){buffer->entries, buffer->n_records,
                                           m->spilled.next_run + (uint32_t)i, 0};
        raw_bytes[i] = buffer->raw_bytes;
    }
    m->places = merge_cut_places(m->rules, m->kept, raw_bytes, n, m->chunk_bytes / 8, &m->n_places);
    free(raw_bytes);
}

/* Bytes of records in an output chunk: fewer than planned if the nulls of many columns take more
   memory than short records. */
static size_t plan_chunk(const struct merger *m)
{
    enum { LEAST_BYTES = 16 << 10 };
    const struct sorted_output *output = &m->sort->output;
    size_t planned = m->budget.chunk_bytes, null_bytes = 0;
    const struct content_sum *sum = &m->read.sum;
    for (unsigned i = 0; i < output->n_files; i++) {
        const struct column_output *columns = output->files[i].settings.columns;
        if (columns) null_bytes += column_schema_null_bytes(columns->schema);
    }
    double all_nulls = (double)sum->n_records * (double)null_bytes;
    if (all_nulls <= (double)sum->n_bytes) return planned;
    double n_bytes = (double)planned * (double)sum->n_bytes / all_nulls;
    return n_bytes > LEAST_BYTES ? (size_t)n_bytes : LEAST_BYTES;
}

/* Divides the free memory between open blocks and the run readers' queues. Returns the bytes of the
   queues. */
static size_t plan_memory(struct merger *m)
{
    const struct memory_budget *budget = &m->budget;
    size_t out_bytes = (budget->chunk_factor - 1) * budget->n_chunks * budget->chunk_bytes;
    size_t queue_bytes = budget->total_bytes / 16;
    size_t read_bytes = m->store ? run_store_scan_bytes(m->store) + queue_bytes : 0;
    size_t open_bytes = m->spilled.open_bytes;
    size_t fixed =
        sort_buffer_pool_kept_bytes(m->sort->pool) + out_bytes + read_bytes + open_bytes / 2;
    size_t least = open_bytes + out_bytes;
    m->limit_bytes = budget->total_bytes > fixed ? budget->total_bytes - fixed : 0;
    if (m->limit_bytes < least) m->limit_bytes = least;
    return queue_bytes;
}

static int prepare_merge(struct merger *m)
{
    struct sort_context *sort = m->sort;
    sort_buffer_pool_drop_free(sort->pool);
    (void)thread_pool_finish_jobs(m->threads);
    sort_buffer_pool_budget(sort->pool, &m->budget);
    spill_look(sort->spiller, &m->spilled);
    load_totals_look(sort->totals, &m->read);
    m->store = temp_store_runs(sort->store);
    m->chunk_bytes = plan_chunk(m);
    prepare_kept(m);
    if (m->store) m->n_scans = run_store_scan(m->store, &m->scans);
    const struct run_reader_settings settings = {
        .threads = m->threads,
        .scans = m->scans,
        .n_scans = m->n_scans,
        .dropped_runs = sort->resume.dropped_runs,
        .n_dropped = sort->resume.n_dropped,
        .queue_bytes = plan_memory(m),
    };
    m->ring = xcalloc(m->budget.n_chunks, sizeof *m->ring);
    m->output_chunker = output_chunker_create(sort, m->kept, m->n_kept, m->chunk_bytes);
    if (m->streams) {
        m->n_streams = m->streams->n_inputs;
        m->limit_bytes = m->streams->share.block_bytes;
        m->inputs = merge_inputs_start(sort, m->output_chunker, m->streams);
        return m->inputs ? 0 : -1;
    }
    m->n_streams = m->n_scans;
    if (m->store) m->run_readers = run_readers_start(&settings);
    return m->store && !m->run_readers ? -1 : 0;
}

static int dispatch_and_write(struct merger *m)
{
    pthread_t writer_thread;
    int error = thread_start(&writer_thread, "writer", write_chunk, m);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    if (dispatch_all(m) < 0) thread_pool_fail(m->threads);
    thread_pool_lock(m->threads);
    m->all_cut = true;
    thread_pool_announce(m->threads);
    thread_pool_unlock(m->threads);
    (void)pthread_join(writer_thread, NULL);
    run_readers_stop(m->run_readers);
    m->run_readers = NULL;
    if (m->inputs) input_streams_stop(m->inputs->streams);
    return thread_pool_finish_jobs(m->threads);
}

/* Checks that the output has the records of the input. */
static int check_content(const struct merger *m, const struct content_sum *out)
{
    const struct content_sum of_inputs = m->inputs ? m->inputs->sum : m->read.sum;
    const struct content_sum *in = &of_inputs;
    const struct checkpoint *resumed = m->sort->settings->resumed;
    if (content_sum_equal(in, out)) return 0;
    if (resumed)
        diag_error_of(DIAG_DAMAGE, "the temporary data in '%s' are damaged: of %" PRIu64 " records %"
                      PRIu64 " were found, or others; sort the input again",
                      resumed->dirs[0].path, in->n_records, out->n_records);
    else
        diag_error("the output is not what was read: %" PRIu64 " records in, %" PRIu64
                   " out, checksums %016" PRIx64 " and %016" PRIx64 "; please report this",
                   in->n_records, out->n_records, in->hash, out->hash);
    return -1;
}

/* When all threads and jobs are done. Frees blocks and output chunks that a failure has left. */
static void release_merger(struct merger *m)
{
    run_readers_stop(m->run_readers);
    if (m->inputs) input_streams_stop(m->inputs->streams);
    (void)thread_pool_finish_jobs(
        m->threads); /* if the output could not be opened, jobs may still run */
    for (unsigned i = 0; m->ring && i < m->budget.n_chunks; i++) {
        if (!m->ring[i]) continue;
        output_chunk_drop_blocks(m->ring[i]);
        output_chunk_destroy(m->ring[i]);
    }
    for (size_t i = 0; i < m->n_live; i++) output_chunker_drop_block(m->live[i]);
    merge_inputs_destroy(m->inputs);
    merge_bound_release(&m->last_cut);
    merge_bound_release(&m->place);
    free(m->output_chunker);
    for (size_t i = 0; i < m->n_scans; i++) run_scan_close(m->scans[i]);
    free(m->scans);
    loser_tree_release(&m->tree);
    free(m->fronts);
    free(m->ring);
    free(m->live);
    free(m->places);
    free(m->kept);
}

int merge_to_output(struct sort_context *sort, const struct input_streams_settings *streams,
                    struct content_sum *sum_out)
{
    struct merger m = {
        .sort = sort, .streams = streams, .threads = sort->threads, .rules = &sort->rules};
    int r = prepare_merge(&m);
    if (r == 0 && !streams)
        r = sorted_output_open(&sort->output, sort->header, m.read.sum.n_bytes);
    if (r == 0) r = dispatch_and_write(&m);
    *sum_out = m.output_chunker->sum;
    if (r == 0) r = check_content(&m, sum_out);
    release_merger(&m);
    return r;
}
