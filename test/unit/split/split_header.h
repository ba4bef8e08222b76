/* split_header.h -- records at places, and how they are shown to an observer. */
#ifndef ROCKSORT_TEST_SPLIT_HEADER_H
#define ROCKSORT_TEST_SPLIT_HEADER_H

#include "random_records.h"

#include "bam/record_observer.h"

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
