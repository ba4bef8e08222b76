/* index_names.c -- see index_names.h. */
#include "output/index_names.h"

#include "util/path.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_NAMES = 4 };

char **index_names_of(const char *file, bool is_cram)
{
    static const char *const of_cram[] = {".crai", NULL};
    static const char *const of_others[] = {".csi", ".bai", NULL};
    char **names = xcalloc(MOST_NAMES + 1, sizeof *names);
    const char *point = strrchr(path_name(file), '.');
    size_t n = 0;
    for (const char *const *ending = is_cram ? of_cram : of_others; *ending; ending++) {
        names[n++] = xasprintf("%s%s", file, *ending);
        if (point) names[n++] = xasprintf("%.*s%s", (int)(point - file), file, *ending);
    }
    return names;
}

void index_names_free(char **names)
{
    for (char **name = names; *name; name++) free(*name);
    free(names);
}

static bool is_file(const char *name)
{
    struct stat st;
    return lstat(name, &st) == 0 && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

/* True if `index` is `file` with .csi in place of its extension, and may belong to a BCF file. */
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

void index_names_find_stale(const struct output_path *output, const char *index,
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
