/*
 * id_renames.h -- IDs of read groups and programs of one input that are others in the united
 * header, and records that follow it. Part of header_union.h.
 *
 * Order of calls: for each kind of ID init, add those that have changed, sort; rewrite records;
 * release each. The renames own copies of the IDs. Threads: any after sort. Errors: a message, then
 * -1, and only without memory.
 */
#ifndef ROCKSORT_INPUT_ID_RENAMES_H
#define ROCKSORT_INPUT_ID_RENAMES_H

#include "bam/bam_fields.h"
#include "bam/header_text.h"

enum id_kind { ID_GROUP, ID_PROGRAM, N_ID_KINDS };      /* @RG and RG:Z; @PG and PG:Z */

struct id_rename {
    char *old_id, *new_id;      /* one allocation, which begins with old_id */
};

struct id_renames {             /* of one kind; all zero: none */
    struct id_rename *at;
    size_t n;
    size_t growth;              /* by so many bytes at most an ID becomes longer */
};

/* For n of them at most. */
int id_renames_init(struct id_renames *renames, size_t n);
int id_renames_add(struct id_renames *renames, struct text old_id, struct text new_id);
void id_renames_sort(struct id_renames *renames);
void id_renames_release(struct id_renames *renames);

/* The two that header_union.h has for records, for the renames of one input. */
size_t id_renames_rewrite_bound(const struct id_renames renames[N_ID_KINDS], const uint8_t *rec);
size_t id_renames_rewrite(const struct id_renames renames[N_ID_KINDS], const uint8_t *rec,
                          uint8_t *out);

#endif
