/*
 * key_parts.h -- parts of the keys of a partition, for passes with a table that may not hold all.
 *
 * A part that does not fit into the table is divided by four; parts that are done stay done. So all
 * parts that are still to come are of one size.
 */
#ifndef ROCKSORT_PIPELINE_KEY_PARTS_H
#define ROCKSORT_PIPELINE_KEY_PARTS_H

#include "duplicates/duplicate_table.h"

/* The most divisions of the keys of a partition. */
enum { KEY_PARTS_MAX_DIVISIONS = 8 };

/* Those keys of which duplicate_key_part is `part`. It starts as {0, 1}: all of them. When all
   parts are done, `part` is n_parts. */
struct key_part {
    unsigned part, n_parts;
};

static inline bool key_part_has(struct key_part keys, struct duplicate_key key)
{
    return duplicate_key_part(key, keys.n_parts) == keys.part;
}

/* After a pass: goes on to the next part, or, if the keys did not fit, to the first of those that
   the part is divided into. Returns 0, or -1 after a message. */
int key_part_go_on(struct key_part *keys, bool fitted);

#endif
