/* test_cram_writer.c -- records become CRAM; an output that fails is told at the end, and an output
   that is not complete looks so. */
#include "test_place.h"
#include "unit_test.h"

#include "output/cram_writer.h"
#include "util/diag.h"

#include <errno.h>
#include <htslib/thread_pool.h>
#include <unistd.h>

enum { RECORDS = 30000, BASES = 90, RECORD_BYTES = 400 };       /* more than the sockets hold */

struct fixture {
    sam_hdr_t *header;
    htsFormat format;
    htsThreadPool pool;
    hFILE *target;
    struct cram_doubt doubt;
    struct cram_writer *writer;
    int error;                  /* explained */
};

static int explain(void *arg)
{
    struct fixture *f = arg;
    f->error = errno;
    return -1;
}

static void start(struct fixture *f, const char *target)
{
    *f = (struct fixture){.header = parse_header("@SQ\tSN:a\tLN:100000\n"), .format.format = cram};
    assert_int_equal(hts_parse_format(&f->format, "cram,no_ref=1"), 0);
    f->pool.pool = hts_tpool_init(1);
    f->target = hopen(target, "w");
    assert_true(f->pool.pool && f->target);
    const struct cram_writer_settings settings = {
        .name = target, .target = f->target, .header = f->header, .format = &f->format, .level = 1,
        .pool = &f->pool, .doubt = &f->doubt, .explain = explain, .arg = f};
    assert_int_equal(cram_writer_start(&settings, &f->writer), 0);
}

/* Returns 0, or -1 if a write fails. */
static int write_records(struct fixture *f)
{
    struct rng rng = rng_start(11);
    uint8_t rec[RECORD_BYTES];
    for (int32_t i = 0; i < RECORDS; i++) {
        const struct record_fields fields = {.name = "r", .pos = i, .n_cigar = 1, .l_seq = BASES};
        size_t n = put_record(rec, &fields, 1);
        rng_fill(&rng, rec + n - BASES, BASES);
        for (size_t k = n - BASES; k < n; k++) rec[k] %= 90;
        if (cram_writer_write(f->writer, rec, n) < 0) return -1;
    }
    return 0;
}

static void finish(struct fixture *f)
{
    cram_writer_destroy(f->writer);
    hts_tpool_destroy(f->pool.pool);
    hts_opt_free(f->format.specific);
    sam_hdr_destroy(f->header);
}

/* Returns the number of records, or -1 if the file is not complete. */
static int count_records(const char *path)
{
    samFile *file = sam_open(path, "r");
    sam_hdr_t *header = file ? sam_hdr_read(file) : NULL;
    bam1_t *record = bam_init1();
    int n = 0, r = 0;
    assert_true(header && record);
    while ((r = sam_read1(file, header, record)) >= 0) n++;
    bool is_complete = r == -1 && hts_check_EOF(file) == 1;
    bam_destroy1(record);
    sam_hdr_destroy(header);
    assert_int_equal(sam_close(file), 0);
    assert_int_equal(unlink(path), 0);
    return is_complete ? n : -1;
}

TEST_IN_OWN_DIR(test_records_become_cram)
{
    struct fixture f;
    start(&f, "out");
    assert_int_equal(write_records(&f), 0);
    assert_int_equal(cram_writer_end(f.writer, true), 0);
    assert_int_equal(hclose(f.target), 0);
    finish(&f);
    assert_int_equal(count_records("out"), RECORDS);
}

/* htslib does not see it when the target fails. */
TEST_IN_OWN_DIR(test_error_of_the_target_is_explained)
{
    struct fixture f;
    diag_silence();
    start(&f, "/dev/full");
    bool is_written = write_records(&f) == 0;
    assert_int_equal(cram_writer_end(f.writer, is_written), -is_written);
    assert_int_equal(f.error, ENOSPC);
    hclose_abruptly(f.target);
    finish(&f);
}

TEST_IN_OWN_DIR(test_incomplete_output_has_no_end)
{
    struct fixture f;
    start(&f, "out");
    assert_int_equal(write_records(&f), 0);
    assert_int_equal(cram_writer_end(f.writer, false), 0);
    assert_int_equal(hclose(f.target), 0);
    finish(&f);
    assert_int_equal(access("out", F_OK), 0);
    hts_set_log_level(HTS_LOG_OFF);
    samFile *file = sam_open("out", "r");
    assert_true(!file || hts_check_EOF(file) != 1);
    if (file) assert_int_equal(sam_close(file), 0);
    assert_int_equal(unlink("out"), 0);
}
