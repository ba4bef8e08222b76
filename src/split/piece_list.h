/*
 * piece_list.h -- the pieces of the output: what they are called, what their files are called, and
 * what was written to them.
 *
 * A piece has a title, such as "HLA:A*01" or the value of a tag. From that comes a name that can be
 * part of the name of a file, and that no other piece has. Letters, digits and . _ - + = , @ stay
 * as they are; other bytes become _, also a point or a minus at the beginning. Names are cut after
 * PIECE_NAME_BYTES. A name that is taken already gets _2, or _3 and so on. So names depend only on
 * the titles before. Names of files are made of a pattern and the name when they are asked for.
 *
 * Memory: there may be 100,000 pieces, so each takes some 80 bytes, its title, and its name if that
 * differs.
 *
 * Order of calls: create; add, any number of times; set_patterns, before files are asked for.
 * Ownership: the caller frees names of files. Titles and names belong to the list, and are valid
 * until the next piece is added or a begin is set. Threads: one at a time. No errors.
 */
#ifndef ROCKSORT_SPLIT_PIECE_LIST_H
#define ROCKSORT_SPLIT_PIECE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PIECE_NAME_BYTES = 180 };        /* a file name may have 255, with what stands around it */

struct piece_list;

struct piece_list *piece_list_create(void);

/* Accepts NULL. */
void piece_list_destroy(struct piece_list *list);

/* Adds a piece; `title` is not one of the list. Returns its number: 0, 1 and so on. */
size_t piece_list_add(struct piece_list *list, const char *title);

size_t piece_list_count(const struct piece_list *list);
const char *piece_list_title(const struct piece_list *list, size_t piece);
const char *piece_list_name(const struct piece_list *list, size_t piece);

/* The first piece with this title, or -1. */
ssize_t piece_list_find(const struct piece_list *list, const char *title);

/* What was written to a piece; the caller counts. Valid until the next piece is added. */
struct piece_counts {
    uint64_t n_records, n_bytes;
    bool begun;                 /* its file was opened */
};

struct piece_counts *piece_list_counts(struct piece_list *list, size_t piece);

/* Notes where the range begins that is the piece; NULL: nowhere. */
void piece_list_set_begin(struct piece_list *list, size_t piece, const char *begin);

/* What was noted, or NULL. */
const char *piece_list_begin(const struct piece_list *list, size_t piece);

/* Sets the patterns of the names of files, with % for that of the piece. index: NULL if pieces have
   none. Copies both. */
void piece_list_set_patterns(struct piece_list *list, const char *file, const char *index);

/* The name of the piece's file, or of its index: NULL if pieces have none. */
char *piece_list_file(const struct piece_list *list, size_t piece);
char *piece_list_index(const struct piece_list *list, size_t piece);

/* Puts the same, which must not be NULL, into a buffer, cut if it does not fit. Allocates
   nothing. */
void piece_list_put_file(const struct piece_list *list, size_t piece, bool index, char *out,
                         size_t room);

/* The name that would be both the file of this piece and an index of a piece, or the index of this
   one and the file of one; NULL if there is none. */
char *piece_list_clash(const struct piece_list *list, size_t piece);

#endif
