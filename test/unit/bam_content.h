/*
 * bam_content.h -- a BAM file of random records, for tests of what reads it.
 */
#ifndef ROCKSORT_TEST_BAM_CONTENT_H
#define ROCKSORT_TEST_BAM_CONTENT_H

#include "random_records.h"

#include <htslib/bgzf.h>

enum { N_RECORDS = 400, MAX_CONTENT_BYTES = 4 << 20, LONGEST_RECORD = 200 };

static const char *const path = "in.bam";

struct content {
    uint8_t *bytes;             /* of the records */
    size_t n_bytes;
    size_t at[N_RECORDS + 1];   /* where each begins, and the end */
};

/* Records have up to 200 bases, one in 50 up to most_bases, and one of them up to longest_bases. */
static inline struct content make_content(struct rng *rng, size_t most_bases, size_t longest_bases)
{
    static const char tag[] = "RGZx";
    struct content c = {.bytes = test_alloc(MAX_CONTENT_BYTES)};
    for (size_t i = 0; i < N_RECORDS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%zu", i);
        struct record_fields f = {.name = name, .pos = (int32_t)rng_below(rng, 90000),
                                  .n_cigar = 1, .tag_bytes = sizeof tag};
        size_t most = i == LONGEST_RECORD ? longest_bases : rng_one_in(rng, 50) ? most_bases : 200;
        f.l_seq = 1 + (int32_t)rng_below(rng, most);
        c.at[i] = c.n_bytes;
        c.n_bytes += put_record(c.bytes + c.n_bytes, &f, 7);
        memcpy(c.bytes + c.n_bytes - sizeof tag, tag, sizeof tag);
    }
    c.at[N_RECORDS] = c.n_bytes;
    assert_true(c.n_bytes < MAX_CONTENT_BYTES);
    return c;
}

static inline void release_content(struct content *c)
{
    free(c->bytes);
}

/* Writes the beginning of a BAM file with this text and the reference c1 to head, which has room
   for 31 bytes more than the text. Returns its size. */
static inline size_t put_bam_header(uint8_t *head, const char *text)
{
    size_t n = strlen(text);
    memcpy(head, "BAM\1", 4);
    test_put_u32(head + 4, (uint32_t)n);
    memcpy(head + 8, text, n);
    test_put_u32(head + 8 + n, 1);
    test_put_u32(head + 12 + n, 3);
    memcpy(head + 16 + n, "c1", 3);
    test_put_u32(head + 19 + n, 100000);
    return n + 23;
}

/* Writes this header and the first n_bytes of the records; blocks end anywhere, also within the
   header. mode: of bgzf_open. */
static inline void write_content(struct rng *rng, const char *header, const struct content *c,
                                 size_t n_bytes, const char *mode)
{
    uint8_t head[256];
    size_t n = put_bam_header(head, header);
    BGZF *file = bgzf_open(path, mode);
    assert_non_null(file);
    for (size_t at = 0, step; at < n + n_bytes; at += step) {
        const uint8_t *from = at < n ? head + at : c->bytes + (at - n);
        size_t left = at < n ? n - at : n + n_bytes - at;
        step = 1 + rng_below(rng, rng_one_in(rng, 2) ? 9000 : 90000);
        if (step > left) step = left;
        assert_int_equal(bgzf_write(file, from, step), step);
        if (strcmp(mode, "w1") == 0 && rng_one_in(rng, 2)) assert_int_equal(bgzf_flush(file), 0);
    }
    assert_int_equal(bgzf_close(file), 0);
}

#endif
