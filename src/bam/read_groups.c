/* read_groups.c -- see read_groups.h. */
#include "bam/read_groups.h"

#include "bam/bam_aux.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdlib.h>

static void release_table(struct name_table *table)
{
    for (size_t i = 0; i < table->n; i++) free(table->names[i]);
    free(table->names);
    text_map_release(&table->numbers);
}

/* Returns 0 if the table does not have the name. */
static size_t find_number(const struct name_table *table, const char *name)
{
    const size_t *number = text_map_find(&table->numbers, text_of(name));
    return number ? *number : 0;
}

/* Returns the number of a name, which is added if it is new. */
static size_t number_of(struct name_table *table, const char *name)
{
    size_t number = find_number(table, name);
    if (number > 0) return number;
    char *own = table->names[table->n++] = xstrdup(name);
    return text_map_put(&table->numbers, text_of(own), table->n);
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
    groups->ids.names = xcalloc(n + 1, sizeof *groups->ids.names);
    groups->libraries.names = xcalloc(n + 1, sizeof *groups->libraries.names);
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

size_t read_groups_number(const struct read_groups *groups, const char *id)
{
    return find_number(&groups->ids, id);
}

size_t read_groups_of(const struct read_groups *groups, const uint8_t *rec)
{
    struct bam_aux aux;
    if (groups->ids.n == 0 || bam_aux_find(rec, "RG", &aux) <= 0 || !bam_aux_is_text(&aux))
        return 0;
    return read_groups_number(groups, (const char *)aux.value);
}

size_t read_groups_library(const struct read_groups *groups, size_t group)
{
    return group > 0 ? groups->library_of[group - 1] : 0;
}
