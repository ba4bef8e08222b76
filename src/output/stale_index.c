/* stale_index.c -- see stale_index.h. */
#include "output/stale_index.h"

#include "output/index_names.h"
#include "util/diag.h"

#include <sys/stat.h>

/* Warns of one file, unless it is not there or was written just now. */
static void look_at(const char *name, const struct output_path *output,
                    const struct output_path *index)
{
    struct stat st, written;
    if (stat(name, &st) < 0 || !S_ISREG(st.st_mode)) return;
    bool is_new = index->name && stat(index->name, &written) == 0 &&
                  written.st_dev == st.st_dev && written.st_ino == st.st_ino;
    if (!is_new)
        diag_warning("the index '%s' is older than '%s': remove it, or make it anew", name,
                     output->name);
}

void stale_index_tell(const struct output_path *output, const struct output_path *index,
                      const struct output_format *format)
{
    struct stat st;
    if (!output->name || stat(output->name, &st) < 0 || !S_ISREG(st.st_mode) ||
        format->kind == OUTPUT_SAM)
        return;
    char **names = index_names_of(output->name, format->kind == OUTPUT_CRAM);
    for (char **name = names; *name; name++) look_at(*name, output, index);
    index_names_free(names);
}
