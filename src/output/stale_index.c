/* stale_index.c -- see stale_index.h. */
#include "output/stale_index.h"

#include "output/bam_writer.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
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
                      const htsFormat *format)
{
    /* htslib looks for an index at the name with one of these endings added, and with its own
       ending replaced by one. */
    static const char *const of_cram[] = {".crai", NULL};
    static const char *const of_others[] = {".csi", ".bai", NULL};
    struct stat st;
    if (!output->name || stat(output->name, &st) < 0 || !S_ISREG(st.st_mode) ||
        bam_writer_is_text(format))
        return;
    const char *point = strrchr(path_name(output->name), '.');
    size_t n_stem = point ? (size_t)(point - output->name) : 0;
    for (const char *const *end = format->format == cram ? of_cram : of_others; *end; end++) {
        char *added = xasprintf("%s%s", output->name, *end);
        look_at(added, output, index);
        free(added);
        if (!point) continue;
        char *replaced = xasprintf("%.*s%s", (int)n_stem, output->name, *end);
        look_at(replaced, output, index);
        free(replaced);
    }
}
