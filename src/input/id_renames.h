/*
 * id_renames.h -- changes the IDs of read groups and programs in records of one input to those of
 * the united header (header_union.h).
 *
 * Order of calls: start with {0}; add each ID that changes; sort; rewrite records; release.
 * Ownership: the renames own copies of the IDs. Threads: any after sort. Nothing fails.
 */
#ifndef ROCKSORT_INPUT_ID_RENAMES_H
#define ROCKSORT_INPUT_ID_RENAMES_H

#include "bam/header_text.h"

#include <stdbool.h>
#include <stdint.h>

enum id_kind { ID_GROUP, ID_PROGRAM, N_ID_KINDS };      /* @RG and RG:Z; @PG and PG:Z */

struct id_rename {
    char *old_id, *new_id;
};

struct id_rename_list {
    struct id_rename *at;
    size_t n, room;
    size_t growth;              /* maximum growth of an ID in bytes */
};

struct id_renames {
    struct id_rename_list kinds[N_ID_KINDS];
};

void id_renames_add(struct id_renames *renames, enum id_kind kind, struct text old_id,
                    struct text new_id);
void id_renames_sort(struct id_renames *renames);
void id_renames_release(struct id_renames *renames);

/* True if a checked record has an ID that changes. */
bool id_renames_touch(const struct id_renames *renames, const uint8_t *rec);

/* Upper bound of the size of the rewritten record; quick to compute. */
size_t id_renames_rewrite_bound(const struct id_renames *renames, const uint8_t *rec);

/* Writes a checked record to out, with the new IDs in its first RG:Z and its first PG:Z, and
   returns its size. Everything else is copied, also what follows a damaged tag. */
size_t id_renames_rewrite(const struct id_renames *renames, const uint8_t *rec, uint8_t *out);

#endif
