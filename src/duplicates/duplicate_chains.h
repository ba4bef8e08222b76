/*
 * duplicate_chains.h -- decides duplicates where more is asked for than a flag: of which read each
 * is a duplicate (-t), which are optical (-d), how many there are (--duplicate-count), and which
 * barcodes are one in spite of errors (--barcode-mismatches).
 *
 * Here all views that have to do with each other are in memory; pipeline/large_chains.h does the
 * same where they do not fit. The results are those of samtools markdup 1.24 with a window without
 * end. It reads the records in the order of the sorted file: reference, position, strand, run,
 * ordinal. Whenever two reads of one key meet, the worse of them becomes a duplicate of the better
 * one. A best read with all that became duplicates of it, or of a duplicate of it, is a *chain*.
 * When the chain is complete, duplicates are compared with the best read once more, and then with
 * each other.
 *
 * This differs from 1.24:
 * - A read whose name has no coordinates is not optical.
 * - Names whose tiles differ in length are on different tiles.
 *
 * Barcodes with errors: with --barcode-mismatches 1, barcodes of one length that differ in one
 * character are joined by the directional method of UMI-tools. Among reads whose keys agree but for
 * the barcode, the most frequent barcode is the first, of equal ones that which memcmp puts first.
 * With n reads it takes in the barcodes that differ in one character and have at most (n + 1) / 2
 * reads, and each of those does the same. Then comes the most frequent barcode that is left. So
 * errors of a frequent barcode are found, also two errors in a read, but two frequent barcodes that
 * happen to be similar stay two molecules. To join whatever is similar (transitive closure) would
 * make one molecule of all in deep piles, where most of the possible barcodes occur. Both reads of
 * a pair meet the same barcodes equally often, so they are decided alike. The best read is that of
 * the whole cluster.
 *
 * Memory besides the members: up to 30 bytes for each, 80 with -d; with --barcode-mismatches 16
 * more, or 120 in all if that is more. Time: O(n log n), also for a pile.
 *
 * Pure, but for the memory that it takes and frees; any thread.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_CHAINS_H
#define ROCKSORT_DUPLICATES_DUPLICATE_CHAINS_H

#include "duplicates/duplicate_view.h"

struct chain_member {
    /* set by the caller */
    struct duplicate_view view; /* its name and barcode stay until the results were used */
    uint32_t run;

    /* results */
    bool is_duplicate;
    bool is_optical;            /* tag dt: SQ, else LB */
    bool was_optical;           /* already when it became a duplicate. -S: the other alignments get
                                   SQ if the first read of their name that became one was optical
                                   then, or a read of their name is optical only now */
    uint32_t count;             /* tag dc of those that are no duplicates: they and their
                                   duplicates, as 1.24 adds them */
    struct chain_member *original;      /* whose name tag do gets: the best read of the chain, or,
                                           with --no-multi-dup, `found_by`; NULL: no duplicate */
    struct chain_member *found_by;      /* the better read at the moment when this one became a
                                           duplicate: the tag do of its other alignments (-S).
                                           NULL: no duplicate */

    /* of deciding */
    uint32_t place;             /* in the order of the sorted file */
    bool has_coords;            /* they were looked for */
};

/*
 * Which single reads must be decided with a pair that is elsewhere? The members are all views that
 * agree in ref and here, VIEW_END too. If the first pair in the sorted file whose 5' end has the
 * key of a single read is a VIEW_END, the single read belongs to the chain of that pair: ends[i] is
 * set to the VIEW_END for member i. Else it is NULL. Returns how many are set.
 */
size_t duplicate_chains_route(const struct duplicate_rules *rules, struct chain_member *members,
                              size_t n, const struct chain_member **ends);

/*
 * Decides n members, fewer than 2^32 - 1, in any order: views of pairs, all of one key, and of
 * single reads, all of one key but those that are routed elsewhere.
 * rules->optical_distance is at most INT32_MAX, as the parser makes sure. Returns NULL, or a member
 * of a pair that met another pair and lacks a score: then there are no results.
 */
const struct chain_member *duplicate_chains_decide(const struct duplicate_rules *rules,
                                                   struct chain_member *members, size_t n);

#endif
