/*
 * header_ids.h -- the IDs of one header: its @RG and @PG lines, and the programs that they refer
 * to. Part of header_union.h.
 *
 * Order of calls: start with {0}; add each line; link; read and write the items; release. Strings
 * are pieces of the header's text, which must outlive them. Threads: one at a time.
 */
#ifndef ROCKSORT_INPUT_HEADER_IDS_H
#define ROCKSORT_INPUT_HEADER_IDS_H

#include "bam/header_text.h"
#include "input/id_renames.h"

struct header_id {
    /* as the header has it */
    struct text line;           /* none if the ID is only referred to */
    struct text id;
    struct text ref;            /* the program that it refers to (PP of @PG, PG of @RG), or none */
    size_t parent;              /* ... as an index of the header's programs; set by link */
    /* for header_union.c */
    struct text new_id;         /* in the united header; none as long as it is unknown */
    bool is_added;              /* the united header gets this line */
    bool is_visited;
    size_t child;               /* the program that was visited before */
};

struct header_id_list {
    struct header_id *at;
    size_t n, room;
    struct text_map places;     /* index by ID */
};

struct header_ids {
    struct header_id_list kinds[N_ID_KINDS];
};

/* The kind of a header's line; N_ID_KINDS: neither. */
enum id_kind header_ids_kind_of(struct text line);

/* Adds a line, unless there is one with its ID. Returns 0, or -1 after a message if it has none;
   `file` is the name of the input in the message. */
int header_ids_add(struct header_ids *ids, enum id_kind kind, struct text line, const char *file);

/* Sets all parents. A program that is only referred to is added. */
void header_ids_link(struct header_ids *ids);

void header_ids_release(struct header_ids *ids);

#endif
