/*
 * header_union.h -- unites the headers of several inputs, and finds the IDs that change in records.
 *
 * Order of calls: create with the headers of all inputs; take the header, which may be changed
 * further (sort order, @PG) before others use it; take the renames of each input and rewrite its
 * records (id_renames.h); destroy. Input i below is the one whose header is headers[i].
 *
 * What the united header holds:
 *   @SQ  the first input's lines. All inputs must have the same names and lengths in the same
 *        order. Other tags of these lines (M5, UR, AS, ...) are not compared.
 *   @HD  the first input's line.
 *   @PG  all programs. Two lines become one if they agree in ID, in their tags (in any order), and
 *        in the whole chain of programs that PP leads to. If an earlier input uses an ID for
 *        something else, the ID becomes ID-N. N is the number of the input, from 1, or the next
 *        number for which no input has the ID. PP is changed with it.
 *   @RG  all read groups, by the same rules. PG is changed with the program's ID, so read groups
 *        whose programs differ are different.
 *   @CO  all comments, and lines of unknown types, except those that an earlier input has, too.
 * The first input keeps its IDs and its lines as they are. Lines of later inputs follow its last
 * line of their type. If an input has an ID twice, the first line counts, as in htslib.
 *
 * Records refer to @RG and @PG lines in their tags RG:Z and PG:Z. If the header of a record's input
 * has a line with this ID, or a line whose PP or PG refers to it, the tag gets the new ID. Else it
 * stays as it is, even if the header of another input has the ID.
 *
 * Ownership: the union owns its header and keeps no pointer to what it is given. Threads: during
 * create no other thread may use the headers (htslib may rebuild their text); after that any thread
 * may use the renames. Errors: NULL after a message.
 */
#ifndef ROCKSORT_INPUT_HEADER_UNION_H
#define ROCKSORT_INPUT_HEADER_UNION_H

#include "input/id_renames.h"

struct kept_texts {             /* allocated copies */
    struct text *at;
    size_t n, room;
};

/* Only header_union.c may change it, except the header. */
struct header_union {
    sam_hdr_t *header;
    size_t n_inputs;
    struct id_renames *renames; /* of each input */
    struct kept_texts ids;      /* the old and the new IDs of all renames */
};

/* Checks that y has the references of x; returns 0, or -1 after a message with the names. */
int header_union_check_references(const sam_hdr_t *x, const char *x_file, const sam_hdr_t *y,
                                  const char *y_file);

/*
 * Unites the headers of n > 0 inputs; `names` are the names of the inputs in messages. The caller
 * must have compared the references of all headers with those of the first. Only the first header
 * needs to have @SQ lines: a thousand copies of them would take a lot of memory.
 */
struct header_union *header_union_create(sam_hdr_t *const *headers, const char *const *names,
                                         size_t n);

/* Accepts NULL. */
void header_union_destroy(struct header_union *u);

/* Returns the IDs of input i that have changed. If none has, returns NULL, and the records stay as
   they are. */
const struct id_renames *header_union_renames(const struct header_union *u, size_t i);

#endif
