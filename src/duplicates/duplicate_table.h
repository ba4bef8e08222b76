/*
 * duplicate_table.h -- the best read of each key, while views come in any order.
 *
 * Of two reads with one key the table keeps the better one, and returns the other: it is a
 * duplicate. As in samtools, of two pairs the better is one that has not failed QC; then the one
 * with the higher score; then the one whose name strcmp puts first. Of two single reads it is the
 * one with the higher score; then the one that comes first in the file by coordinate: by place, run
 * and ordinal. That also decides between pairs of one name. So each key has one best read, whatever
 * the order in which they come.
 *
 * Memory: a table never takes more than its limit. When an entry more would, adding fails; the
 * caller then begins anew with a part of the keys (duplicate_table_part).
 *
 * Order of calls: create; reset before each use; add; destroy. Threads: one at a time.
 */
#ifndef ROCKSORT_DUPLICATES_DUPLICATE_TABLE_H
#define ROCKSORT_DUPLICATES_DUPLICATE_TABLE_H

#include "duplicates/duplicate_view.h"

struct duplicate_table;

/* A record that is a duplicate. The name is there until the next call. */
struct duplicate_record {
    int64_t place;              /* duplicate_view_place */
    uint32_t run, index;
    uint64_t ordinal;           /* as in its view */
    bool has_others;
    bool was_marked;            /* in the input */
    uint32_t group;
    const uint8_t *name;        /* as in its view */
    size_t name_bytes;
};

enum table_result {
    TABLE_NO_DUPLICATE,
    TABLE_DUPLICATE,
    TABLE_FULL,
    TABLE_LACKS_SCORE,          /* two pairs meet, and one of them lacks a score: in *record */
    TABLE_FAILED,               /* for the caller's use */
};

/* The limit is 64 KB at least. */
struct duplicate_table *duplicate_table_create(size_t limit_bytes);

/* NULL is accepted. */
void duplicate_table_destroy(struct duplicate_table *table);

/* Empties the table and prepares it for n_views, or for as many as fit into half of its limit. If
   there are more, it grows. */
void duplicate_table_reset(struct duplicate_table *table, uint64_t n_views);

bool duplicate_table_is_empty(const struct duplicate_table *table);

/* The 128-bit hash of a key, which stands for it. */
struct duplicate_key { uint64_t low, high; };
struct duplicate_key duplicate_key_of_pair(const struct duplicate_rules *rules,
                                           const struct duplicate_view *view);

/* Of a single read, or of the 5' end of a member of a pair. */
struct duplicate_key duplicate_key_of_single(const struct duplicate_rules *rules,
                                             const struct duplicate_view *view);

/* The same of a name, for a table of names (duplicate_table_add_name). */
struct duplicate_key duplicate_key_of_name(const uint8_t *name, size_t n_bytes);

/* In which of n_parts parts a key is. The parts of n * k parts from p * k on are part p of n. */
static inline unsigned duplicate_key_part(struct duplicate_key key, unsigned n_parts)
{
    return (unsigned)((key.high >> 32) * n_parts >> 32);
}

/* Adds a view of a record of run number `run`: of a pair or of a single read. The table must have
   views of one kind only. */
enum table_result duplicate_table_add(struct duplicate_table *table, struct duplicate_key key,
                                      const struct duplicate_view *view, uint32_t run,
                                      struct duplicate_record *record);

/* What the other records of a duplicate get of it. */
struct duplicate_name {
    int64_t place;              /* duplicate_view_place of the record that was read when it became a
                                   duplicate */
    uint32_t run;               /* of that record */
    uint64_t ordinal;
    uint32_t group;
    bool was_optical;           /* when it became a duplicate */
    bool turned_optical;        /* after that */
    const uint8_t *original;    /* name of its original, or NULL */
    size_t original_bytes;
};

/* In a table of names: adds a duplicate whose name has this key. Of two of one name the one that
   became a duplicate first counts, but that one has turned optical is kept. Returns TABLE_FULL or
   TABLE_NO_DUPLICATE. */
enum table_result duplicate_table_add_name(struct duplicate_table *table, struct duplicate_key key,
                                           const struct duplicate_name *name);

/* True if the table has the name with this key: then sets *name, which points into the table. */
bool duplicate_table_find_name(const struct duplicate_table *table, struct duplicate_key key,
                               struct duplicate_name *name);

/* In a table of single reads: a member of a pair has this key of a single read. If there is a best
   single read that is no duplicate yet, it is one now. */
enum table_result duplicate_table_meet_pair(struct duplicate_table *table,
                                            struct duplicate_key key,
                                            struct duplicate_record *record);

#endif
