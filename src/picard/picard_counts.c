/* picard_counts.c -- see picard_counts.h. */
#include "picard/picard_counts.h"

#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static size_t slot_of(const struct picard_table *table, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash ^ hash >> 29) & (table->room - 1);
    while (table->at[i].n > 0 && table->at[i].key != key) i = (i + 1) & (table->room - 1);
    return i;
}

static void grow_table(struct picard_table *table)
{
    enum { LEAST_ROOM = 256 };
    struct picard_table old = *table;
    table->room = old.room > 0 ? 2 * old.room : LEAST_ROOM;
    table->at = xcalloc(table->room, sizeof *table->at);
    for (size_t i = 0; i < old.room; i++)
        if (old.at[i].n > 0) table->at[slot_of(table, old.at[i].key)] = old.at[i];
    free(old.at);
}

void picard_table_add(struct picard_table *table, uint64_t key, uint64_t n)
{
    if (table->n >= table->room / 2) grow_table(table);
    struct picard_entry *entry = &table->at[slot_of(table, key)];
    table->n += entry->n == 0;
    entry->key = key;
    entry->n += n;
}

/* ---- by cycle ---- */

static void grow_zeroed(void *array, size_t old_room, size_t room, size_t item_bytes)
{
    char **at = array;
    *at = xrealloc(*at, room * item_bytes);
    memset(*at + old_room * item_bytes, 0, (room - old_room) * item_bytes);
}

void picard_cycles_reserve(struct picard_cycles *cycles, size_t n_cycles)
{
    if (n_cycles <= cycles->room) return;
    size_t old = cycles->room, room = n_cycles + old / 2 + CYCLE_BLOCK;
    room -= room % CYCLE_BLOCK;
    for (int i = 0; i < N_BASES; i++) {
        grow_zeroed(&cycles->bases[i], old, room, sizeof(uint64_t));
        grow_zeroed(&cycles->few[i], old, room, sizeof(uint8_t));
    }
    grow_zeroed(&cycles->few_quals, old, room, sizeof(uint16_t));
    grow_zeroed(&cycles->quals, old, room, sizeof(uint64_t));
    grow_zeroed(&cycles->n_reads, old, room, sizeof(uint64_t));
    grow_zeroed(&cycles->n_with_quals, old, room, sizeof(uint64_t));
    if (cycles->n_original) {
        grow_zeroed(&cycles->original_quals, old, room, sizeof(uint64_t));
        grow_zeroed(&cycles->n_original, old, room, sizeof(uint64_t));
    }
    cycles->room = room;
}

void picard_cycles_reserve_original(struct picard_cycles *cycles)
{
    if (cycles->n_original) return;
    cycles->original_quals = xcalloc(cycles->room + 1, sizeof(uint64_t));
    cycles->n_original = xcalloc(cycles->room + 1, sizeof(uint64_t));
}

void picard_cycles_flush(struct picard_cycles *cycles)
{
    if (cycles->n_few == 0) return;
    for (int base = 0; base < N_BASES; base++) {
        for (size_t i = 0; i < cycles->room; i++) cycles->bases[base][i] += cycles->few[base][i];
        memset(cycles->few[base], 0, cycles->room);
    }
    for (size_t i = 0; i < cycles->room; i++) cycles->quals[i] += cycles->few_quals[i];
    memset(cycles->few_quals, 0, cycles->room * sizeof *cycles->few_quals);
    cycles->n_few = 0;
}

static void release_cycles(struct picard_cycles *cycles)
{
    for (int i = 0; i < N_BASES; i++) {
        free(cycles->bases[i]);
        free(cycles->few[i]);
    }
    free(cycles->few_quals);
    free(cycles->quals);
    free(cycles->n_reads);
    free(cycles->n_with_quals);
    free(cycles->original_quals);
    free(cycles->n_original);
}

static void add_array(uint64_t *to, const uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}

static void merge_cycles(struct picard_cycles *to, struct picard_cycles *from)
{
    picard_cycles_flush(from);
    picard_cycles_reserve(to, from->room);
    for (int i = 0; i < N_BASES; i++) add_array(to->bases[i], from->bases[i], from->room);
    add_array(to->quals, from->quals, from->room);
    add_array(to->n_reads, from->n_reads, from->room);
    add_array(to->n_with_quals, from->n_with_quals, from->room);
    if (!from->n_original) return;
    picard_cycles_reserve_original(to);
    add_array(to->original_quals, from->original_quals, from->room);
    add_array(to->n_original, from->n_original, from->room);
}

/* ---- all counts ---- */

void picard_counts_init(struct picard_counts *counts, size_t n_cells)
{
    *counts = (struct picard_counts){.n_sums = n_cells * PICARD_N_CATEGORIES};
    counts->sums = xcalloc(counts->n_sums, sizeof *counts->sums);
}

void picard_counts_release(struct picard_counts *counts)
{
    for (size_t i = 0; i < counts->n_used; i++) free(counts->sums[counts->used[i]]);
    free(counts->sums);
    free(counts->used);
    free(counts->table.at);
    for (int i = 0; i < 2; i++) release_cycles(&counts->cycles[i]);
}

static void use(struct picard_counts *counts, uint32_t index, uint64_t *sums)
{
    xgrow(&counts->used, &counts->used_room, counts->n_used + 1, counts->n_used,
          sizeof *counts->used);
    counts->used[counts->n_used++] = index;
    counts->sums[index] = sums;
}

uint64_t *picard_counts_sums(struct picard_counts *counts, uint32_t cell,
                             enum picard_category category)
{
    uint32_t index = cell * PICARD_N_CATEGORIES + (uint32_t)category;
    if (!counts->sums[index]) use(counts, index, xcalloc(SUM_N_SUMS, sizeof(uint64_t)));
    return counts->sums[index];
}

void picard_counts_merge(struct picard_counts *counts, struct picard_counts *other)
{
    for (size_t i = 0; i < other->n_used; i++) {
        uint32_t index = other->used[i];
        if (counts->sums[index]) {
            add_array(counts->sums[index], other->sums[index], SUM_N_SUMS);
        } else {
            use(counts, index, other->sums[index]);
            other->sums[index] = NULL;
        }
    }
    for (size_t i = 0; i < other->table.room; i++)
        if (other->table.at[i].n > 0)
            picard_table_add(&counts->table, other->table.at[i].key, other->table.at[i].n);
    for (int i = 0; i < 2; i++) {
        if (other->cycles[i].room > 0) merge_cycles(&counts->cycles[i], &other->cycles[i]);
        counts->n_reads[i] += other->n_reads[i];
        counts->n_bases[i] += other->n_bases[i];
        add_array(counts->quals[i][0], other->quals[i][0], N_LANES * N_QUALITIES);
        add_array(counts->yield_quals[i], other->yield_quals[i], N_QUALITIES);
    }
    add_array(counts->no_call_quals, other->no_call_quals, N_QUALITIES);
    add_array(counts->original_quals, other->original_quals, N_QUALITIES);
}
