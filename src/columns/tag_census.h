/*
 * tag_census.h -- which tags the records of an input have.
 *
 * A census starts as {0}. Threads: any number may add at the same time; it is looked at when nobody
 * adds any more.
 */
#ifndef ROCKSORT_COLUMNS_TAG_CENSUS_H
#define ROCKSORT_COLUMNS_TAG_CENSUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TAG_CENSUS_WORDS = (1 << 14) / 64 };     /* two letters of 7 bits */

struct tag_census {
    _Atomic uint64_t seen[TAG_CENSUS_WORDS];
};

/* Adds checked records that follow each other. A census of NULL does nothing. */
void tag_census_add(struct tag_census *census, const uint8_t *from, const uint8_t *to);

/* True if some record has a tag with these two letters. */
bool tag_census_has(const struct tag_census *census, const char tag[2]);

#endif
