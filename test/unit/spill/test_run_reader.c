/* test_run_reader.c -- blocks of runs come whole and in order; damaged ones are refused. */
#include "spill/stored_records.h"
#include "unit_test.h"

#include "util/diag.h"

enum { L_SEQ = 2000, N_RECORDS = 10 };

/* Writes a run of records at positions from `first` on. One of two records is so large that it has
   three parts. */
static void add_run(struct record_store *s, uint32_t number, int32_t first)
{
    int32_t pos[N_RECORDS];
    for (int32_t i = 0; i < N_RECORDS; i++) pos[i] = first + i;
    struct sort_buffer *buffer = make_buffer(s, pos, N_RECORDS, L_SEQ, 2);
    s->writer.block_bytes = 4096;
    assert_int_equal(store_run(s, number, &buffer, 1), 0);
}

static struct run_readers *start(struct record_store *s, const uint32_t *dropped, size_t n)
{
    assert_int_equal(run_store_flush(s->writer.store), 0);
    struct run_readers *readers = run_readers_start(s->writer.threads, s->writer.store, dropped, n,
                                                    1);
    assert_non_null(readers);
    assert_int_equal(run_readers_count(readers), 1);
    return readers;
}

TEST_IN_OWN_DIR(test_dropped_runs_are_skipped_with_all_their_parts)
{
    static const uint32_t dropped[] = {7, 1}, left[] = {0, 2};
    struct record_store s;
    struct stored_block *block;
    struct temp_coder coder = {0};
    size_t n = 0;
    open_record_store(&s);
    for (uint32_t run = 0; run < 3; run++) add_run(&s, run, 100 * (int32_t)run);
    struct run_readers *readers = start(&s, dropped, 2);
    for (; (block = next_block(readers)); n++) {
        size_t keyed_bytes;
        assert_int_equal(block->run, left[n / N_RECORDS]);
        assert_int_equal(block->first_index, n % N_RECORDS);
        assert_string_equal(block->dir, "d");
        assert_true(n % 2 == 0 || block->value_bytes > 100000);
        uint8_t *raw = stored_block_unpack(block, &s.rules, 1, &coder, &keyed_bytes);
        assert_int_equal(bam_record_pos(raw), 100 * block->run + n % N_RECORDS);
        free(raw);
        stored_block_free(block);
    }
    assert_int_equal(n, 2 * N_RECORDS);
    run_readers_stop(readers);
    close_record_store(&s);
}

TEST_IN_OWN_DIR(test_reading_may_stop_at_any_block)
{
    for (size_t n = 0; n <= N_RECORDS; n += 5) {
        struct record_store s;
        open_record_store(&s);
        add_run(&s, 0, 0);
        struct run_readers *readers = start(&s, NULL, 0);
        for (size_t i = 0; i < n; i++) {
            (void)usleep(1000);         /* the thread waits for room in the queue */
            stored_block_free(next_block(readers));
        }
        run_readers_stop(readers);
        assert_false(thread_pool_failed(s.writer.threads));
        close_record_store(&s);
    }
}

/* ---- damage ---- */

static const uint8_t usual_key[] = "01234567" "RUN0" "INDEX000";

/* Stores a value under a key as several parts of n_part bytes, and reads it. */
static void check_refused(const uint8_t *key, size_t key_bytes, const uint8_t *value,
                          size_t n_bytes, size_t n_part)
{
    struct record_store s;
    struct stored_run *run;
    struct stored_block *block;
    uint8_t part_key[BAM_BLOCK_PART_KEY_BYTES];
    open_record_store(&s);
    assert_int_equal(run_store_begin_run(s.writer.store, 1, &run), 0);
    for (size_t at = 0, n; at < n_bytes; at += n, key = part_key) {
        n = n_bytes - at < n_part ? n_bytes - at : n_part;
        assert_int_equal(run_store_put(run, 0, key, key_bytes, value + at, n), 0);
        if (at == 0) key_bytes = bam_block_part_key(key, key_bytes, 1, part_key);
    }
    assert_int_equal(run_store_label_run(run, 0, (const uint8_t *)"label", 5), 0);
    assert_int_equal(run_store_end_run(run), 0);
    struct run_readers *readers = start(&s, NULL, 0);
    assert_int_equal(run_readers_first(readers, 0, &block), -1);
    assert_int_equal(diag_cause(), DIAG_DAMAGE);
    assert_non_null(strstr(diag_error_text(), "an entry is not a block"));
    diag_renew();
    run_readers_stop(readers);
    close_record_store(&s);
}

TEST_IN_OWN_DIR(test_entries_that_are_no_blocks_are_refused)
{
    uint8_t raw[300] = {0}, value[1000];
    struct temp_coder coder = {0};
    const struct bam_block content = {TEMP_CODEC_NONE, 1, sizeof raw, NULL, 0, NULL,
                                      .payload = raw};
    size_t key_bytes = sizeof usual_key - 1, n = (size_t)bam_block_encode(&coder, &content, value);
    check_refused(usual_key, MERGE_BOUND_TAIL_BYTES, value, n, n);      /* no key before the run */
    check_refused(usual_key, key_bytes, value, n - 1, n);
    check_refused(usual_key, key_bytes, value, n - 1, n / 2 + 1);       /* the last part is short */
    check_refused(usual_key, key_bytes, value, n + 1, n / 2 + 1);       /* or long */
    value[8] ^= 1;
    check_refused(usual_key, key_bytes, value, n, n);
}

TEST_IN_OWN_DIR(test_changed_bytes_of_a_block_are_refused)
{
    struct record_store s;
    struct temp_coder coder = {0};
    size_t keyed_bytes;
    open_record_store(&s);
    add_run(&s, 3, 0);
    struct run_readers *readers = start(&s, NULL, 0);
    struct stored_block *block = next_block(readers);
    block->value[block->value_bytes - 1] ^= 1;
    assert_null(stored_block_unpack(block, &s.rules, 1, &coder, &keyed_bytes));
    assert_int_equal(diag_cause(), DIAG_DAMAGE);
    assert_non_null(strstr(diag_error_text(), "run 3 fails its checksum"));
    diag_renew();
    stored_block_free(block);
    run_readers_stop(readers);
    close_record_store(&s);
}
