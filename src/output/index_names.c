/* index_names.c -- see index_names.h. */
#include "output/index_names.h"

#include "util/path.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

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
