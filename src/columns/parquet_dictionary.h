/*
 * parquet_dictionary.h -- the distinct values of a column, numbered as they come.
 *
 * Order of calls: clear; add for each value, all numbers or all texts. Texts are not copied and
 * must not change. A dictionary starts as {0}; parquet_dictionary_release frees it. One thread at a
 * time.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_DICTIONARY_H
#define ROCKSORT_COLUMNS_PARQUET_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parquet_entry {
    uint64_t number;            /* of a text: its bytes */
    const uint8_t *text;
};

struct parquet_dictionary {
    struct parquet_entry *entries;
    uint32_t n_entries;
    size_t entries_room;
    uint64_t text_bytes;        /* of all entries */
    uint32_t *slots;            /* of a hash table: numbers of entries */
    size_t n_slots;
};

void parquet_dictionary_clear(struct parquet_dictionary *dictionary);
void parquet_dictionary_release(struct parquet_dictionary *dictionary);

/* Return the number of the value's entry. */
uint32_t parquet_dictionary_add_number(struct parquet_dictionary *dictionary, uint64_t number);
uint32_t parquet_dictionary_add_text(struct parquet_dictionary *dictionary, const uint8_t *text,
                                     size_t n_bytes);

#endif
