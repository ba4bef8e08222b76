/* group_list.c -- see group_list.h. */
#include "split/group_list.h"

#include "util/xalloc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <htslib/khash.h>
KHASH_MAP_INIT_STR(group, size_t)       /* title or name to number */
#pragma GCC diagnostic pop

struct group {
    struct split_group_counts counts;
    uint32_t last_number;       /* last _N added to this name to make another one */
    char *title, *name;         /* owned; often the same */
    char *begin;                /* owned; NULL: none */
};

struct group_list {
    struct group *groups;
    size_t n, room;
    khash_t(group) *by_title, *by_name;
    char *patterns[2];          /* of the file, and of the index */
};

static ssize_t find(const khash_t(group) *map, const char *key)
{
    khint_t at = kh_get(group, map, key);
    return at == kh_end(map) ? -1 : (ssize_t)kh_val(map, at);
}

/* Adds a group, unless the map has its key. */
static void put(khash_t(group) *map, const char *key, size_t group)
{
    int r;
    khint_t at = kh_put(group, map, key, &r);
    xalloc_require(r >= 0);
    if (r > 0) kh_val(map, at) = group;
}

/* ---- names ---- */

/* DuckDB cannot read files in a directory such as contig=x=1. */
static bool is_safe(const char *name, size_t at)
{
    unsigned char c = (unsigned char)name[at];
    if (at == 0 && (c == '.' || c == '-')) return false;
    return (c < 0x80 && isalnum(c)) || strchr("._-+,@", c) != NULL;
}

static char *make_safe(const char *title)
{
    size_t n = strnlen(title, GROUP_NAME_BYTES);
    char *safe = xmalloc(n + 2);
    for (size_t i = 0; i < n; i++) safe[i] = is_safe(title, i) ? title[i] : '_';
    if (n == 0) safe[n++] = '_';
    safe[n] = '\0';
    return safe;
}

/* Returns a name that no group has; the caller frees it. */
static char *choose_name(struct group_list *list, const char *title)
{
    char *safe = make_safe(title);
    ssize_t taken = find(list->by_name, safe);
    if (taken < 0) return safe;
    uint32_t *number = &list->groups[taken].last_number;
    for (;;) {
        char *name = xasprintf("%s_%u", safe, ++*number);
        if (find(list->by_name, name) < 0) {
            free(safe);
            return name;
        }
        free(name);
    }
}

/* ---- the list ---- */

struct group_list *group_list_create(void)
{
    struct group_list *list = xcalloc(1, sizeof *list);
    list->by_title = kh_init(group);
    list->by_name = kh_init(group);
    xalloc_require(list->by_title && list->by_name);
    return list;
}

void group_list_destroy(struct group_list *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) {
        struct group *group = &list->groups[i];
        if (group->name != group->title) free(group->name);
        free(group->title);
        free(group->begin);
    }
    free(list->groups);
    kh_destroy(group, list->by_title);
    kh_destroy(group, list->by_name);
    for (size_t i = 0; i < 2; i++) free(list->patterns[i]);
    free(list);
}

size_t group_list_add(struct group_list *list, const char *title)
{
    char *name = choose_name(list, title);
    xgrow(&list->groups, &list->room, list->n + 1, list->n / 4 + 16, sizeof *list->groups);
    struct group *group = &list->groups[list->n++];
    *group = (struct group){.last_number = 1, .name = name};
    group->title = strcmp(name, title) == 0 ? name : xstrdup(title);
    put(list->by_title, group->title, list->n - 1);
    put(list->by_name, name, list->n - 1);
    return list->n - 1;
}

size_t group_list_count(const struct group_list *list)
{
    return list->n;
}

const char *group_list_title(const struct group_list *list, size_t group)
{
    return list->groups[group].title;
}

const char *group_list_name(const struct group_list *list, size_t group)
{
    return list->groups[group].name;
}

ssize_t group_list_find(const struct group_list *list, const char *title)
{
    return find(list->by_title, title);
}

struct split_group_counts *group_list_counts(struct group_list *list, size_t group)
{
    return &list->groups[group].counts;
}

void group_list_set_begin(struct group_list *list, size_t group, char *begin)
{
    list->groups[group].begin = begin;
}

const char *group_list_begin(const struct group_list *list, size_t group)
{
    return list->groups[group].begin;
}

/* ---- names of files ---- */

void group_list_set_patterns(struct group_list *list, const char *file, const char *index)
{
    list->patterns[0] = xstrdup(file);
    list->patterns[1] = index ? xstrdup(index) : NULL;
}

/* Replaces each % in the pattern by the name, truncated to room bytes with the NUL. Returns the
   untruncated length. */
static size_t expand(const char *pattern, const char *name, char *out, size_t room)
{
    size_t n = 0, name_bytes = strlen(name);
    for (; *pattern; pattern++) {
        const char *from = *pattern == '%' ? name : pattern;
        size_t n_from = *pattern == '%' ? name_bytes : 1;
        for (size_t i = 0; i < n_from; i++, n++)
            if (n + 1 < room) out[n] = from[i];
    }
    if (room > 0) out[n < room ? n : room - 1] = '\0';
    return n;
}

static char *file_of(const struct group_list *list, size_t group, const char *pattern)
{
    if (!pattern) return NULL;
    const char *name = group_list_name(list, group);
    size_t n = expand(pattern, name, NULL, 0);
    char *file = xmalloc(n + 1);
    (void)expand(pattern, name, file, n + 1);
    return file;
}

char *group_list_file(const struct group_list *list, size_t group)
{
    return file_of(list, group, list->patterns[0]);
}

char *group_list_index(const struct group_list *list, size_t group)
{
    return file_of(list, group, list->patterns[1]);
}

void group_list_put_file(const struct group_list *list, size_t group, bool index, char *out,
                         size_t room)
{
    (void)expand(list->patterns[index], group_list_name(list, group), out, room);
}

/* True if the pattern gives this file for some group. Only one name is possible, because the
   pattern determines its length and position. */
static bool is_made(const struct group_list *list, const char *file, const char *pattern)
{
    size_t n_percents = 0, n_other = 0, n_file = strlen(file);
    for (const char *at = pattern; *at; at++) {
        if (*at == '%') n_percents++;
        else n_other++;
    }
    if (n_percents == 0 || n_file < n_other || (n_file - n_other) % n_percents != 0) return false;
    char *name = xasprintf("%.*s", (int)((n_file - n_other) / n_percents),
                           file + (strchr(pattern, '%') - pattern));
    ssize_t group = find(list->by_name, name);
    free(name);
    if (group < 0) return false;
    char *made = file_of(list, (size_t)group, pattern);
    bool same = strcmp(made, file) == 0;
    free(made);
    return same;
}

char *group_list_clash(const struct group_list *list, size_t group)
{
    for (size_t i = 0; list->patterns[1] && i < 2; i++) {
        char *file = file_of(list, group, list->patterns[i]);
        if (is_made(list, file, list->patterns[!i])) return file;
        free(file);
    }
    return NULL;
}
