/*
 * read_groups.h -- finds the read group and the library of a record, by its tag RG and the header.
 *
 * Groups have numbers from 1, in the order of the @RG lines; 0 is no group: the record has no tag,
 * or one that is not in the header. Libraries have numbers from 1, in the order of their first @RG
 * lines; 0 is the unknown library: groups without LB, and records without a group.
 *
 * Order of calls: create; look up; destroy. The struct owns its memory and keeps no pointers into
 * the header. After create any thread may read it.
 */
#ifndef ROCKSORT_BAM_READ_GROUPS_H
#define ROCKSORT_BAM_READ_GROUPS_H

#include "bam/header_text.h"

#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

struct name_table {
    char **names;               /* of number i + 1 */
    size_t n;
    struct text_map numbers;    /* of names */
};

struct read_groups {
    struct name_table ids, libraries;
    size_t *library_of;         /* of group i + 1 */
};

/* Reads the @RG lines; uses the first of those with the same ID. May let htslib parse the header:
   no other thread may use it during the call. */
struct read_groups *read_groups_create(sam_hdr_t *header);

/* Accepts NULL. */
void read_groups_destroy(struct read_groups *groups);

/* The group with this ID, or 0; and the library of a group, 0 included. */
size_t read_groups_number(const struct read_groups *groups, const char *id);
size_t read_groups_library(const struct read_groups *groups, size_t group);

/* The group of a raw, checked record (bam_fields.h). */
size_t read_groups_of(const struct read_groups *groups, const uint8_t *rec);

#endif
