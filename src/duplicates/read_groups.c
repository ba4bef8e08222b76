/*
 * read_groups.c -- see read_groups.h.
 *
 * IDs are found in a hash table with open addressing that is at most half full.
 */
#include "duplicates/read_groups.h"

#include "bam/bam_aux.h"
#include "bam/content_sum.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdlib.h>
#include <string.h>

struct read_groups {
    size_t n, n_libraries;
    char **ids;                 /* of group i + 1 */
    size_t *library_of;         /* likewise */
    char **libraries;           /* of library i + 1 */
    size_t *slots;              /* groups by the hash of the ID; 0: free */
    size_t mask;
};

/* Returns the slot that has the group with this ID, or else the one where it belongs. */
static size_t *find_slot(const struct read_groups *groups, const char *id, size_t n)
{
    size_t at = XXH3_64bits(id, n) & groups->mask;
    for (;; at = (at + 1) & groups->mask) {
        size_t group = groups->slots[at];
        if (group == 0 || (strncmp(groups->ids[group - 1], id, n) == 0 &&
                           groups->ids[group - 1][n] == '\0'))
            return &groups->slots[at];
    }
}

/* Headers have few libraries. */
static size_t number_library(struct read_groups *groups, const char *name)
{
    for (size_t i = 0; i < groups->n_libraries; i++)
        if (strcmp(groups->libraries[i], name) == 0) return i + 1;
    groups->libraries[groups->n_libraries] = xstrdup(name);
    return ++groups->n_libraries;
}

static void take_line(struct read_groups *groups, sam_hdr_t *header, const char *id)
{
    kstring_t library = KS_INITIALIZE;
    size_t *slot = find_slot(groups, id, strlen(id));
    if (*slot > 0) return;
    size_t at = groups->n++;
    groups->ids[at] = xstrdup(id);
    int r = sam_hdr_find_tag_id(header, "RG", "ID", id, "LB", &library);
    xalloc_require(r > -2);
    groups->library_of[at] = r == 0 ? number_library(groups, ks_str(&library)) : 0;
    *slot = groups->n;
    ks_free(&library);
}

struct read_groups *read_groups_create(sam_hdr_t *header)
{
    int n_lines = sam_hdr_count_lines(header, "RG");
    size_t n = n_lines > 0 ? (size_t)n_lines : 0, n_slots = 2;
    while (n_slots < 2 * n + 1) n_slots *= 2;
    struct read_groups *groups = xcalloc(1, sizeof *groups);
    groups->ids = xcalloc(n + 1, sizeof *groups->ids);
    groups->library_of = xcalloc(n + 1, sizeof *groups->library_of);
    groups->libraries = xcalloc(n + 1, sizeof *groups->libraries);
    groups->slots = xcalloc(n_slots, sizeof *groups->slots);
    groups->mask = n_slots - 1;
    for (size_t i = 0; i < n; i++) {
        const char *id = sam_hdr_line_name(header, "RG", (int)i);
        if (id) take_line(groups, header, id);
    }
    return groups;
}

void read_groups_destroy(struct read_groups *groups)
{
    if (!groups) return;
    for (size_t i = 0; i < groups->n; i++) free(groups->ids[i]);
    for (size_t i = 0; i < groups->n_libraries; i++) free(groups->libraries[i]);
    free(groups->ids);
    free(groups->library_of);
    free(groups->libraries);
    free(groups->slots);
    free(groups);
}

size_t read_groups_count(const struct read_groups *groups)
{
    return groups->n;
}

const char *read_groups_id(const struct read_groups *groups, size_t group)
{
    return groups->ids[group - 1];
}

size_t read_groups_count_libraries(const struct read_groups *groups)
{
    return groups->n_libraries;
}

const char *read_groups_library_name(const struct read_groups *groups, size_t library)
{
    return groups->libraries[library - 1];
}

size_t read_groups_of(const struct read_groups *groups, const uint8_t *rec)
{
    struct bam_aux aux;
    if (groups->n == 0 || bam_aux_find(rec, "RG", &aux) <= 0 ||
        (aux.type != 'Z' && aux.type != 'H'))
        return 0;
    return *find_slot(groups, (const char *)aux.value, aux.value_bytes - 1);
}

size_t read_groups_library(const struct read_groups *groups, size_t group)
{
    return group > 0 ? groups->library_of[group - 1] : 0;
}

size_t read_groups_library_of(const struct read_groups *groups, const uint8_t *rec)
{
    return read_groups_library(groups, read_groups_of(groups, rec));
}
