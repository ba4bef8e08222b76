/*
 * barcode_table.h -- the barcode that the records of a name have (pair_barcode.h).
 *
 * Memory: a table never takes more than its limit. When an entry more would, adding fails; the
 * caller then begins anew with a part of the names.
 *
 * Order of calls: create; reset, any number of add, then any number of find; destroy. Threads: one
 * at a time for each table.
 */
#ifndef ROCKSORT_DUPLICATES_BARCODE_TABLE_H
#define ROCKSORT_DUPLICATES_BARCODE_TABLE_H

#include "duplicates/duplicate_table.h"

struct barcode_table;

/* The limit is 64 KB at least. */
struct barcode_table *barcode_table_create(size_t limit_bytes);

/* NULL is accepted. */
void barcode_table_destroy(struct barcode_table *table);

/* Empties the table and prepares it for n_names, or for as many as fit into its limit. */
void barcode_table_reset(struct barcode_table *table, uint64_t n_names);

/* Adds the barcode of a view whose name has this key. Returns false if the table is full. */
bool barcode_table_add(struct barcode_table *table, struct duplicate_key name,
                       const struct duplicate_view *giver);

/* Gives a view the barcode that was added for its name, if there is one and no other. The text
   points into the table until the next reset. */
void barcode_table_give(const struct barcode_table *table, struct duplicate_key name,
                        struct duplicate_view *seeker);

#endif
