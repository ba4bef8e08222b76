/* stale_index.c -- see stale_index.h. */
#include "output/stale_index.h"

#include "output/index_names.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *name)
{
    struct stat st;
    return lstat(name, &st) == 0 && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

/* True if `index` has the place of the ending of `file`, and a BCF file could have that index. */
static bool may_be_of_bcf(const char *index, const char *file)
{
    size_t n = strlen(index), n_stem = n - strlen(".csi");
    if (strcmp(index + n_stem, ".csi") != 0 || strncmp(index, file, n_stem + 1) != 0) return false;
    char *bcf = xasprintf("%.*s.bcf", (int)n_stem, index);
    bool is_there = is_file(bcf);
    free(bcf);
    return is_there;
}

static void look_beside(const char *file, const char *index, const struct output_format *format,
                        void (*found)(void *arg, const char *name), void *arg)
{
    char **names = index_names_of(file, format->kind == OUTPUT_CRAM);
    for (char **name = names; *name; name++)
        if (is_file(*name) && !(index && strcmp(*name, index) == 0) && !may_be_of_bcf(*name, file))
            found(arg, *name);
    index_names_free(names);
}

void stale_index_find(const struct output_path *output, const char *index,
                      const struct output_format *format,
                      void (*found)(void *arg, const char *name), void *arg)
{
    struct stat st;
    if (index && is_file(index)) found(arg, index);
    if (!output->final || (!output_format_is_bgzf(format) && format->kind != OUTPUT_CRAM)) return;
    look_beside(output->final, index, format, found, arg);
    if (output->name && lstat(output->name, &st) == 0 && S_ISLNK(st.st_mode))
        look_beside(output->name, index, format, found, arg);
}
