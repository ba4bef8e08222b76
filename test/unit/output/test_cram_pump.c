/* test_cram_pump.c -- bytes go through the pump, and it ends when it is told to. */
#include "test_place.h"
#include "unit_test.h"

#include "output/cram_pump.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { N_BYTES = 3 << 20, STEP = 1 << 16 };     /* more than the sockets hold */

struct fixture {
    struct cram_pump pump;
    hFILE *from, *target;
    pthread_t thread;
    uint8_t *bytes;
};

static void *run(void *pump)
{
    cram_pump_run(pump);
    return NULL;
}

static void start(struct fixture *f, const char *target)
{
    struct rng rng = rng_start(11);
    f->bytes = test_alloc(N_BYTES);
    rng_fill(&rng, f->bytes, N_BYTES);
    f->target = hopen(target, "w");
    assert_non_null(f->target);
    assert_int_equal(cram_pump_open(&f->pump, &f->from), 0);
    cram_pump_set_target(&f->pump, f->target);
    assert_int_equal(pthread_create(&f->thread, NULL, run, &f->pump), 0);
}

static void write_all(const struct fixture *f)
{
    for (size_t at = 0; at < N_BYTES; at += STEP)
        assert_int_equal(hwrite(f->from, f->bytes + at, STEP), STEP);
    assert_int_equal(hflush(f->from), 0);
}

static void finish(struct fixture *f)
{
    cram_pump_end(&f->pump);
    assert_int_equal(pthread_join(f->thread, NULL), 0);
    cram_pump_close(&f->pump);
    free(f->bytes);
}

static void check_file(const char *path, const uint8_t *bytes, size_t n_bytes)
{
    OWNED uint8_t *found = test_alloc(n_bytes + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, n_bytes + 1, file), n_bytes);
    assert_memory_equal(found, bytes, n_bytes);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(unlink(path), 0);
}

/* The pump carries all that is written. If `closes` is false the writing end is closed only after
   the pump has ended. */
static void carry(bool closes)
{
    struct rng rng = rng_start(11);
    struct fixture f;
    OWNED uint8_t *want = test_alloc(N_BYTES);
    rng_fill(&rng, want, N_BYTES);
    start(&f, "out");
    write_all(&f);
    if (closes) assert_int_equal(hclose(f.from), 0);
    finish(&f);
    assert_int_equal(atomic_load(&f.pump.error), 0);
    assert_int_equal(hclose(f.target), 0);
    check_file("out", want, N_BYTES);
    if (!closes) hclose_abruptly(f.from);
}

TEST_IN_OWN_DIR(test_pump_carries_all_bytes)
{
    carry(true);
}

/* htslib leaves the writing end open when it cannot encode a record: the pump ends all the same,
   after the last byte that was written. Once it waited for ever. */
TEST_IN_OWN_DIR(test_ends_though_nobody_closes)
{
    carry(false);
}

/* The writing end does not fail when the target does. */
TEST_IN_OWN_DIR(test_keeps_the_error)
{
    struct fixture f;
    start(&f, "/dev/full");
    write_all(&f);
    assert_int_equal(hclose(f.from), 0);
    finish(&f);
    assert_int_equal(atomic_load(&f.pump.error), ENOSPC);
    hclose_abruptly(f.target);
}

TEST_IN_OWN_DIR(test_pump_discards_what_comes)
{
    struct fixture f;
    start(&f, "out");
    cram_pump_discard(&f.pump);
    write_all(&f);
    assert_int_equal(hclose(f.from), 0);
    finish(&f);
    assert_int_equal(hclose(f.target), 0);
    check_file("out", (const uint8_t *)"", 0);
}
