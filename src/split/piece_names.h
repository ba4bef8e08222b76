/*
 * piece_names.h -- names of pieces that can be names of files, each of them once.
 *
 * Letters, digits and . _ - + = , @ stay as they are; other bytes become _, also a point or a minus
 * at the beginning. Names are cut after PIECE_NAME_BYTES. A name that is taken already gets _2, or
 * _3 and so on. So names depend only on the names before.
 *
 * Ownership: the caller frees names. Threads: one at a time. No errors.
 */
#ifndef ROCKSORT_SPLIT_PIECE_NAMES_H
#define ROCKSORT_SPLIT_PIECE_NAMES_H

enum { PIECE_NAME_BYTES = 180 };        /* a file name may have 255, with what stands around it */

struct piece_names;

struct piece_names *piece_names_create(void);

/* Accepts NULL. */
void piece_names_destroy(struct piece_names *names);

/* Takes a name for a file. */
char *piece_names_take(struct piece_names *names, const char *name);

/* Puts the name of a piece in the place of each % in a pattern. */
char *piece_names_expand(const char *pattern, const char *piece);

#endif
