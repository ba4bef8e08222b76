/* test_duplicate_marks.c -- marks in memory and in files are the same, whatever the runs are. */
#include "unit_test.h"
#include "test_place.h"

#include "pipeline/duplicate_marks.h"

#include <pthread.h>

enum { N_RUNS = 9, N_SETTERS = 3 };

static const char *const prefixes[] = {"."};
static const struct temp_places places = {prefixes, 1, NULL};

/* Marks, and the same in one byte for each record. */
struct marked {
    struct duplicate_marks *marks;
    uint32_t n_records[N_RUNS];
    bool *is_marked[N_RUNS];
    unsigned setter;            /* marks every N_SETTERS-th of them, from this one on */
};

/* Runs of up to most_records; every n-th record will be marked. */
static void begin(struct marked *m, size_t memory_bytes, size_t most_records, size_t n,
                  struct rng *rng)
{
    *m = (struct marked){.marks = duplicate_marks_create(memory_bytes, &places)};
    for (uint32_t run = 0; run < N_RUNS; run++) {
        m->n_records[run] = run == 4 ? 0 : 1 + (uint32_t)rng_below(rng, most_records);
        m->is_marked[run] = test_alloc(m->n_records[run] + 1);
        for (size_t i = 0; i < m->n_records[run]; i++) m->is_marked[run][i] = rng_one_in(rng, n);
    }
    /* In any order; those of an earlier process grow. */
    for (uint32_t run = N_RUNS; run-- > 0;) {
        duplicate_marks_add_run(m->marks, run, m->n_records[run] / 2);
        duplicate_marks_add_run(m->marks, run, m->n_records[run]);
        duplicate_marks_add_run(m->marks, run, m->n_records[run] / 3);
    }
}

static void *set_some(void *arg)
{
    const struct marked *m = arg;
    for (uint32_t run = 0; run < N_RUNS; run++)
        for (uint32_t i = m->n_records[run]; i-- > 0;)
            if (m->is_marked[run][i] && i % N_SETTERS == m->setter &&
                duplicate_marks_set(m->marks, run, i) != 1)
                return arg;
    return NULL;
}

/* Several threads mark. */
static void set_all(struct marked *m)
{
    struct marked setters[N_SETTERS];
    pthread_t threads[N_SETTERS];
    for (unsigned i = 0; i < N_SETTERS; i++) {
        setters[i] = *m;
        setters[i].setter = i;
        assert_int_equal(pthread_create(&threads[i], NULL, set_some, &setters[i]), 0);
    }
    for (unsigned i = 0; i < N_SETTERS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* Each run is read in pieces of any length. */
static void check_all(struct marked *m, struct rng *rng)
{
    RELEASED(found_marks_release) struct found_marks found = {0};
    for (uint32_t run = 0; run < N_RUNS; run++)
        for (uint32_t at = 0, n; at < m->n_records[run]; at += n) {
            n = 1 + (uint32_t)rng_below(rng, rng_one_in(rng, 20) ? 100000 : 400);
            if (n > m->n_records[run] - at) n = m->n_records[run] - at;
            assert_int_equal(duplicate_marks_find(m->marks, run, at, n, &found), 0);
            for (uint32_t i = 0; i < n; i++)
                assert_int_equal(found_marks_have(&found, i), m->is_marked[run][at + i]);
        }
}

static void end(struct marked *m)
{
    duplicate_marks_destroy(m->marks);
    for (size_t i = 0; i < N_RUNS; i++) free(m->is_marked[i]);
}

TEST(test_in_memory)
{
    struct rng rng = rng_start(1);
    struct marked m;
    begin(&m, 1 << 20, 100000, 5, &rng);
    assert_true(duplicate_marks_begin(m.marks) < 1 << 20);
    set_all(&m);
    for (uint32_t i = 0; i < m.n_records[1]; i++)
        assert_int_equal(duplicate_marks_set(m.marks, 1, i), !m.is_marked[1][i]);
    memset(m.is_marked[1], true, m.n_records[1]);
    assert_int_equal(duplicate_marks_end(m.marks, 0), 0);
    check_all(&m, &rng);
    assert_int_equal(duplicate_marks_file_bytes(m.marks), 0);
    end(&m);
}

/* With so little memory for bits that the marks of a stretch are read several times, and with
   enough. */
TEST_IN_OWN_DIR(test_in_files)
{
    for (size_t i = 0; i < 8; i++) {
        struct rng rng = rng_start(100 + i);
        struct marked m;
        begin(&m, i % 2 ? 4096 : 70000, i < 6 ? 300000 : 2000000, i < 4 ? 3 : 200, &rng);
        size_t n_bytes = duplicate_marks_begin(m.marks);
        assert_true(n_bytes < 200000);
        set_all(&m);
        assert_int_equal(duplicate_marks_end(m.marks, i % 3 ? 1 << 20 : 0), 0);
        assert_true(duplicate_marks_file_bytes(m.marks) > 0);
        check_all(&m, &rng);
        end(&m);
    }
}

/* What a damaged file says of a block is no reason to read elsewhere. */
TEST_IN_OWN_DIR(test_records_that_are_not_there)
{
    for (size_t memory_bytes = 4; memory_bytes < 1 << 20; memory_bytes <<= 16) {
        struct rng rng = rng_start(7);
        struct found_marks found = {0};
        struct marked m;
        begin(&m, memory_bytes, 1000, 2, &rng);
        (void)duplicate_marks_begin(m.marks);
        set_all(&m);
        assert_int_equal(duplicate_marks_end(m.marks, 0), 0);
        assert_int_equal(duplicate_marks_find(m.marks, N_RUNS, 0, 1, &found), -1);
        assert_int_equal(duplicate_marks_find(m.marks, 0, UINT64_MAX - 8, 1, &found), -1);
        assert_int_equal(duplicate_marks_find(m.marks, N_RUNS - 1, m.n_records[N_RUNS - 1] - 1, 2,
                                              &found), -1);
        check_all(&m, &rng);
        found_marks_release(&found);
        end(&m);
    }
}
