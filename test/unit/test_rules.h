/* test_rules.h -- sort rules of the orders that have no options, and room for their bounds. */
#ifndef ROCKSORT_TEST_RULES_H
#define ROCKSORT_TEST_RULES_H

#include "order/slice_merge.h"

enum { TEST_BOUND_BYTES = 1024 };

static inline const struct sort_rules *test_rules(enum sort_order order)
{
    static const struct sort_rules rules[] = {
        [SORT_COORDINATE] = {.order = SORT_COORDINATE},
        [SORT_NAME_NATURAL] = {.order = SORT_NAME_NATURAL},
        [SORT_NAME_LEXICAL] = {.order = SORT_NAME_LEXICAL},
    };
    return &rules[order];
}

/* Size and bytes of the key of a record, which must have one. */
static inline size_t test_key_bytes(enum sort_order order, const uint8_t *rec)
{
    const char *problem;
    return sort_key_bytes(test_rules(order), rec, &problem);
}

static inline size_t test_key_encode(enum sort_order order, const uint8_t *rec, uint8_t *out)
{
    return sort_key_encode(test_rules(order), rec, out);
}

#endif
