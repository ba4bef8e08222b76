/* picard_levels.c -- see picard_levels.h. */
#include "picard/picard_levels.h"

#include "bam/header_text.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

static const char unknown[] = "unknown";

/* ---- read groups ---- */

enum { FIELD_ID, FIELD_SAMPLE, FIELD_LIBRARY, FIELD_UNIT, N_FIELDS };

struct group {
    char *fields[N_FIELDS];     /* NULL: missing */
};

struct picard_groups {
    struct group *all;          /* of cell i + 1 */
    size_t n, room;
    struct text_map cells;      /* of IDs */
};

static void take_line(struct picard_groups *groups, struct text line)
{
    static const char *const names[N_FIELDS] = {"ID:", "SM:", "LB:", "PU:"};
    struct group group = {{NULL}};
    struct text field;
    for (struct text rest = header_line_rest(line); header_next_field(&rest, &field);)
        for (int i = 0; i < N_FIELDS; i++) {
            struct text value = header_field_value(field, names[i]);
            if (value.at && !group.fields[i])
                group.fields[i] = xasprintf("%.*s", (int)value.n, value.at);
        }
    const char *id = group.fields[FIELD_ID];
    bool is_new = id && text_map_put(&groups->cells, text_of(id), groups->n + 1) == groups->n + 1;
    if (is_new) {
        xgrow(&groups->all, &groups->room, groups->n + 1, groups->n, sizeof *groups->all);
        groups->all[groups->n++] = group;
        return;
    }
    for (int i = 0; i < N_FIELDS; i++) free(group.fields[i]);
}

struct picard_groups *picard_groups_create(sam_hdr_t *header)
{
    struct picard_groups *groups = xcalloc(1, sizeof *groups);
    const char *at = header_whole_text(header);
    for (struct text line; header_next_line(&at, &line);)
        if (header_line_is(line, "@RG")) take_line(groups, line);
    return groups;
}

void picard_groups_destroy(struct picard_groups *groups)
{
    if (!groups) return;
    for (size_t i = 0; i < groups->n; i++)
        for (int j = 0; j < N_FIELDS; j++) free(groups->all[i].fields[j]);
    text_map_release(&groups->cells);
    free(groups->all);
    free(groups);
}

size_t picard_groups_n_cells(const struct picard_groups *groups)
{
    return groups->n + 1;
}

uint32_t picard_groups_cell(const struct picard_groups *groups, const char *id)
{
    const size_t *cell = text_map_find(&groups->cells, text_of(id));
    return cell ? (uint32_t)*cell : 0;
}

/* ---- units of a level ---- */

/* Which unit each cell belongs to. The unknown one is number n, unless a unit has its name. */
struct units {
    uint32_t *of_cell;
    struct picard_labels *labels;
    size_t n;
    uint32_t of_unknown;
};

static struct picard_labels labels_of(const struct group *group, enum picard_level level)
{
    return (struct picard_labels){
        .sample = group->fields[FIELD_SAMPLE],
        .library = level >= LEVEL_LIBRARY ? group->fields[FIELD_LIBRARY] : NULL,
        .read_group = level >= LEVEL_READ_GROUP ? group->fields[FIELD_UNIT] : NULL};
}

/* A field that is missing makes a unit without a name, to which no read belongs. */
static void make_units(const struct picard_groups *groups, enum picard_level level,
                       struct units *units)
{
    int field = FIELD_SAMPLE + (int)level - (int)LEVEL_SAMPLE;
    struct text_map numbers = {NULL};
    bool has_nameless = false;
    for (size_t i = 0; i < groups->n; i++) {
        const char *name = groups->all[i].fields[field];
        bool is_new = name ? text_map_put(&numbers, text_of(name), units->n) == units->n
                           : !has_nameless;
        if (is_new) units->labels[units->n++] = labels_of(&groups->all[i], level);
        has_nameless |= !name;
    }
    const size_t *taken = text_map_find(&numbers, text_of(unknown));
    units->of_unknown = (uint32_t)(taken ? *taken : units->n);
    units->of_cell[0] = units->of_unknown;
    for (size_t i = 0; i < groups->n; i++) {
        const char *name = groups->all[i].fields[field];
        units->of_cell[i + 1] =
            name ? (uint32_t)*text_map_find(&numbers, text_of(name)) : units->of_unknown;
    }
    text_map_release(&numbers);
}

const char *picard_labels_name(const struct picard_labels *labels)
{
    return labels->read_group ? labels->read_group
           : labels->library  ? labels->library
           : labels->sample   ? labels->sample
                              : "All_Reads";
}

/* ---- gathering ---- */

static int compare_entries(const void *a, const void *b)
{
    const struct picard_entry *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void gather_bins(const struct picard_counts *counts, const struct units *units,
                        struct picard_gathered *gathered)
{
    const struct picard_table *table = &counts->table;
    struct picard_entry *entries = xmalloc((table->n + 1) * sizeof *entries);
    size_t n = 0;
    for (size_t i = 0; i < table->room; i++) {
        struct picard_entry entry = table->at[i];
        if (entry.n == 0) continue;
        uint32_t cell = picard_key_cell(entry.key), unit = units->of_cell[cell];
        if (unit == gathered->n_units) gathered->n_units++;
        entry.key += (uint64_t)unit << 38;
        entry.key -= (uint64_t)cell << 38;
        entries[n++] = entry;
    }
    qsort(entries, n, sizeof *entries, compare_entries);
    gathered->keys = xmalloc((n + 1) * sizeof *gathered->keys);
    gathered->bins = xmalloc((n + 1) * sizeof *gathered->bins);
    for (size_t i = 0; i < n; i++) {
        size_t last = gathered->n_bins;
        if (last > 0 && gathered->keys[last - 1] == entries[i].key) {
            gathered->bins[last - 1].n += entries[i].n;
            continue;
        }
        gathered->keys[last] = entries[i].key;
        gathered->bins[last] = (struct picard_bin){(int64_t)(uint32_t)entries[i].key, entries[i].n};
        gathered->n_bins++;
    }
    free(entries);
}

static void gather_sums(const struct picard_counts *counts, const struct units *units,
                        struct picard_gathered *gathered)
{
    gathered->sums = xcalloc(units->n + 1, sizeof *gathered->sums);
    for (size_t i = 0; i < counts->n_used; i++) {
        uint32_t index = counts->used[i], unit = units->of_cell[index / PICARD_N_CATEGORIES];
        if (unit == gathered->n_units) gathered->n_units++;     /* the unknown one has records */
        for (int sum = 0; sum < SUM_N_SUMS; sum++)
            gathered->sums[unit][index % PICARD_N_CATEGORIES][sum] += counts->sums[index][sum];
    }
}

void picard_gather(const struct picard_groups *groups, enum picard_level level,
                   const struct picard_counts *counts, struct picard_gathered *gathered)
{
    struct units units = {.of_cell = xcalloc(groups->n + 1, sizeof *units.of_cell),
                          .labels = xcalloc(groups->n + 1, sizeof *units.labels)};
    *gathered = (struct picard_gathered){.labels = units.labels};
    if (level == LEVEL_ALL_READS) {
        units.n = 1;
    } else {
        make_units(groups, level, &units);
        if (units.of_unknown == units.n)
            units.labels[units.n] = (struct picard_labels){
                .sample = unknown,
                .library = level >= LEVEL_LIBRARY ? unknown : NULL,
                .read_group = level >= LEVEL_READ_GROUP ? unknown : NULL};
    }
    gathered->n_units = units.n;
    gather_sums(counts, &units, gathered);
    gathered->n_summed = gathered->n_units;
    gather_bins(counts, &units, gathered);
    free(units.of_cell);
}

void picard_gathered_release(struct picard_gathered *gathered)
{
    free(gathered->labels);
    free(gathered->sums);
    free(gathered->keys);
    free(gathered->bins);
}

static size_t lower_bound(const struct picard_gathered *gathered, uint64_t key)
{
    size_t low = 0, high = gathered->n_bins;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (gathered->keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

struct picard_bins picard_gathered_bins(const struct picard_gathered *gathered, size_t unit,
                                        enum picard_category category,
                                        enum picard_histogram histogram)
{
    uint64_t key = picard_key((uint32_t)unit, category, histogram);
    size_t from = lower_bound(gathered, key), to = lower_bound(gathered, key + (UINT64_C(1) << 32));
    return (struct picard_bins){gathered->bins + from, to - from};
}
