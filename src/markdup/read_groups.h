/*
 * read_groups.h -- the read groups of a header and their libraries, found by the tag RG of a
 * record.
 *
 * Groups have numbers from 1, in the order of the @RG lines; 0 stands for no group: a record
 * without the tag, or with one that the header does not have. Libraries have numbers from 1, too,
 * in the order in which the @RG lines name them first; 0 is the unknown library of groups without
 * LB, and of records without a group.
 *
 * Order of calls: create; look up; destroy. All memory belongs to the struct; it keeps nothing of
 * the header. Once it is made any thread may read it.
 */
#ifndef ROCKSORT_MARKDUP_READ_GROUPS_H
#define ROCKSORT_MARKDUP_READ_GROUPS_H

#include <htslib/sam.h>
#include <stddef.h>
#include <stdint.h>

struct name_table {
    char **names; /* of number i + 1 */
    size_t n;
    void *numbers; /* khash, of names */
};

struct read_groups {
    struct name_table ids, libraries;
    size_t *library_of; /* of group i + 1 */
};

/* Takes the @RG lines; of two with one ID the first. The header is parsed, so no other thread may
   use it. */
struct read_groups *read_groups_create(sam_hdr_t *header);

/* NULL is accepted. */
void read_groups_destroy(struct read_groups *groups);

/* The library of a group, 0 included. */
size_t read_groups_library(const struct read_groups *groups, size_t group);

/* The group of a raw, checked record (bam_fields.h), and the library of its RG. */
size_t read_groups_of(const struct read_groups *groups, const uint8_t *rec);
size_t read_groups_library_of(const struct read_groups *groups, const uint8_t *rec);

#endif
