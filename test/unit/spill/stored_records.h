/* stored_records.h -- runs of records in a store, and their blocks as run readers return them. */
#ifndef ROCKSORT_TEST_STORED_RECORDS_H
#define ROCKSORT_TEST_STORED_RECORDS_H

#include "test_place.h"

#include "input/record_entries.h"
#include "os/temp_dir.h"
#include "spill/run_reader.h"
#include "spill/run_writer.h"

#include <sys/stat.h>

struct record_store {
    struct run_writer_settings writer;
    struct sort_rules rules;
    struct record_observers observers;
    size_t open_bytes;          /* of the last run */
    uint64_t n_made;            /* records, which have this number as their name */
};

static inline void open_record_store(struct record_store *s)
{
    static const char *const dir = "d";
    struct run_writer_settings *w = &s->writer;
    *s = (struct record_store){.rules = {.order = SORT_COORDINATE}};
    memory_budget_plan(&w->budget, 64 << 20, 2);
    const struct run_store_settings settings = {
        .dirs = &dir, .n_dirs = 1, .n_lanes = 1, .compaction = COMPACTION_OFF,
        .budget = &w->budget};
    assert_int_equal(mkdir(dir, 0700), 0);
    w->threads = thread_pool_create();
    assert_int_equal(thread_pool_start(w->threads, 2), 0);
    w->rules = &s->rules;
    w->observers = &s->observers;
    w->store = run_store_create(&settings);
    assert_non_null(w->store);
    w->block_bytes = 1 << 20;
    w->n_files = 1;
}

static inline void close_record_store(struct record_store *s)
{
    run_store_destroy(s->writer.store);
    thread_pool_destroy(s->writer.threads);
    assert_int_equal(temp_dir_remove("d"), 0);
}

/* Makes a sorted sort buffer of n records at these positions, of l_seq bases or, every `large`th,
   of 100 times as many. */
static inline struct sort_buffer *make_buffer(struct record_store *s, const int32_t *pos, size_t n,
                                              int32_t l_seq, size_t large)
{
    OWNED uint8_t *bytes = test_alloc(n * (size_t)(100 + (large ? 200 : 2) * l_seq));
    RELEASED(merge_space_release) struct merge_space space = {0};
    struct record_problem problem;
    struct content_sum sum = {0};
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%06" PRIu64, s->n_made++);
        struct record_fields f = {.name = name, .pos = pos[i], .l_seq = l_seq, .tag_bytes = 5};
        if (large && i % large == large - 1) f.l_seq *= 100;
        n_bytes += put_record(bytes + n_bytes, &f, 7);
        memcpy(bytes + n_bytes - 5, i % 2 ? "RGZx" : "RGZy", 5);
    }
    struct sort_buffer *buffer =
        sort_buffer_create(&s->rules, NULL, sort_buffer_bytes_for(s->rules.order, n_bytes));
    sort_buffer_reset(buffer);
    struct sort_buffer_part *part = sort_buffer_add_part(buffer, bytes, n_bytes, n, 0);
    assert_int_equal(record_entries_index_part(part, 1, &sum, &problem), 0);
    sort_buffer_sort(buffer, &space);
    return buffer;
}

/* Writes the sort buffers as run `number`, and destroys them. Returns what run_writer_write does. */
static inline int store_run(struct record_store *s, uint32_t number, struct sort_buffer **buffers,
                            size_t n)
{
    struct stored_run *run;
    s->writer.label.run = number;
    int r = run_writer_write(&s->writer, buffers, n, &run, &s->open_bytes);
    if (r == 0) r = run_store_end_run(run);
    for (size_t i = 0; i < n; i++) sort_buffer_destroy(buffers[i]);
    return r;
}

/* Reads the next block of the only database. NULL: there is none. */
static inline struct stored_block *next_block(struct run_readers *readers)
{
    struct stored_block *block, *again;
    int r = run_readers_first(readers, 0, &block);
    if (r == 0) return NULL;
    assert_int_equal(r, 1);
    assert_int_equal(run_readers_first(readers, 0, &again), 1);
    assert_ptr_equal(again, block);
    return run_readers_take(readers, 0);
}

#endif
