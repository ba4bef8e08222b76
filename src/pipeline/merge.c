/*
 * merge.c -- dispatcher and writer: runs in the store and batches in memory to sorted
 * output.
 *
 * The dispatcher takes blocks from the scan, in the order of their first keys, and has each
 * *opened* by a worker. The first key of the block that comes next is the *frontier*: all records
 * below it are in blocks that were taken. Whenever enough of them have gathered it *cuts*: the
 * records between the previous cut and the frontier are a segment, to be merged by a worker
 * (segment.c) and written in order by the writer. Batches in memory take part through
 * places at which they may be cut.
 */
#include "pipeline/merge.h"

#include "util/diag.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_bound(struct bound *bound, const uint8_t *key, size_t n_bytes)
{
    *bound = (struct bound){0};
    if (!key) return 0;
    bound->key = malloc(n_bytes);
    if (!bound->key) return -1;
    memcpy(bound->key, key, n_bytes);
    bound->n_bytes = n_bytes;
    return 0;
}

/* ---- the writer ---- */

static int write_segment(struct merger *m, const struct segment *segment)
{
    bam_writer_expect(m->writer, segment->raw_bytes);
    if (!bam_writer_takes_bytes(m->format))
        return bam_writer_write_records(m->writer, segment->out, segment->out_bytes);
    if (m->p->index &&
        bam_index_append(m->p->index, &segment->part, bam_writer_position(m->writer)) < 0)
        return pipeline_no_memory(m->p);
    return bam_writer_write_bytes(m->writer, segment->out, segment->out_bytes);
}

static void *write_segments(void *arg)
{
    struct merger *m = arg;
    struct pipeline *p = m->p;
    for (;;) {
        struct segment *segment = NULL;
        pipeline_lock(p);
        while (!pipeline_failed(p)) {
            segment = m->n_written < m->n_cut ? m->ring[m->n_written % p->budget.n_segments] : NULL;
            if ((segment && segment->done) || (!segment && m->all_cut)) break;
            pipeline_wait_for(p, WAIT_WRITER_SEGMENTS);
        }
        pipeline_unlock(p);
        if (pipeline_failed(p) || !segment) return NULL;
        double start = monotonic_seconds();
        if (write_segment(m, segment) < 0) pipeline_fail(p);
        pipeline_lock(p);
        p->report->waits[WAIT_WRITER_OUTPUT] += monotonic_seconds() - start;
        if (bam_writer_takes_bytes(m->format)) p->output_bytes += segment->out_bytes;
        p->records_written += segment->n_records;
        p->raw_bytes_written += segment->raw_bytes;
        m->ring[m->n_written++ % p->budget.n_segments] = NULL;
        pipeline_announce(p);
        pipeline_unlock(p);
        free_segment(segment);
    }
}

/* ---- the dispatcher ---- */

/* Takes the block that is fed next and has it opened. */
static int take_block(struct merger *m, struct fed_block *fed)
{
    struct pipeline *p = m->p;
    struct open_block *block = calloc(1, sizeof *block);
    if (!block) return pipeline_no_memory(p);
    size_t value_bytes = fed->value_bytes, key_bytes = fed->key_bytes;
    block->merger = m;
    block->dir = fed->dir;
    block->value = fed->value;
    block->value_bytes = value_bytes;
    fed->value = NULL;
    struct bound last;
    if (key_bytes <= MERGE_BOUND_TAIL_BYTES ||
        bam_block_parse(block->value, value_bytes, &block->block) < 0 ||
        !bam_block_is_plausible(&block->block)) {
        diag_damaged("the temporary data in '%s' are damaged: an entry is not a block; sort again "
                     "on another disk", block->dir);
        free_block(block);
        return -1;
    }
    if (copy_bound(&last, block->block.last_bound, block->block.last_bound_bytes) < 0) {
        free_block(block);
        return pipeline_no_memory(p);
    }
    block->last_bound = last.key;
    block->last_bound_bytes = last.n_bytes;
    block->raw_bytes = block->block.raw_bytes;
    merge_bound_position(fed->key, key_bytes, &block->source.run, &block->source.first_index);
    block->n_bytes = value_bytes + block->raw_bytes + block->raw_bytes / 16;
    block->n_users = 1;
    if (m->n_live == m->live_room) {
        size_t room = 2 * m->live_room + 64;
        struct open_block **grown = realloc(m->live, room * sizeof *grown);
        if (!grown) {
            free_block(block);
            return pipeline_no_memory(p);
        }
        m->live = grown;
        m->live_room = room;
    }
    size_t at = m->n_live++;
    for (; at > 0; at--) {      /* blocks of a run come in order: only the run decides */
        if (m->live[at - 1]->source.run <= block->source.run) break;
        m->live[at] = m->live[at - 1];
    }
    m->live[at] = block;
    m->n_taken++;
    m->gathered_bytes += block->raw_bytes;
    pipeline_lock(p);
    m->block_bytes += block->n_bytes;
    *m->last_unopened = block;
    m->last_unopened = &block->next_unopened;
    pipeline_unlock(p);
    return pipeline_submit(p, open_block_job, block);
}

/* True if the block's last record lies below the frontier. */
static bool ends_below(const struct open_block *block, const uint8_t *frontier, size_t n_bytes)
{
    return merge_bound_compare(block->last_bound, block->last_bound_bytes, frontier, n_bytes) < 0;
}

/* Bytes that were gathered and end below the frontier, about. */
static size_t complete_bytes(const struct merger *m, const uint8_t *frontier, size_t n_bytes)
{
    size_t complete = m->place_bytes;
    for (size_t i = 0; i < m->n_live; i++) {
        if (ends_below(m->live[i], frontier, n_bytes)) complete += m->live[i]->raw_bytes;
    }
    return complete;
}

/* Waits until another segment may be cut. */
static int wait_for_segment_slot(struct merger *m)
{
    struct pipeline *p = m->p;
    pipeline_lock(p);
    while (!pipeline_failed(p) && m->n_cut - m->n_written >= p->budget.n_segments)
        pipeline_wait_for(p, WAIT_DISPATCHER_SEGMENTS);
    pipeline_unlock(p);
    return pipeline_failed(p) ? -1 : 0;
}

/* Live blocks that end below the frontier leave the list. */
static void close_blocks(struct merger *m, const uint8_t *frontier, size_t n_bytes)
{
    size_t n_left = 0;
    pipeline_lock(m->p);
    for (size_t i = 0; i < m->n_live; i++) {
        struct open_block *block = m->live[i];
        if (ends_below(block, frontier, n_bytes))
            drop_block(m, block);
        else
            m->live[n_left++] = block;
    }
    m->n_live = n_left;
    pipeline_unlock(m->p);
}

/* Makes a segment of all records from the last cut up to the frontier (NULL: the end). */
static int cut_segment(struct merger *m, const uint8_t *frontier, size_t n_bytes)
{
    struct pipeline *p = m->p;
    if (wait_for_segment_slot(m) < 0) return -1;
    struct segment *segment = calloc(1, sizeof *segment);
    if (!segment) return pipeline_no_memory(p);
    segment->merger = m;
    segment->n_blocks_needed = m->n_taken;
    segment->blocks = malloc(m->n_live * sizeof *segment->blocks + 1);
    if (!segment->blocks || copy_bound(&segment->high, frontier, n_bytes) < 0 ||
        copy_bound(&segment->low, m->last_cut.key, m->last_cut.n_bytes) < 0) {
        free_segment(segment);
        return pipeline_no_memory(p);
    }
    free(m->last_cut.key);
    if (copy_bound(&m->last_cut, frontier, n_bytes) < 0) {
        free_segment(segment);
        return pipeline_no_memory(p);
    }
    m->gathered_bytes = m->place_bytes = 0;
    pipeline_lock(p);
    for (size_t i = 0; i < m->n_live; i++) {
        segment->blocks[i] = m->live[i];
        segment->blocks[i]->n_users++;
    }
    segment->n_blocks = m->n_live;
    *m->last_waiting = segment;
    m->last_waiting = &segment->next;
    m->ring[m->n_cut++ % p->budget.n_segments] = segment;
    pipeline_unlock(p);
    close_blocks(m, frontier, n_bytes);
    return submit_ready_segments(m);
}

/* True if blocks take more than their share of memory. */
static bool over_limit(struct merger *m)
{
    pipeline_lock(m->p);
    bool over = m->block_bytes > m->limit_bytes;
    pipeline_unlock(m->p);
    return over;
}

/* Waits until blocks were closed or nothing is under way that could close any. */
static int wait_for_memory(struct merger *m)
{
    struct pipeline *p = m->p;
    pipeline_lock(p);
    while (!pipeline_failed(p) && m->block_bytes > m->limit_bytes && m->n_written < m->n_cut)
        pipeline_wait_for(p, WAIT_DISPATCHER_MEMORY);
    pipeline_unlock(p);
    return pipeline_failed(p) ? -1 : 0;
}

/* Cuts at the frontier if a segment's worth lies below it, or if memory is short. */
static int maybe_cut(struct merger *m, const uint8_t *frontier, size_t n_bytes)
{
    size_t want = m->p->budget.segment_bytes;
    bool over = over_limit(m);
    if (m->gathered_bytes < want && !over) return 0;
    size_t complete = complete_bytes(m, frontier, n_bytes);
    if (complete >= want || (over && complete > 0)) {
        if (cut_segment(m, frontier, n_bytes) < 0) return -1;
    }
    return over ? wait_for_memory(m) : 0;
}

/* Takes blocks and places in key order, cutting as they come. */
static int dispatch_all(struct merger *m)
{
    struct fed_block *fed = NULL;
    struct merge_bound *place = &m->place;
    for (;;) {
        if (pipeline_failed(m->p)) return -1;
        int have_block = m->feeders ? feeders_next(m->feeders, &fed) : 0;
        if (have_block < 0) return -1;
        bool have_place = m->next_place < m->n_places;
        if (!have_block && !have_place) return cut_segment(m, NULL, 0);
        if (have_place) {
            const struct cut_place *next = &m->places[m->next_place];
            if (merge_bound_set(place, m->order, next->source, next->index) < 0)
                return pipeline_no_memory(m->p);
        }
        if (have_block && (!have_place || merge_bound_compare(fed->key, fed->key_bytes, place->key,
                                                              place->n_bytes) < 0)) {
            if (maybe_cut(m, fed->key, fed->key_bytes) < 0 || take_block(m, fed) < 0) return -1;
            feeders_drop(m->feeders);
        } else {
            if (maybe_cut(m, place->key, place->n_bytes) < 0) return -1;
            m->gathered_bytes += m->places[m->next_place].n_bytes;
            m->place_bytes += m->places[m->next_place].n_bytes;
            m->next_place++;
        }
    }
}

/* ---- the phase ---- */

/* Makes sources of the batches that are in memory; their runs come after those in the store. */
static int prepare_kept(struct merger *m)
{
    struct pipeline *p = m->p;
    uint32_t next_run = p->next_run;
    size_t first = p->sealed.n_spilled, n = p->sealed.n - first;
    size_t *raw_bytes = calloc(n + 1, sizeof *raw_bytes);
    m->kept = calloc(n + 1, sizeof *m->kept);
    if (!raw_bytes || !m->kept) {
        free(raw_bytes);
        return pipeline_no_memory(p);
    }
    m->n_kept = n;
    for (size_t i = 0; i < n; i++) {
        const struct batch *batch = p->sealed.batches[first + i];
        m->kept[i] = (struct merge_source){batch->entries, batch->n_records,
                                           next_run + (uint32_t)i, 0};
        raw_bytes[i] = batch_raw_bytes(batch);
    }
    ssize_t n_places = find_cut_places(m->order, m->kept, raw_bytes, n,
                                       p->budget.segment_bytes / 8, &m->places);
    free(raw_bytes);
    if (n_places < 0) return pipeline_no_memory(p);
    m->n_places = (size_t)n_places;
    return 0;
}

static int prepare_merge(struct merger *m)
{
    struct pipeline *p = m->p;
    pipeline_lock(p);
    drop_free_batches(p);
    while (p->n_jobs > 0) pipeline_wait(p);
    pipeline_unlock(p);
    if (prepare_kept(m) < 0) return -1;
    size_t kept_bytes = batches_kept_bytes(p);
    size_t out_bytes = p->budget.n_segments * p->budget.segment_bytes;
    size_t queue_bytes = p->budget.total_bytes / 16;
    size_t read_bytes = p->store ? run_store_scan_bytes(p->store) + queue_bytes : 0;
    size_t fixed = kept_bytes + out_bytes + read_bytes + p->open_bytes / 2;
    size_t least = p->open_bytes + out_bytes;
    m->limit_bytes = p->budget.total_bytes > fixed ? p->budget.total_bytes - fixed : 0;
    if (m->limit_bytes < least) m->limit_bytes = least;
    m->ring = calloc(p->budget.n_segments, sizeof *m->ring);
    if (!m->ring) return pipeline_no_memory(p);
    if (p->store) m->feeders = feeders_start(p, queue_bytes);
    return p->store && !m->feeders ? -1 : 0;
}

int prepare_index(struct pipeline *p)
{
    const char *name = p->settings->index_path;
    if (!name || !bam_writer_takes_bytes(&p->settings->output_format)) return 0;
    size_t n = strlen(name);
    bool bai = n >= 4 && strcmp(name + n - 4, ".bai") == 0;
    p->index = bam_index_create(bai ? BAM_INDEX_BAI : BAM_INDEX_CSI, p->header);
    return p->index ? 0 : -1;
}

/* Writes the index. The sorted file is complete and stays if this fails. */
static int finish_index(struct pipeline *p)
{
    const struct output_path *path = &p->index_output;
    int r = 0;
    if (p->index) {
        r = bam_index_write(p->index, path);
    } else if (path->temporary) {
        /* CRAM's was closed before the end went through the pump. */
        (void)utimensat(AT_FDCWD, path->temporary, NULL, 0);
        r = output_path_commit(path);
    }
    /* An older index would be one of what the output was before. */
    if (r < 0 && path->final) (void)unlink(path->final);
    return r;
}

static void *run_pump(void *writer)
{
    bam_writer_pump(writer);
    return NULL;
}

static int start_pump(struct merger *m)
{
    if (!bam_writer_needs_pump(m->writer)) return 0;
    int error = pthread_create(&m->pump_thread, NULL, run_pump, m->writer);
    if (error) diag_no_thread(error);
    m->pump_runs = error == 0;
    return error ? -1 : 0;
}

/* Closes the output, which keeps its name only if all is well. */
static int end_output(struct merger *m, bool complete)
{
    struct pipeline *p = m->p;
    if (!m->writer) return -1;
    if (bam_writer_end(m->writer, complete) < 0) complete = false;
    if (m->pump_runs) (void)pthread_join(m->pump_thread, NULL);
    struct bam_writer_result result;
    int r = -1;
    if (complete)
        r = bam_writer_close(m->writer, &result);
    else
        bam_writer_abort(m->writer, &result);
    p->report->output_bytes = result.n_bytes;
    p->lost_reader = result.lost_reader;
    return r;
}

static int start_writer(struct merger *m)
{
    struct pipeline *p = m->p;
    struct bam_writer_settings settings = {
        .path = p->settings->output ? &p->output : NULL,
        .index_path = p->settings->index_path ? &p->index_output : NULL,
        .pool = &p->pool,
        .format = p->settings->output_format,
        .level = p->settings->level,
        .raw_bytes = p->sum_in.n_bytes,
    };
    m->writer = bam_writer_create(&settings);
    if (!m->writer) return -1;
    return start_pump(m) < 0 ? -1 : bam_writer_start(m->writer, p->header);
}

static int dispatch_and_write(struct merger *m)
{
    struct pipeline *p = m->p;
    pthread_t writer_thread;
    int error = pthread_create(&writer_thread, NULL, write_segments, m);
    if (error) {
        diag_no_thread(error);
        return -1;
    }
    if (dispatch_all(m) < 0) pipeline_fail(p);
    pipeline_lock(p);
    m->all_cut = true;
    pipeline_announce(p);
    pipeline_unlock(p);
    (void)pthread_join(writer_thread, NULL);
    feeders_stop(m->feeders);
    m->feeders = NULL;
    pipeline_lock(p);
    while (p->n_jobs > 0) pipeline_wait(p);
    pipeline_unlock(p);
    return pipeline_failed(p) ? -1 : 0;
}

static int check_content(const struct pipeline *p)
{
    if (content_sum_equal(&p->sum_in, &p->sum_out)) return 0;
    if (p->settings->resumed) {
        diag_damaged("the temporary data in '%s' are damaged: of %" PRIu64 " records %" PRIu64
                     " were found, or others; sort the input again",
                     p->scratch_paths[0], p->sum_in.n_records, p->sum_out.n_records);
        return -1;
    }
    diag_error("the output is not what was read: %" PRIu64 " records in, %" PRIu64
               " out, checksums %016" PRIx64 " and %016" PRIx64 "; please report this",
               p->sum_in.n_records, p->sum_out.n_records, p->sum_in.hash, p->sum_out.hash);
    return -1;
}

/* With all threads and jobs done. After a failure blocks and segments may be anywhere. */
static void release_merger(struct merger *m)
{
    struct pipeline *p = m->p;
    for (unsigned i = 0; m->ring && i < p->budget.n_segments; i++) {
        struct segment *segment = m->ring[i];
        if (!segment) continue;
        for (size_t k = 0; k < segment->n_blocks; k++) drop_block(m, segment->blocks[k]);
        free_segment(segment);
    }
    for (size_t i = 0; i < m->n_live; i++) drop_block(m, m->live[i]);
    feeders_stop(m->feeders);
    free(m->last_cut.key);
    merge_bound_release(&m->place);
    free(m->ring);
    free(m->live);
    free(m->places);
    free(m->kept);
}

int merge_to_output(struct pipeline *p)
{
    struct merger m = {.p = p, .order = p->rules.order,
                       .format = &p->settings->output_format};
    m.last_unopened = &m.unopened;
    m.last_waiting = &m.waiting;
    bool complete = prepare_merge(&m) == 0 && start_writer(&m) == 0 &&
                    dispatch_and_write(&m) == 0 && check_content(p) == 0;
    progress_enter(p, SORT_PHASE_CLOSE);
    int r = end_output(&m, complete);
    if (r == 0) r = finish_index(p);
    if (r < 0) output_path_drop(&p->index_output);
    release_merger(&m);
    return r;
}
