/*
 * id_renames.h -- changes the IDs of read groups and programs in records of one input to those of
 * the united header (header_union.h, which makes the renames).
 *
 * Threads: any. Nothing fails.
 */
#ifndef ROCKSORT_INPUT_ID_RENAMES_H
#define ROCKSORT_INPUT_ID_RENAMES_H

#include "bam/header_text.h"

#include <stdint.h>

enum id_kind { ID_GROUP, ID_PROGRAM, N_ID_KINDS };      /* @RG and RG:Z; @PG and PG:Z */

struct id_renames {
    struct text_map kinds[N_ID_KINDS];  /* by ID that changes: index in new_ids */
    const struct text *new_ids;
    size_t growth;              /* maximum growth of a record in bytes */
};

/* True if a checked record has an ID that changes. */
bool id_renames_touch(const struct id_renames *renames, const uint8_t *rec);

/* Upper bound of the size of the rewritten record; quick to compute. */
size_t id_renames_rewrite_bound(const struct id_renames *renames, const uint8_t *rec);

/* Writes a checked record to out, with the new IDs in its first RG:Z and its first PG:Z, and
   returns its size. Everything else is copied, also what follows a damaged tag. */
size_t id_renames_rewrite(const struct id_renames *renames, const uint8_t *rec, uint8_t *out);

#endif
