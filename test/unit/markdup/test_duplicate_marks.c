/* test_duplicate_marks.c -- marks and tags in memory and in files are the same, whatever the runs
   are. */
#include "test_place.h"
#include "unit_test.h"

#include "markdup/duplicate_marks.h"

#include <pthread.h>

enum { N_RUNS = 9, N_SETTERS = 3 };

static const char *const prefixes[] = {"."};
static const struct temp_places places = {prefixes, 1, NULL};

/* Marks, and the same in one byte for each record. */
struct marked {
    struct threads *threads;
    struct duplicate_marks *marks;
    bool has_tags;
    uint32_t n_records[N_RUNS];
    bool *is_marked[N_RUNS];
    unsigned setter;            /* marks every N_SETTERS-th of them, from this one on */
};

/* Runs of up to most_records; every n-th record will be marked. */
static void begin(struct marked *m, size_t bits_bytes, size_t tags_bytes, size_t most_records,
                  size_t n, struct rng *rng)
{
    *m = (struct marked){.threads = thread_pool_create(), .has_tags = tags_bytes > 0};
    assert_int_equal(thread_pool_start(m->threads, 2), 0);
    const struct duplicate_marks_settings settings = {.threads = m->threads, .n_threads = 2,
                                                      .bits_bytes = bits_bytes,
                                                      .tags_bytes = tags_bytes, .places = places};
    m->marks = duplicate_marks_create(&settings);
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

/* The note of a record: of a duplicate, or the count of another one. */
static struct duplicate_note note_of(const struct marked *m, uint32_t run, uint32_t i,
                                     uint8_t name[8])
{
    size_t n = (size_t)snprintf((char *)name, 8, "%x", (unsigned)(i * 7919 & 0xffffff));
    struct duplicate_note note = {.run = run, .index = i};
    if (!m->is_marked[run][i]) {
        note.count = 2 + i;
        return note;
    }
    note.is_optical = i % 3 == 0;
    note.original = i % 2 ? name : NULL;
    note.original_bytes = i % 2 ? n : 0;
    return note;
}

static bool has_count(uint32_t i)
{
    return i % 10 == 0;
}

static void *set_some(void *arg)
{
    const struct marked *m = arg;
    for (uint32_t run = 0; run < N_RUNS; run++)
        for (uint32_t i = m->n_records[run]; i-- > 0;) {
            uint8_t name[8];
            const struct duplicate_note note = note_of(m, run, i, name);
            if (i % N_SETTERS != m->setter) continue;
            int r = 0;
            if (m->has_tags && (m->is_marked[run][i] || has_count(i)))
                r = duplicate_marks_put(m->marks, &note);
            else if (m->is_marked[run][i])
                r = duplicate_marks_set(m->marks, run, i);
            if (r < 0) return arg;
        }
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

/* Checks the next note that was found, if record i has one. */
static size_t check_note(const struct marked *m, uint32_t run, uint32_t i,
                         const struct found_marks *found, size_t next)
{
    uint8_t name[8];
    if (!m->has_tags || !(m->is_marked[run][i] || has_count(i))) return next;
    const struct duplicate_note note = note_of(m, run, i, name), *got = &found->notes[next];
    assert_true(next < found->n_notes);
    assert_int_equal(got->index, i);
    assert_int_equal(got->count, note.count);
    assert_int_equal(got->is_optical, note.is_optical);
    assert_int_equal(got->original_bytes, note.original_bytes);
    if (note.original) assert_memory_equal(got->original, name, note.original_bytes);
    return next + 1;
}

/* Each run is read in pieces of any length. */
static void check_all(struct marked *m, struct rng *rng)
{
    RELEASED(found_marks_release) struct found_marks found = {0};
    for (uint32_t run = 0; run < N_RUNS; run++)
        for (uint32_t at = 0, n; at < m->n_records[run]; at += n) {
            size_t next = 0;
            n = 1 + (uint32_t)rng_below(rng, rng_one_in(rng, 20) ? 100000 : 400);
            if (n > m->n_records[run] - at) n = m->n_records[run] - at;
            assert_int_equal(duplicate_marks_find(m->marks, run, at, n, &found), 0);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(found_marks_have(&found, i), m->is_marked[run][at + i]);
                next = check_note(m, run, at + i, &found, next);
            }
            if (m->has_tags) assert_int_equal(next, found.n_notes);
        }
}

static void end(struct marked *m)
{
    duplicate_marks_destroy(m->marks);
    thread_pool_destroy(m->threads);
    for (size_t i = 0; i < N_RUNS; i++) free(m->is_marked[i]);
}

TEST(marks_in_memory_are_found)
{
    struct rng rng = rng_start(1);
    struct marked m;
    begin(&m, 1 << 20, 0, 100000, 5, &rng);
    assert_true(duplicate_marks_begin(m.marks) < 1 << 20);
    set_all(&m);
    for (uint32_t i = 0; i < m.n_records[1]; i++)
        assert_int_equal(duplicate_marks_set(m.marks, 1, i), 0);
    memset(m.is_marked[1], true, m.n_records[1]);
    assert_int_equal(duplicate_marks_end(m.marks, 0), 0);
    check_all(&m, &rng);
    assert_int_equal(duplicate_marks_file_bytes(m.marks), 0);
    assert_int_equal(duplicate_marks_average_bytes(m.marks), 0);
    end(&m);
}

TEST_IN_OWN_DIR(marks_in_files_are_found)
{
    for (size_t i = 0; i < 8; i++) {
        struct rng rng = rng_start(100 + i);
        struct marked m;
        begin(&m, i % 2 ? 4096 : 70000, 0, i < 6 ? 300000 : 2000000, i < 4 ? 3 : 200, &rng);
        size_t n_bytes = duplicate_marks_begin(m.marks);
        assert_true(n_bytes < 200000);
        set_all(&m);
        assert_int_equal(duplicate_marks_end(m.marks, i % 3 ? 1 << 20 : 0), 0);
        /* Rare marks of few records fit in a page of each stream. */
        if (i < 4 || i >= 6) assert_true(duplicate_marks_file_bytes(m.marks) > 0);
        check_all(&m, &rng);
        end(&m);
    }
}

/* With bits in memory, and in files. */
TEST_IN_OWN_DIR(tags_are_found_with_their_marks)
{
    for (size_t i = 0; i < 4; i++) {
        struct rng rng = rng_start(200 + i);
        struct marked m;
        begin(&m, i % 2 ? 1 << 20 : 4096, i < 2 ? 1 << 16 : 1 << 24, 100000, 5, &rng);
        (void)duplicate_marks_begin(m.marks);
        set_all(&m);
        assert_int_equal(duplicate_marks_end(m.marks, 1 << 20), 0);
        assert_true(duplicate_marks_average_bytes(m.marks) > 0);
        check_all(&m, &rng);
        end(&m);
    }
}

/* What a damaged file says of a block is no reason to read elsewhere. */
TEST_IN_OWN_DIR(records_that_are_not_there_are_damage)
{
    for (size_t memory_bytes = 4; memory_bytes < 1 << 20; memory_bytes <<= 16) {
        struct rng rng = rng_start(7);
        struct found_marks found = {0};
        struct marked m;
        begin(&m, memory_bytes, 0, 1000, 2, &rng);
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
