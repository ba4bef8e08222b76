/* parquet_dictionary.c -- see parquet_dictionary.h. */
#include "columns/parquet_dictionary.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { NO_ENTRY = UINT32_MAX, LEAST_SLOTS = 1024 };

void parquet_dictionary_clear(struct parquet_dictionary *dictionary)
{
    dictionary->n_entries = 0;
    dictionary->text_bytes = 0;
    /* A large table would take longer to clear than to make again. */
    if (dictionary->n_slots > LEAST_SLOTS) dictionary->n_slots = LEAST_SLOTS;
    if (dictionary->n_slots > 0)
        memset(dictionary->slots, 0xff, dictionary->n_slots * sizeof *dictionary->slots);
}

void parquet_dictionary_release(struct parquet_dictionary *dictionary)
{
    free(dictionary->entries);
    free(dictionary->slots);
    *dictionary = (struct parquet_dictionary){0};
}

/* The high bits of a product depend on all bits of the number. */
static inline uint64_t hash_number(uint64_t number)
{
    uint64_t hash = number * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_entry(const struct parquet_entry *entry)
{
    return entry->text ? XXH3_64bits(entry->text, (size_t)entry->number)
                       : hash_number(entry->number);
}

/* Makes the table so large that it is at most half full. */
static void grow_table(struct parquet_dictionary *dictionary)
{
    size_t n = dictionary->n_slots ? 4 * dictionary->n_slots : LEAST_SLOTS;
    dictionary->slots = xrealloc(dictionary->slots, n * sizeof *dictionary->slots);
    dictionary->n_slots = n;
    memset(dictionary->slots, 0xff, n * sizeof *dictionary->slots);
    for (uint32_t i = 0; i < dictionary->n_entries; i++) {
        size_t slot = (size_t)hash_entry(&dictionary->entries[i]) & (n - 1);
        while (dictionary->slots[slot] != NO_ENTRY) slot = (slot + 1) & (n - 1);
        dictionary->slots[slot] = i;
    }
}

static uint32_t add_entry(struct parquet_dictionary *dictionary, size_t slot,
                          const struct parquet_entry *entry)
{
    uint32_t number = dictionary->n_entries++;
    xgrow(&dictionary->entries, &dictionary->entries_room, dictionary->n_entries,
          dictionary->n_entries, sizeof *entry);
    dictionary->entries[number] = *entry;
    dictionary->slots[slot] = number;
    return number;
}

uint32_t parquet_dictionary_add_number(struct parquet_dictionary *dictionary, uint64_t number)
{
    if (2 * (size_t)dictionary->n_entries >= dictionary->n_slots) grow_table(dictionary);
    size_t mask = dictionary->n_slots - 1, slot = (size_t)hash_number(number) & mask;
    for (uint32_t at; (at = dictionary->slots[slot]) != NO_ENTRY; slot = (slot + 1) & mask)
        if (dictionary->entries[at].number == number) return at;
    const struct parquet_entry entry = {.number = number};
    return add_entry(dictionary, slot, &entry);
}

uint32_t parquet_dictionary_add_text(struct parquet_dictionary *dictionary, const uint8_t *text,
                                     size_t n_bytes)
{
    if (2 * (size_t)dictionary->n_entries >= dictionary->n_slots) grow_table(dictionary);
    size_t mask = dictionary->n_slots - 1, slot = (size_t)XXH3_64bits(text, n_bytes) & mask;
    for (uint32_t at; (at = dictionary->slots[slot]) != NO_ENTRY; slot = (slot + 1) & mask) {
        const struct parquet_entry *entry = &dictionary->entries[at];
        if (entry->number == n_bytes && memcmp(entry->text, text, n_bytes) == 0) return at;
    }
    const struct parquet_entry entry = {.number = n_bytes, .text = text};
    dictionary->text_bytes += n_bytes;
    return add_entry(dictionary, slot, &entry);
}
