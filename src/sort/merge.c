/* merge.c -- see merge.h. */
#include "sort/merge.h"

#include "sort/output_chunk.h"
#include "sort/rules.h"
#include "sort/scan_runs.h"
#include "sort/sorted_output.h"
#include "util/diag.h"
#include "util/loser_tree.h"
#include "util/monotonic.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* Blocks in key order: of a run reader, of an input, or of a sort buffer in memory. */
struct merge_stream {
    struct merge_bound front;   /* of the next block; bytes NULL: there is none */
    /* of an input: the next block, and the one taken before it */
    struct queued_span *span;
    struct open_block *before;
    /* of a sort buffer, which is divided into n_blocks of about n_bytes each */
    struct merge_source source;
    size_t n_blocks, next_block, n_bytes;
};

struct merger {
    struct sort_context *sort;
    struct threads *threads;
    struct run_store *store;    /* NULL: all records are in memory or in the inputs */
    /* copies, made after loading */
    struct memory_budget budget;
    struct load_counts read;
    struct output_chunker output_chunker;
    struct run_readers *run_readers;    /* NULL: no runs */
    struct input_streams *inputs;       /* NULL: without --merge */
    /* dispatcher only */
    struct merge_stream *streams;
    size_t n_streams, n_read;   /* the first n_read are run readers or inputs */
    struct loser_tree tree;     /* of streams */
    struct open_block **live;   /* blocks not wholly below the last cut, by run and index */
    size_t n_live, live_room;
    size_t gathered_bytes;      /* bytes taken since the last cut */
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
    struct sort_context *sort = m->sort;
    struct output_chunk *output_chunk;
    while ((output_chunk = next_chunk(m))) {
        double start = monotonic_seconds();
        if (sorted_output_write(sort, output_chunk->outputs) < 0 ||
            observed_parts_combine(&output_chunk->observed) < 0)
            thread_pool_fail(m->threads);
        thread_pool_add_wait(m->threads, WAIT_WRITER_OUTPUT, monotonic_seconds() - start);
        thread_pool_lock(m->threads);
        if (output_format_has_bytes(&sort->output.files[0].settings.format))
            sort->bytes_out += output_chunk->outputs[0].n_bytes;
        content_sum_join(&sort->sum_out, &output_chunk->sum);
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
static void note_complete(struct merger *m, const struct merge_bound *frontier)
{
    for (size_t i = 0; i < m->n_live; i++) {
        struct open_block *block = m->live[i];
        if (block->is_complete || merge_bound_compare(&block->last, frontier) >= 0) continue;
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
    size_t n_large = 0;
    for (unsigned i = 0; i < output->n_files; i++) {
        const struct output_format *format = &output->files[i].settings.format;
        n_large += output_format_has_columns(format) || output_format_is_sam(format);
    }
    bool is_long = m->gathered_bytes > 2 * m->budget.chunk_bytes;
    size_t n_bytes = (is_long ? output->n_files + 3 * n_large : 1) * m->gathered_bytes;
    size_t large_bytes = (size_t)(m->output_chunker.expansion * (double)m->gathered_bytes);
    return n_large > 0 && large_bytes > n_bytes ? large_bytes : n_bytes;
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
static int cut_chunk(struct merger *m, const struct merge_bound *frontier)
{
    if (wait_for_chunk_slot(m) < 0) return -1;
    struct output_chunk *output_chunk =
        output_chunk_create(&m->output_chunker, &m->last_cut, frontier, m->live, m->n_live);
    merge_bound_copy(&m->last_cut, frontier);
    thread_pool_lock(m->threads);
    output_chunk->expected_bytes = expect_chunk(m);
    m->gathered_bytes = m->complete_bytes = 0;
    m->ring[m->n_cut++ % m->budget.n_chunks] = output_chunk;
    m->ring_bytes += output_chunk->expected_bytes;
    thread_pool_unlock(m->threads);
    close_blocks(m);
    return output_chunker_merge(&m->output_chunker, output_chunk);
}

/* With the lock held: true if blocks exceed their share of memory, which includes long records that
   are read ahead (--merge). */
static bool is_over_limit(const struct merger *m)
{
    size_t excess = m->inputs ? input_streams_excess_bytes(m->inputs) : 0;
    return m->output_chunker.block_bytes + excess > m->limit_bytes;
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
static int maybe_cut(struct merger *m, const struct merge_bound *frontier)
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

/* ---- taking blocks ---- */

static bool comes_first(const void *streams, size_t a, size_t b)
{
    const struct merge_stream *all = streams;
    return merge_bound_compare(&all[a].front, &all[b].front) < 0;
}

/* Finds the next block of input i. A block that sorts before the end of the one taken before it is
   an error. */
static int find_in_input(struct merger *m, size_t i)
{
    struct merge_stream *stream = &m->streams[i];
    struct open_block *before = stream->before;
    int r = input_streams_next(m->inputs, i, &stream->span);
    if (r > 0) {
        const struct open_block *block = stream->span->made;
        const struct merge_source *source = &block->source;
        merge_bound_set(&stream->front, m->sort->rules.order, source, 0);
        if (before && merge_bound_compare(&before->last, &stream->front) > 0) {
            order_violation_print(&m->sort->rules, m->sort->header,
                                  stream->span->queue->reader->name,
                                  &before->source.entries[before->source.n_entries - 1],
                                  source->entries, source->first_index);
            r = -1;
        }
    }
    thread_pool_lock(m->threads);
    if (before) output_chunker_drop_block(before);
    thread_pool_unlock(m->threads);
    stream->before = NULL;
    return r;
}

/* The place in a sort buffer where block k begins. */
static size_t block_begin(const struct merge_stream *stream, size_t k)
{
    return k * stream->source.n_entries / stream->n_blocks;
}

/* Sets the front of stream i; waits for it. */
static int find_front(struct merger *m, size_t i)
{
    struct merge_stream *stream = &m->streams[i];
    struct stored_block *stored;
    merge_bound_release(&stream->front);
    if (i < m->n_read && m->inputs) return find_in_input(m, i);
    if (i < m->n_read) {
        int r = run_readers_first(m->run_readers, i, &stored);
        if (r > 0)
            merge_bound_copy(&stream->front,
                             &(struct merge_bound){stored->key, stored->key_bytes});
        return r;
    }
    if (stream->next_block < stream->n_blocks)
        merge_bound_set(&stream->front, m->sort->rules.order, &stream->source,
                        block_begin(stream, stream->next_block));
    return 0;
}

static struct open_block *take_of_input(struct merger *m, struct merge_stream *stream)
{
    struct queued_span *span = stream->span;
    struct open_block *block = span->made;
    thread_pool_lock(m->threads);
    output_chunker_count(block, span->made_bytes);
    block->n_users++;           /* until the next block is compared with it */
    thread_pool_unlock(m->threads);
    stream->before = block;
    stream->span = span->made = NULL;
    span_queue_drop(span);
    return block;
}

/* Takes the next block of a sort buffer. Its bytes count as complete, because about as many of
   earlier blocks are below the frontier. */
static void take_kept(struct merger *m, struct merge_stream *stream)
{
    struct merge_source source = stream->source;
    size_t from = block_begin(stream, stream->next_block++);
    source.entries += from;
    source.n_entries = block_begin(stream, stream->next_block) - from;
    source.first_index = from;
    add_live(m, output_chunker_keep(&m->output_chunker, &source));
    m->gathered_bytes += stream->n_bytes;
    m->complete_bytes += stream->n_bytes;
}

/* Takes the next block of stream i. */
static void take(struct merger *m, size_t i)
{
    if (i >= m->n_read)
        take_kept(m, &m->streams[i]);
    else if (m->inputs)
        add_live(m, take_of_input(m, &m->streams[i]));
    else
        add_live(m, output_chunker_open_block(&m->output_chunker,
                                              run_readers_take(m->run_readers, i)));
}

/* Takes blocks in key order, cutting as they come. */
static int dispatch_all(struct merger *m)
{
    for (size_t i = 0; i < m->n_streams; i++)
        if (find_front(m, i) < 0) return -1;
    loser_tree_build(&m->tree, m->n_streams, comes_first, m->streams);
    while (!thread_pool_failed(m->threads)) {
        size_t i = loser_tree_first(&m->tree);
        const struct merge_bound *frontier = &m->streams[i].front;
        if (!frontier->bytes) {
            note_complete(m, frontier);
            return cut_chunk(m, frontier);
        }
        if (maybe_cut(m, frontier) < 0) return -1;
        take(m, i);
        if (find_front(m, i) < 0) return -1;
        loser_tree_replay(&m->tree, i, comes_first, m->streams);
    }
    return -1;
}

/* ---- the phase ---- */

/* Makes the streams: n_read of run readers or inputs, then those of the sort buffers in memory, as
   runs from first_run on, and an empty one, so that there is at least one. */
static void make_streams(struct merger *m, size_t n_read, uint32_t first_run)
{
    size_t n;
    struct sort_buffer *const *buffers = sort_buffer_pool_kept(m->sort->pool, &n);
    m->n_read = n_read;
    m->n_streams = n_read + n + 1;
    m->streams = xcalloc(m->n_streams, sizeof *m->streams);
    for (size_t i = 0; i < n; i++) {
        const struct sort_buffer *buffer = buffers[i];
        size_t n_blocks = buffer->raw_bytes / (m->chunk_bytes / 8) + 1;
        if (n_blocks > buffer->n_records) n_blocks = buffer->n_records;
        m->streams[n_read + i] = (struct merge_stream){
            .source = {buffer->entries, buffer->n_records, first_run + (uint32_t)i, 0},
            .n_blocks = n_blocks, .n_bytes = buffer->raw_bytes / (n_blocks > 0 ? n_blocks : 1),
        };
    }
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
static size_t plan_memory(struct merger *m, size_t open_bytes)
{
    const struct memory_budget *budget = &m->budget;
    size_t out_bytes = (budget->chunk_factor - 1) * budget->n_chunks * budget->chunk_bytes;
    size_t queue_bytes = budget->total_bytes / 16;
    size_t read_bytes = m->store ? run_store_scan_bytes(m->store) + queue_bytes : 0;
    size_t fixed =
        sort_buffer_pool_kept_bytes(m->sort->pool) + out_bytes + read_bytes + open_bytes / 2;
    size_t least = open_bytes + out_bytes;
    m->limit_bytes = budget->total_bytes > fixed ? budget->total_bytes - fixed : 0;
    if (m->limit_bytes < least) m->limit_bytes = least;
    return queue_bytes;
}

static int prepare_merge(struct merger *m, const size_t *inputs, size_t n_inputs)
{
    struct sort_context *sort = m->sort;
    const struct spill_totals *spilled = &sort->spiller.totals;
    sort_buffer_pool_drop_free(sort->pool);
    (void)thread_pool_finish_jobs(m->threads);
    sort_buffer_pool_budget(sort->pool, &m->budget);
    load_totals_look(sort->totals, &m->read);
    m->store = temp_store_runs(sort->store);
    m->chunk_bytes = plan_chunk(m);
    m->ring = xcalloc(m->budget.n_chunks, sizeof *m->ring);
    output_chunker_init(&m->output_chunker, sort, m->chunk_bytes);
    size_t queue_bytes = plan_memory(m, spilled->open_bytes), n_read = 0;
    if (inputs) {
        struct input_streams_settings settings;
        if (plan_inputs(sort, inputs, n_inputs, &settings) < 0) return -1;
        settings.make = output_chunker_make_block;
        settings.drop = output_chunker_drop_made;
        settings.arg = &m->output_chunker;
        m->limit_bytes = settings.share.block_bytes;
        n_read = n_inputs;
        m->inputs = input_streams_start(&settings);
        if (!m->inputs) return -1;
    } else if (m->store) {
        m->run_readers = run_readers_start(m->threads, m->store, sort->resume.dropped_runs,
                                           sort->resume.n_dropped, queue_bytes);
        if (!m->run_readers) return -1;
        n_read = run_readers_count(m->run_readers);
    }
    make_streams(m, n_read, spilled->next_run);
    return 0;
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
    input_streams_stop(m->inputs);
    return thread_pool_finish_jobs(m->threads);
}

/* When all threads and jobs are done. Frees blocks and output chunks that a failure has left. */
static void release_merger(struct merger *m)
{
    input_streams_stop(m->inputs);
    (void)thread_pool_finish_jobs(
        m->threads); /* if the output could not be opened, jobs may still run */
    for (unsigned i = 0; m->ring && i < m->budget.n_chunks; i++) {
        if (m->ring[i]) output_chunk_destroy(m->ring[i]);
    }
    for (size_t i = 0; i < m->n_live; i++) output_chunker_drop_block(m->live[i]);
    for (size_t i = 0; i < m->n_streams; i++) {
        if (m->streams[i].span) span_queue_drop(m->streams[i].span);
        if (m->streams[i].before) output_chunker_drop_block(m->streams[i].before);
        merge_bound_release(&m->streams[i].front);
    }
    run_readers_stop(m->run_readers);   /* after the jobs, which name its directories */
    input_streams_destroy(m->inputs);
    merge_bound_release(&m->last_cut);
    loser_tree_release(&m->tree);
    free(m->streams);
    free(m->ring);
    free(m->live);
}

int merge_to_output(struct sort_context *sort, const size_t *inputs, size_t n_inputs)
{
    struct merger m = {.sort = sort, .threads = sort->threads};
    int r = prepare_merge(&m, inputs, n_inputs);
    if (r == 0 && !inputs) r = sorted_output_open(sort, m.read.sum.n_bytes);
    if (r == 0) r = dispatch_and_write(&m);
    release_merger(&m);
    return r;
}
