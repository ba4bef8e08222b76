/* test_record_ordinals.c -- ordinals increase from record to record, and from sort buffer to sort
   buffer, wherever the sort buffers lie in memory. */
#include "test_rules.h"
#include "unit_test.h"

#include "markdup/markdup_rules.h"
#include "spill/sort_buffer.h"

enum { MOST_BATCHES = 9, BATCH_BYTES = 8 << 10 };

TEST(test_ordinals_follow_the_input)
{
    struct rng rng = rng_start(711);
    OWNED uint8_t *memory = test_alloc(MOST_BATCHES * BATCH_BYTES);
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + rng_below(&rng, MOST_BATCHES), places[MOST_BATCHES];
        struct sort_buffer *buffers[MOST_BATCHES];
        rng_permute(&rng, places, n);
        for (size_t i = 0; i < n; i++)
            buffers[i] = sort_buffer_create(test_rules(SORT_NAME_NATURAL),
                                            memory + places[i] * BATCH_BYTES, BATCH_BYTES);
        uint64_t least = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t least_in_buffer = 0;
            for (size_t at = rng_below(&rng, 40); at < BATCH_BYTES;
                 at += BAM_RECORD_MIN_BYTES + rng_below(&rng, 90)) {
                uint64_t ordinal = record_ordinal(buffers, n, buffers[i]->mem + at);
                uint64_t in_buffer = record_ordinal(&buffers[i], 1, buffers[i]->mem + at);
                CHECK(&rng, ordinal >= least && in_buffer >= least_in_buffer);
                least = ordinal + 1;
                least_in_buffer = in_buffer + 1;
            }
        }
        for (size_t i = 0; i < n; i++) sort_buffer_destroy(buffers[i]);
    }
}

TEST(test_only_sorts_that_need_ordinals_have_them)
{
    const struct markdup_rules duplicates = {0};
    struct sort_rules rules = {.order = SORT_TAG, .duplicates = &duplicates};
    assert_true(record_ordinals_are_needed(&rules));
    rules.order = SORT_COORDINATE;
    assert_false(record_ordinals_are_needed(&rules));
    rules = (struct sort_rules){.order = SORT_TAG};
    assert_false(record_ordinals_are_needed(&rules));
}
