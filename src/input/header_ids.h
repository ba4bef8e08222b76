/*
 * header_ids.h -- the IDs of one header: its @RG and @PG lines, and the programs that these lines
 * refer to. Used by header_union.c only.
 *
 * Order of calls: start with {0}; add each line; link; read and write the items; release. Strings
 * are pieces of the header's text, which must outlive them. Threads: one at a time.
 */
#ifndef ROCKSORT_INPUT_HEADER_IDS_H
#define ROCKSORT_INPUT_HEADER_IDS_H

#include "bam/header_text.h"
#include "input/id_renames.h"

struct header_id {
    /* as in the header */
    struct text line;           /* none if the header has no line with this ID */
    struct text id;
    struct text ref;            /* ID of the program that the line refers to, or none (PP of @PG,
                                   PG of @RG) */
    size_t parent;              /* index of that program among the programs; set by link */
    /* for header_union.c */
    struct text new_id;         /* in the united header; none as long as it is unknown */
    bool is_added;              /* the united header gets this line */
    bool is_visited;
    size_t child;               /* the program from which this one was reached */
};

struct header_id_list {
    struct header_id *at;
    size_t n, room;
    struct text_map places;     /* by ID: index in `at` */
};

struct header_ids {
    struct header_id_list kinds[N_ID_KINDS];
};

/* The kind of a line; N_ID_KINDS if it is neither @RG nor @PG. */
enum id_kind header_ids_kind_of(struct text line);

/* Adds a line, unless an earlier line has the same ID. Returns 0, or -1 after a message if the line
   has no ID; `file` is the name of the input in the message. */
int header_ids_add(struct header_ids *ids, enum id_kind kind, struct text line, const char *file);

/* Sets all parents. Adds each program that a line refers to but that has no line itself. */
void header_ids_link(struct header_ids *ids);

void header_ids_release(struct header_ids *ids);

#endif
