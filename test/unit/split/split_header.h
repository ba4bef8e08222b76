/* split_header.h -- a header with references of random lengths, and records at places on them. */
#ifndef ROCKSORT_TEST_SPLIT_HEADER_H
#define ROCKSORT_TEST_SPLIT_HEADER_H

#include "random_records.h"

#include "bam/record_observer.h"

/* Makes a header with the references r0, r1 and so on. The caller destroys it. */
static inline sam_hdr_t *make_header(const int64_t *lengths, size_t n)
{
    sam_hdr_t *header = sam_hdr_init();
    if (!header) fail_msg("out of memory");
    for (size_t i = 0; i < n; i++) {
        char name[24], length[24];
        (void)snprintf(name, sizeof name, "r%zu", i);
        (void)snprintf(length, sizeof length, "%" PRId64, lengths[i]);
        if (sam_hdr_add_line(header, "SQ", "SN", name, "LN", length, NULL) < 0)
            fail_msg("cannot make a header");
    }
    return header;
}

/* Writes a record of some length at a place; returns its size, at most 200 bytes. */
static inline size_t put_at(struct rng *rng, uint8_t *out, int32_t tid, int32_t pos)
{
    struct record_fields f = {.name = "r", .tid = tid, .pos = pos, .flag = BAM_FUNMAP,
                              .l_seq = (int32_t)rng_below(rng, 100)};
    return put_record(out, &f, 0);
}

static inline void unobserve(struct record_observer *observer)
{
    observer->kind->destroy(observer);
}

/* Shows records to an observer without parts. */
static inline int observe(struct record_observer *observer, const uint8_t *from, const uint8_t *to)
{
    const struct observed_records records = {.all = {from, to}};
    return observer->kind->add_records(observer, NULL, &records);
}

#endif
