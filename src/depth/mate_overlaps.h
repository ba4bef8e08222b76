/*
 * mate_overlaps.h -- finds the positions that both mates of a pair cover, as mosdepth 0.3.3 does,
 * so that the depth counts them once.
 *
 * In the order of the file, a read that reaches beyond the begin of its mate waits; the next read
 * of its name on the same reference that does not wait itself takes it, and the overlap is taken
 * from the depth. If both CIGARs have one operation, the overlap goes from the begin of the second
 * read to the end of the first one, even if the second ends earlier.
 *
 * A worker does this for the reads of a part (mate_part). A read whose first mate may be in an
 * earlier part is *asked*: mate_table_add, which gets the parts in order, looks for it among the
 * reads that wait at the end of earlier parts. One difference from mosdepth: if the first mate ends
 * before the second one begins, nothing is done. mosdepth then adds 1 between them.
 *
 * Names are compared by 64-bit hashes.
 *
 * Order of calls: in a worker begin_piece at the first record of each reference, and add. Then
 * mate_table_begin_ref for a new reference, mate_table_add for each piece. Structs start as {0}.
 *
 * Memory: for each read that waits or is asked 64 bytes in its part; later, while it waits, 32, and
 * 120 more if its CIGAR has several operations. If many reads wait, those that have ended are
 * forgotten. Threads: each struct has one owner at a time.
 */
#ifndef ROCKSORT_DEPTH_MATE_OVERLAPS_H
#define ROCKSORT_DEPTH_MATE_OVERLAPS_H

#include "depth/depth_runs.h"

struct span {                   /* positions [begin, end) that a read covers */
    int64_t begin, end;
};

enum mate_role {
    MATE_WAITS,                 /* its mate comes later */
    MATE_EITHER,                /* mates with the same begin: waits if there is no first one */
    MATE_SECOND
};

struct mate_read {
    uint64_t name;              /* hash */
    enum mate_role role;
    bool has_one_op;            /* the CIGAR */
    int64_t begin, end;         /* of the alignment */
    struct span *spans;         /* what it covers */
    size_t n_spans;
};

struct kh_names_s;
struct kh_waiting_s;

struct mate_part {
    struct kh_names_s *names;   /* of the current reference: the read that waits, or a state */
    struct mate_read *reads;    /* that waited on the current reference; spans are owned */
    size_t n_reads, reads_room;
    struct mate_read *asked;    /* of the first piece; spans are owned */
    size_t n_asked, asked_room;
    size_t n_pieces;
};

void mate_part_begin_piece(struct mate_part *part);

/* Adds the next read; keeps nothing of it. Takes overlaps from `depth`. */
void mate_part_add(struct mate_part *part, struct depth_part *depth, const struct mate_read *read);

void mate_part_release(struct mate_part *part);

struct mate_table {
    struct kh_waiting_s *waiting;
    size_t most;                /* reads, before those that have ended are forgotten */
};

/* Forgets all reads. */
void mate_table_begin_ref(struct mate_table *table);

/* Adds a piece of a part, `is_first` and `is_last` if it is the part's first or last one. No later
   record begins before pos. Takes overlaps from `depth`. */
struct mate_piece {
    struct mate_part *part;
    bool is_first, is_last;
    int64_t pos;
};
void mate_table_add(struct mate_table *table, const struct mate_piece *piece,
                    struct depth_part *depth);

void mate_table_release(struct mate_table *table);

#endif
