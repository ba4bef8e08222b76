/*
 * group_list.h -- the groups of the output: their titles, the names of their files, and what was
 * written to them.
 *
 * A group has a title, such as "HLA:A*01" or the value of a tag. From that comes a name that can be
 * part of the name of a file, and that no other group has. Letters, digits and . _ - + , @ stay as
 * they are; other bytes become _, also a point or a minus at the beginning. Names are cut after
 * GROUP_NAME_BYTES. A name that is taken already gets _2, or _3 and so on, so names depend only on
 * the titles before. Names of files are made of a pattern and the name when they are asked for.
 *
 * Memory: there may be 100,000 groups, so each takes some 80 bytes, its title, and its name if that
 * differs.
 *
 * Order of calls: create; add, any number of times; set_patterns, before files are asked for.
 * Ownership: the caller frees names of files. Titles and names belong to the list, and are valid
 * until the next group is added or a begin is set. Threads: one at a time. No errors.
 */
#ifndef ROCKSORT_SPLIT_GROUP_LIST_H
#define ROCKSORT_SPLIT_GROUP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GROUP_NAME_BYTES = 180 };        /* a file name may have 255, with what stands around it */

struct group_list;

struct group_list *group_list_create(void);

/* Accepts NULL. */
void group_list_destroy(struct group_list *list);

/* Adds a group; `title` is not one of the list. Returns its number: 0, 1 and so on. */
size_t group_list_add(struct group_list *list, const char *title);

size_t group_list_count(const struct group_list *list);
const char *group_list_title(const struct group_list *list, size_t group);
const char *group_list_name(const struct group_list *list, size_t group);

/* The first group with this title, or -1. */
ssize_t group_list_find(const struct group_list *list, const char *title);

/* What was written to a group; the caller counts. Valid until the next group is added. */
struct split_group_counts {
    uint64_t n_records, n_bytes;
    bool begun;                 /* its file was opened */
};

struct split_group_counts *group_list_counts(struct group_list *list, size_t group);

/* Notes where the range begins that is the group; NULL: nowhere. */
void group_list_set_begin(struct group_list *list, size_t group, const char *begin);

/* What was noted, or NULL. */
const char *group_list_begin(const struct group_list *list, size_t group);

/* Sets the patterns of the names of files, with % for that of the group. index: NULL if groups have
   none. Copies both. */
void group_list_set_patterns(struct group_list *list, const char *file, const char *index);

/* The name of the group's file, or of its index: NULL if groups have none. */
char *group_list_file(const struct group_list *list, size_t group);
char *group_list_index(const struct group_list *list, size_t group);

/* Puts the same, which must not be NULL, into a buffer, cut if it does not fit. Allocates
   nothing. */
void group_list_put_file(const struct group_list *list, size_t group, bool index, char *out,
                         size_t room);

/* The name that would be both the file of this group and an index of a group, or the index of this
   one and the file of one; NULL if there is none. */
char *group_list_clash(const struct group_list *list, size_t group);

#endif
