/* test_run_writer.c -- the records, blocks, files and label of a run. */
#include "spill/stored_records.h"
#include "unit_test.h"

#include <dirent.h>

enum { MOST_BLOCKS = 400, L_SEQ = 60, RECORD_BYTES = 36 + 7 + L_SEQ / 2 + L_SEQ + 5 };

struct blocks {
    size_t n, n_records[MOST_BLOCKS], raw_bytes[MOST_BLOCKS];
};

static size_t name_of(const uint8_t *rec)
{
    return strtoul((const char *)bam_record_name(rec), NULL, 10);
}

/* Reads all blocks of run 5, whose records must be all that were made, in a stable order of their
   positions or, if `ordinals` is not NULL, with these ordinals. */
static struct blocks read_blocks(struct record_store *s, const uint64_t *ordinals)
{
    struct blocks all = {0};
    struct stored_block *block;
    struct temp_coder coder = {0};
    uint64_t n = 0, before = 0;
    assert_int_equal(run_store_flush(s->writer.store), 0);
    struct run_readers *readers = run_readers_start(s->writer.threads, s->writer.store, NULL, 0, 1);
    while ((block = next_block(readers))) {
        size_t keyed_bytes;
        uint8_t *raw = stored_block_unpack(block, &s->rules, 1, &coder, &keyed_bytes);
        struct bam_records records = {raw, raw + block->parsed.raw_bytes};
        assert_true(block->run == 5 && block->first_index == n);
        for (const uint8_t *rec; (rec = bam_records_next(&records)); n++) {
            size_t name = name_of(rec);
            uint64_t now = (uint64_t)bam_record_pos(rec) << 32 | name;
            assert_true(ordinals || n == 0 || now > before);
            before = now;
            if (ordinals)
                assert_int_equal(bam_block_ordinal(block->parsed.ordinals,
                                                   (uint32_t)(n - block->first_index)),
                                 ordinals[name]);
        }
        all.n_records[all.n] = block->parsed.n_records;
        all.raw_bytes[all.n++] = block->parsed.raw_bytes;
        free(raw);
        stored_block_free(block);
    }
    assert_int_equal(n, s->n_made);
    run_readers_stop(readers);
    return all;
}

/* Writes run 5 of three sort buffers with n records each, of few different positions. */
static int store_buffers(struct record_store *s, size_t n, size_t large)
{
    OWNED int32_t *pos = test_alloc(n * sizeof *pos);
    struct rng rng = rng_start(61);
    struct sort_buffer *buffers[3];
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < n; i++) pos[i] = (int32_t)rng_below(&rng, n);
        buffers[k] = make_buffer(s, pos, n, L_SEQ, large);
    }
    return store_run(s, 5, buffers, 3);
}

TEST_IN_OWN_DIR(test_block_ends_before_the_record_that_would_exceed_it)
{
    for (size_t growth = 0; growth <= 8; growth += 8) {
        struct record_store s;
        open_record_store(&s);
        s.writer.block_bytes = 4 * RECORD_BYTES;
        s.writer.record_growth = growth;
        assert_int_equal(store_buffers(&s, 50, 0), 0);
        struct blocks all = read_blocks(&s, NULL);
        size_t n_each = growth ? 3 : 4;
        for (size_t i = 0; i + 1 < all.n; i++) assert_int_equal(all.n_records[i], n_each);
        assert_int_equal(s.open_bytes, n_each * (RECORD_BYTES + growth));
        close_record_store(&s);
    }
}

/* It does not count as open in the merge. */
TEST_IN_OWN_DIR(test_large_record_is_a_block_of_its_own)
{
    struct record_store s;
    size_t n_large = 0;
    open_record_store(&s);
    s.writer.block_bytes = 8 * RECORD_BYTES;
    assert_int_equal(store_buffers(&s, 50, 5), 0);
    struct blocks all = read_blocks(&s, NULL);
    for (size_t i = 0; i < all.n; i++) {
        if (all.raw_bytes[i] <= s.writer.block_bytes) continue;
        assert_int_equal(all.n_records[i], 1);
        n_large++;
    }
    assert_int_equal(n_large, 30);
    assert_true(s.open_bytes <= s.writer.block_bytes);
    close_record_store(&s);
}

/* A block ends with its chunk. */
TEST_IN_OWN_DIR(test_chunks_have_the_size_of_the_budget)
{
    struct record_store s;
    const size_t n = 3000, all_bytes = 3 * n * RECORD_BYTES;
    open_record_store(&s);
    s.writer.budget.spill_chunk_bytes = all_bytes / 20;
    assert_int_equal(store_buffers(&s, n, 0), 0);
    struct blocks all = read_blocks(&s, NULL);
    assert_in_range(all.n, 16, 20);
    for (size_t i = 0; i + 1 < all.n; i++)
        assert_in_range(all.raw_bytes[i], all_bytes * 8 / 200, all_bytes * 14 / 200);
    close_record_store(&s);
}

/* Returns the size of the smallest file of runs, and sets *most to that of the largest. */
static off_t measure_files(off_t *most)
{
    off_t least = 0;
    DIR *dir = opendir("d/db-0");
    *most = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st;
        if (!strstr(entry->d_name, ".sst")) continue;
        assert_int_equal(fstatat(dirfd(dir), entry->d_name, &st, 0), 0);
        if (st.st_size > *most) *most = st.st_size;
        if (least == 0 || st.st_size < least) least = st.st_size;
    }
    assert_int_equal(closedir(dir), 0);
    return least;
}

TEST_IN_OWN_DIR(test_files_of_a_run_have_about_one_size)
{
    struct record_store s;
    struct run_store_stats stats;
    off_t most;
    open_record_store(&s);
    s.writer.n_files = 3;
    s.writer.block_bytes = 10 * RECORD_BYTES;
    s.writer.budget.n_spill_chunks = 7;
    s.writer.budget.spill_chunk_bytes = 30000;
    assert_int_equal(store_buffers(&s, 1000, 0), 0);
    (void)read_blocks(&s, NULL);
    run_store_stats(s.writer.store, &stats);
    assert_int_equal(stats.n_files, 3);
    off_t least = measure_files(&most);
    assert_true(least > most * 3 / 4);
    /* Of each file beyond the first a compressed block is open, too. */
    assert_int_equal(s.open_bytes, 2 * 10 * RECORD_BYTES);
    close_record_store(&s);
}

TEST_IN_OWN_DIR(test_run_of_one_record_is_one_file)
{
    struct record_store s;
    struct run_store_stats stats;
    open_record_store(&s);
    s.writer.n_files = 3;
    struct sort_buffer *buffer = make_buffer(&s, (int32_t[]){4}, 1, L_SEQ, 0);
    assert_int_equal(store_run(&s, 5, &buffer, 1), 0);
    assert_int_equal(read_blocks(&s, NULL).n, 1);
    run_store_stats(s.writer.store, &stats);
    assert_int_equal(stats.n_files, 1);
    assert_int_equal(s.open_bytes, 0);          /* a block of one record is never open */
    close_record_store(&s);
}

static int take_label(void *arg, const uint8_t *label, size_t n_bytes)
{
    return run_label_decode(label, n_bytes, arg);
}

TEST_IN_OWN_DIR(test_label_tells_what_the_merge_has_open)
{
    struct record_store s;
    struct run_label label;
    open_record_store(&s);
    s.writer.label = (struct run_label){.before = 3, .any_placed = true};
    assert_int_equal(store_buffers(&s, 20, 0), 0);
    assert_int_equal(run_store_flush(s.writer.store), 0);
    assert_int_equal(run_store_labels(s.writer.store, take_label, &label), 0);
    assert_true(label.run == 5 && label.before == 3 && label.any_placed);
    assert_true(s.open_bytes > 0 && label.open_bytes == s.open_bytes);
    close_record_store(&s);
}

/* ---- observers ---- */

struct witness {
    struct record_observer base;
    uint64_t indexes;           /* sum */
    size_t n_runs, n_seen, n_fail;
    uint64_t of_name[150];      /* ordinal of each record */
};

static void begin_run(struct record_observer *observer)
{
    ((struct witness *)observer)->n_runs++;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *records)
{
    struct witness *w = (struct witness *)observer;
    (void)part;
    if (records->run != 5) return -1;
    w->indexes += records->first_record;
    if (records->ordinals)
        w->of_name[name_of(records->all.at)] = bam_block_ordinal(records->ordinals, 0);
    return ++w->n_seen == w->n_fail ? -1 : 0;
}

static const struct observer_kind kind = {.add_records = add_records, .begin_run = begin_run};

/* With --markdup, records in the order of a tag get ordinals that keep the order of the input. */
TEST_IN_OWN_DIR(test_observers_see_each_record_with_its_ordinal)
{
    for (int by_tag = 0; by_tag < 2; by_tag++) {
        struct record_store s;
        struct witness w = {.base = {&kind}};
        const struct markdup_rules *duplicates = (const void *)&w;      /* only not NULL */
        open_record_store(&s);
        if (by_tag)
            s.rules = (struct sort_rules){.order = SORT_TAG, .tag = "RG",
                                          .below = SORT_COORDINATE, .duplicates = duplicates};
        s.writer.block_bytes = 4096;
        record_observers_add(&s.observers, &w.base);
        assert_int_equal(store_buffers(&s, 50, 0), 0);
        assert_true(w.n_runs == 1 && w.n_seen == 150 && w.indexes == 149 * 150 / 2);
        for (size_t i = 1; by_tag && i < 150; i++) assert_true(w.of_name[i - 1] < w.of_name[i]);
        for (size_t i = 0; !by_tag && i < 150; i++) assert_int_equal(w.of_name[i], 0);
        (void)read_blocks(&s, by_tag ? w.of_name : NULL);
        close_record_store(&s);
    }
}

TEST_IN_OWN_DIR(test_run_fails_with_an_observer)
{
    struct record_store s;
    struct witness w = {.base = {&kind}, .n_fail = 100};
    open_record_store(&s);
    record_observers_add(&s.observers, &w.base);
    assert_int_equal(store_buffers(&s, 50, 0), -1);
    assert_true(thread_pool_failed(s.writer.threads));
    close_record_store(&s);
}
