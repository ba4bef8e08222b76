/*
 * group_list.h -- the groups of the output: titles, file names, and counts of what was written.
 *
 * A group has a title, such as "HLA:A*01" or the value of a tag. Its name is made from the title:
 * it is unique and can be part of a file name. Letters, digits and . _ - + , @ are kept; other
 * bytes, and a leading point or minus, become _. Names are cut to GROUP_NAME_BYTES. A name that is
 * taken gets _2, _3 and so on, so a name depends only on the titles added before. File names are
 * made on demand, from a pattern and the name.
 *
 * Memory: 150 bytes for each of up to 100,000 groups, plus the title, and the name if that differs.
 *
 * Order of calls: create; add, any number of times; set_patterns, before files are asked for.
 * Ownership: the caller frees file names. Threads: one at a time. No errors.
 */
#ifndef ROCKSORT_SPLIT_GROUP_LIST_H
#define ROCKSORT_SPLIT_GROUP_LIST_H

#include "bam/header_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GROUP_NAME_BYTES = 180 };        /* a file name has at most 255, with the rest of the
                                           pattern */

struct split_group {            /* moves when a group is added; its texts do not */
    char *title, *name;         /* owned by the list; may be the same text */
    uint32_t last_number;       /* last _N added to this name to make another one */
    /* for the caller */
    char *begin;                /* the start of its range, which the list frees; or NULL */
    uint64_t n_records, n_bytes;        /* that were written */
    bool begun;                 /* its file was opened */
};

struct group_list {
    struct split_group *all;
    size_t n, room;
    struct text_map by_title, by_name;  /* numbers of groups */
    char *patterns[2];          /* of the file, and of the index */
};

struct group_list *group_list_create(void);

/* Accepts NULL. */
void group_list_destroy(struct group_list *list);

/* Adds a group; no group may have this title yet. Returns its number: 0, 1 and so on. */
size_t group_list_add(struct group_list *list, const char *title);

/* The first group with this title, or -1. */
ssize_t group_list_find(const struct group_list *list, const char *title);

/* Sets the patterns of file names; % stands for the group's name. index: NULL if groups have no
   index. Copies both. */
void group_list_set_patterns(struct group_list *list, const char *file, const char *index);

/* The name of the group's file, and of its index, which is NULL if groups have none. */
char *group_list_file(const struct group_list *list, size_t group);
char *group_list_index(const struct group_list *list, size_t group);

/* Writes the same name, which must not be NULL, into a buffer, truncated to fit. Does not
   allocate. */
void group_list_put_file(const struct group_list *list, size_t group, bool index, char *out,
                         size_t room);

/* Returns a name that both the file of one group and the index of another would get, if this group
   is one of the two; else NULL. */
char *group_list_clash(const struct group_list *list, size_t group);

#endif
