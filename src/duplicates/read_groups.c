/*
 * read_groups.c -- see read_groups.h.
 *
 * IDs, and names of libraries, are found in hash tables with open addressing that are at most half
 * full.
 */
#include "duplicates/read_groups.h"

#include "bam/bam_aux.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdlib.h>
#include <string.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

struct name_table {
    size_t n;
    char **names;               /* of number i + 1 */
    size_t *slots;              /* numbers by the hash of the name; 0: free */
    size_t mask;
};

struct read_groups {
    struct name_table ids, libraries;
    size_t *library_of;         /* of group i + 1 */
};

static void create_table(struct name_table *table, size_t most)
{
    size_t n_slots = 2;
    while (n_slots < 2 * most + 1) n_slots *= 2;
    table->names = xcalloc(most + 1, sizeof *table->names);
    table->slots = xcalloc(n_slots, sizeof *table->slots);
    table->mask = n_slots - 1;
}

static void release_table(struct name_table *table)
{
    for (size_t i = 0; i < table->n; i++) free(table->names[i]);
    free(table->names);
    free(table->slots);
}

/* Returns the slot that has the number of this name, or else the one where it belongs. */
static size_t *find_slot(const struct name_table *table, const char *name, size_t n)
{
    size_t at = XXH3_64bits(name, n) & table->mask;
    for (;; at = (at + 1) & table->mask) {
        size_t number = table->slots[at];
        if (number == 0 || (strncmp(table->names[number - 1], name, n) == 0 &&
                            table->names[number - 1][n] == '\0'))
            return &table->slots[at];
    }
}

/* Returns the number of a name, which is added if it is a new one. */
static size_t number_of(struct name_table *table, const char *name)
{
    size_t *slot = find_slot(table, name, strlen(name));
    if (*slot > 0) return *slot;
    table->names[table->n++] = xstrdup(name);
    return *slot = table->n;
}

static void take_line(struct read_groups *groups, sam_hdr_t *header, const char *id)
{
    kstring_t library = KS_INITIALIZE;
    size_t n_before = groups->ids.n, group = number_of(&groups->ids, id);
    if (group <= n_before) return;
    int r = sam_hdr_find_tag_id(header, "RG", "ID", id, "LB", &library);
    xalloc_require(r > -2);
    if (r == 0) groups->library_of[group - 1] = number_of(&groups->libraries, ks_str(&library));
    ks_free(&library);
}

struct read_groups *read_groups_create(sam_hdr_t *header)
{
    int n_lines = sam_hdr_count_lines(header, "RG");
    size_t n = n_lines > 0 ? (size_t)n_lines : 0;
    struct read_groups *groups = xcalloc(1, sizeof *groups);
    create_table(&groups->ids, n);
    create_table(&groups->libraries, n);
    groups->library_of = xcalloc(n + 1, sizeof *groups->library_of);
    for (size_t i = 0; i < n; i++) {
        const char *id = sam_hdr_line_name(header, "RG", (int)i);
        if (id) take_line(groups, header, id);
    }
    return groups;
}

void read_groups_destroy(struct read_groups *groups)
{
    if (!groups) return;
    release_table(&groups->ids);
    release_table(&groups->libraries);
    free(groups->library_of);
    free(groups);
}

size_t read_groups_count(const struct read_groups *groups)
{
    return groups->ids.n;
}

const char *read_groups_id(const struct read_groups *groups, size_t group)
{
    return groups->ids.names[group - 1];
}

size_t read_groups_count_libraries(const struct read_groups *groups)
{
    return groups->libraries.n;
}

const char *read_groups_library_name(const struct read_groups *groups, size_t library)
{
    return groups->libraries.names[library - 1];
}

size_t read_groups_of(const struct read_groups *groups, const uint8_t *rec)
{
    struct bam_aux aux;
    if (groups->ids.n == 0 || bam_aux_find(rec, "RG", &aux) <= 0 ||
        (aux.type != 'Z' && aux.type != 'H'))
        return 0;
    return *find_slot(&groups->ids, (const char *)aux.value, aux.value_bytes - 1);
}

size_t read_groups_library(const struct read_groups *groups, size_t group)
{
    return group > 0 ? groups->library_of[group - 1] : 0;
}

size_t read_groups_library_of(const struct read_groups *groups, const uint8_t *rec)
{
    return read_groups_library(groups, read_groups_of(groups, rec));
}
