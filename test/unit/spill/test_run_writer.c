/* test_run_writer.c -- runs of records, as run_writer.h cuts them into blocks and files, and
   run_reader.h reads them; damaged blocks are refused. */
#include "test_place.h"
#include "unit_test.h"

#include "input/record_entries.h"
#include "os/temp_dir.h"
#include "spill/run_reader.h"
#include "spill/run_writer.h"
#include "util/diag.h"

#include <glob.h>
#include <sys/stat.h>

enum { MOST_BLOCKS = 400, L_SEQ = 60, RECORD_BYTES = 36 + 7 + L_SEQ / 2 + L_SEQ, KEY_BYTES = 20 };

/* Of one test. The names of records are their numbers. */
static struct record_store {
    struct run_writer_settings writer;
    struct sort_rules rules;
    struct record_observers observers;
    struct temp_coder coder;
    size_t open_bytes;          /* of the last run */
    size_t n_made;              /* records */
} s;

static int enter_store(void **state)
{
    static const char *const dir = "d";
    struct run_writer_settings *w = &s.writer;
    s = (struct record_store){
        .writer = {.rules = &s.rules, .observers = &s.observers, .block_bytes = 1 << 20,
                   .n_files = 1, .label.run = 5, .threads = thread_pool_create()},
        .rules.order = SORT_COORDINATE};
    memory_budget_plan(&w->budget, 64 << 20, 2);
    const struct run_store_settings settings = {.dirs = &dir, .n_dirs = 1, .n_lanes = 1,
                                                .budget = &w->budget};
    if (enter_place(state) || mkdir(dir, 0700) || thread_pool_start(w->threads, 2)) return -1;
    return (w->store = run_store_create(&settings)) ? 0 : -1;
}

static int leave_store(void **state)
{
    run_store_destroy(s.writer.store);
    thread_pool_destroy(s.writer.threads);
    return temp_dir_remove("d") || leave_place(state);
}

#define TEST_OF_STORE(test) TEST_WITH(test, enter_store, leave_store)

/* Makes a sorted sort buffer of n records at random positions. They have l_seq bases, but every
   `large`th has 100 times as many. */
static struct sort_buffer *make_buffer(struct rng *rng, size_t n, int32_t l_seq, size_t large)
{
    OWNED uint8_t *bytes = test_alloc(n * (size_t)(100 + (large ? 200 : 2) * l_seq));
    RELEASED(merge_space_release) struct merge_space space = {0};
    struct record_problem problem;
    struct content_sum sum = {0};
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%06zu", s.n_made++);
        struct record_fields f = {.name = name, .pos = (int32_t)rng_below(rng, n), .l_seq = l_seq};
        if (large && i % large == 0) f.l_seq *= 100;
        n_bytes += put_record(bytes + n_bytes, &f, 7);
    }
    struct sort_buffer *buffer =
        sort_buffer_create(&s.rules, NULL, sort_buffer_bytes_for(s.rules.order, n_bytes));
    sort_buffer_reset(buffer);
    struct sort_buffer_part *part = sort_buffer_add_part(buffer, bytes, n_bytes, n, 0);
    assert_int_equal(record_entries_index_part(part, 1, &sum, &problem), 0);
    sort_buffer_sort(buffer, &space);
    return buffer;
}

/* Writes a run of three such sort buffers. Returns what run_writer_write does. */
static int write_run(size_t n, int32_t l_seq, size_t large)
{
    struct rng rng = rng_start(61);
    struct sort_buffer *buffers[3];
    struct stored_run *run;
    for (int i = 0; i < 3; i++) buffers[i] = make_buffer(&rng, n, l_seq, large);
    int r = run_writer_write(&s.writer, buffers, 3, &run, &s.open_bytes);
    for (int i = 0; i < 3; i++) sort_buffer_destroy(buffers[i]);
    return r < 0 ? r : run_store_end_run(run);
}

/* Reads without queues: each thread waits until its block is taken. */
static struct run_readers *start_reading(const uint32_t *dropped, size_t n)
{
    assert_int_equal(run_store_flush(s.writer.store), 0);
    return run_readers_start(s.writer.threads, s.writer.store, dropped, n, 1);
}

static uint8_t *unpack(const struct stored_block *block)
{
    size_t keyed_bytes;
    return stored_block_unpack(block, &s.rules, 1, &s.coder, &keyed_bytes);
}

static struct {                 /* those of read_blocks */
    size_t n, n_records[MOST_BLOCKS], raw_bytes[MOST_BLOCKS];
} blocks;

static size_t name_of(const uint8_t *rec)
{
    return strtoul((const char *)bam_record_name(rec), NULL, 10);
}

/* Reads all blocks of run 5, whose records must be all that were made, in a stable order of their
   positions. Ordinals must increase with their numbers. */
static void read_blocks(void)
{
    struct run_readers *readers = start_reading(NULL, 0);
    uint64_t n = 0, before = 0, ordinals[MOST_BLOCKS] = {0};
    bool has_ordinals = s.rules.duplicates;
    struct stored_block *block;
    for (blocks.n = 0; run_readers_first(readers, 0, &block) > 0; blocks.n++) {
        OWNED uint8_t *raw = unpack(block);
        struct bam_records records = {raw, raw + block->parsed.raw_bytes};
        assert_true(block->run == 5 && block->first_index == n);
        for (const uint8_t *rec; (rec = bam_records_next(&records)); n++) {
            uint64_t now = (uint64_t)bam_record_pos(rec) << 32 | name_of(rec);
            assert_true(now > before || n == 0);
            before = now;
            if (has_ordinals)
                ordinals[name_of(rec)] = bam_block_ordinal(block->parsed.ordinals,
                                                           (uint32_t)(n - block->first_index));
        }
        blocks.n_records[blocks.n] = block->parsed.n_records;
        blocks.raw_bytes[blocks.n] = block->parsed.raw_bytes;
        stored_block_free(run_readers_take(readers, 0));
    }
    assert_int_equal(n, s.n_made);
    for (size_t i = 1; has_ordinals && i < n; i++) assert_true(ordinals[i] > ordinals[i - 1]);
    run_readers_stop(readers);
}

/* Writes and reads a run in blocks of block_bytes. */
static void check_run(size_t n, size_t large, size_t block_bytes)
{
    s.writer.block_bytes = block_bytes;
    assert_int_equal(write_run(n, L_SEQ, large), 0);
    read_blocks();
}

/* With the tags that its records get later. */
TEST_OF_STORE(test_block_ends_before_the_record_that_would_exceed_it)
{
    s.writer.record_growth = 40;
    check_run(50, 0, 4 * (RECORD_BYTES + 40));
    for (size_t i = 0; i + 1 < blocks.n; i++) assert_int_equal(blocks.n_records[i], 4);
    assert_int_equal(s.open_bytes, 4 * (RECORD_BYTES + 40));
}

TEST_OF_STORE(test_large_record_is_a_block_of_its_own_and_never_open)
{
    check_run(50, 5, 8 * RECORD_BYTES);
    for (size_t i = 0; i < blocks.n; i++)
        if (blocks.raw_bytes[i] > 8 * RECORD_BYTES) assert_int_equal(blocks.n_records[i], 1);
    assert_true(s.open_bytes <= 8 * RECORD_BYTES);
}

/* A block ends with its chunk. */
TEST_OF_STORE(test_chunks_have_the_size_of_the_budget)
{
    const size_t n = 3000, chunk_bytes = 3 * n * RECORD_BYTES / 20;
    s.writer.budget.spill_chunk_bytes = chunk_bytes;
    check_run(n, 0, 1 << 20);
    assert_in_range(blocks.n, 16, 20);
    for (size_t i = 0; i + 1 < blocks.n; i++)
        assert_in_range(blocks.raw_bytes[i], chunk_bytes * 4 / 5, chunk_bytes * 7 / 5);
}

static int take_label(void *arg, const uint8_t *label, size_t n_bytes)
{
    return run_label_decode(label, n_bytes, arg);
}

/* Of each file beyond the first, a compressed block is open in the merge. */
TEST_OF_STORE(test_files_of_a_run_have_about_one_size)
{
    struct run_label label;
    struct stat st;
    glob_t files;
    s.writer.n_files = 3;
    s.writer.budget.n_spill_chunks = 7;
    s.writer.budget.spill_chunk_bytes = 30000;
    check_run(1000, 0, 10 * RECORD_BYTES);
    assert_int_equal(glob("d/db-0/*.sst", 0, NULL, &files), 0);
    assert_int_equal(files.gl_pathc, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(stat(files.gl_pathv[i], &st), 0);
        assert_in_range(st.st_size, 1000 * RECORD_BYTES * 9 / 10, 1000 * RECORD_BYTES * 13 / 10);
    }
    globfree(&files);
    assert_int_equal(run_store_labels(s.writer.store, take_label, &label), 0);
    assert_true(label.run == 5 && label.open_bytes == s.open_bytes);
    assert_int_equal(s.open_bytes, 2 * 10 * RECORD_BYTES);
}

static struct record_observer witness;
static size_t n_seen, n_fail;   /* records */

static int add_records(__attribute__((unused)) struct record_observer *observer,
                       __attribute__((unused)) void *part, const struct observed_records *records)
{
    return records->run != 5 || records->first_record != n_seen || ++n_seen == n_fail ? -1 : 0;
}

/* Records by tag, for --markdup: they keep their order in the input. */
TEST_OF_STORE(test_run_has_ordinals_and_fails_with_an_observer)
{
    static const struct observer_kind kind = {.add_records = add_records};
    const void *duplicates = &s;        /* only not NULL */
    s.rules = (struct sort_rules){.order = SORT_TAG, .tag = "RG", .below = SORT_COORDINATE,
                                  .duplicates = duplicates};
    witness.kind = &kind;
    record_observers_add(&s.observers, &witness);
    check_run(50, 0, 4096);
    assert_int_equal(n_seen, 150);
    n_seen = 0;
    n_fail = 100;
    assert_int_equal(write_run(50, L_SEQ, 0), -1);
    assert_true(thread_pool_failed(s.writer.threads));
}

/* Writes a run of nine blocks of a record each; every third block has three parts. */
static void add_run(uint32_t number)
{
    s.writer.label.run = number;
    s.writer.block_bytes = 4096;
    assert_int_equal(write_run(3, 2000, 3), 0);
}

TEST_OF_STORE(test_dropped_runs_are_skipped_with_all_their_parts)
{
    static const uint32_t dropped[] = {7, 1};
    struct stored_block *block;
    size_t n = 0, n_large = 0;
    for (uint32_t run = 0; run < 3; run++) add_run(run);
    struct run_readers *readers = start_reading(dropped, 2);
    for (; run_readers_first(readers, 0, &block) > 0; n++) {
        OWNED uint8_t *raw = unpack(block);
        assert_true(raw && block->run != 1);
        n_large += block->value_bytes > 260000 ? 1 : 0;
        stored_block_free(run_readers_take(readers, 0));
    }
    assert_true(n == 2 * 9 && n_large == 2 * 3);
    run_readers_stop(readers);
}

TEST_OF_STORE(test_reading_may_stop_at_a_block_that_is_damaged)
{
    struct stored_block *block;
    add_run(0);
    struct run_readers *readers = start_reading(NULL, 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(run_readers_first(readers, 0, &block), 1);
        (void)usleep(1000);     /* the thread waits for room in the queue */
        assert_ptr_equal(run_readers_take(readers, 0), block);
        block->value[block->value_bytes - 1] ^= i == 3;
        OWNED uint8_t *raw = unpack(block);
        assert_true(block->first_index == i && (raw == NULL) == (i == 3));
        stored_block_free(block);
    }
    run_readers_stop(readers);
    assert_int_equal(diag_cause(), DIAG_DAMAGE);
    diag_renew();
}

/* Stores a value in two parts as a run, which must be refused, in a store of its own. */
static void check_refused(size_t key_bytes, const uint8_t *value, size_t n_bytes)
{
    static const uint8_t block_key[] = "key, run and index of 20 bytes";
    void *place;
    struct stored_run *run;
    struct stored_block *block;
    uint8_t part_key[BAM_BLOCK_PART_KEY_BYTES];
    assert_int_equal(enter_store(&place), 0);
    assert_int_equal(run_store_begin_run(s.writer.store, 1, &run), 0);
    assert_int_equal(run_store_put(run, 0, block_key, key_bytes, value, 200), 0);
    size_t n_key = bam_block_part_key(block_key, key_bytes, 1, part_key);
    assert_int_equal(run_store_put(run, 0, part_key, n_key, value + 200, n_bytes - 200), 0);
    assert_int_equal(run_store_label_run(run, 0, (const uint8_t *)"label", 5), 0);
    assert_int_equal(run_store_end_run(run), 0);
    struct run_readers *readers = start_reading(NULL, 0);
    assert_int_equal(run_readers_first(readers, 0, &block), -1);
    assert_int_equal(diag_cause(), DIAG_DAMAGE);
    diag_renew();
    run_readers_stop(readers);
    assert_int_equal(leave_store(&place), 0);
}

TEST(test_entries_that_are_no_blocks_are_refused)
{
    uint8_t raw[300] = {0}, value[1000];
    struct temp_coder coder = {0};
    const struct bam_block content = {.codec = TEMP_CODEC_NONE, .n_records = 1,
                                      .raw_bytes = sizeof raw, .payload = raw};
    size_t n = (size_t)bam_block_encode(&coder, &content, value);
    check_refused(MERGE_BOUND_TAIL_BYTES, value, n);    /* no key before run and index */
    check_refused(KEY_BYTES, value, n - 1);             /* the last part is too short */
    check_refused(KEY_BYTES, value, n + 1);             /* or too long */
    value[8] ^= 1;
    check_refused(KEY_BYTES, value, n);
}
