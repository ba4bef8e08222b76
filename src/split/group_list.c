/* group_list.c -- see group_list.h. */
#include "split/group_list.h"

#include "util/xalloc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static ssize_t find(const struct text_map *numbers, const char *key)
{
    const size_t *number = text_map_find(numbers, text_of(key));
    return number ? (ssize_t)*number : -1;
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
    ssize_t taken = find(&list->by_name, safe);
    if (taken < 0) return safe;
    uint32_t *number = &list->all[taken].last_number;
    for (;;) {
        char *name = xasprintf("%s_%u", safe, ++*number);
        if (find(&list->by_name, name) < 0) {
            free(safe);
            return name;
        }
        free(name);
    }
}

/* ---- the list ---- */

struct group_list *group_list_create(void)
{
    return xcalloc(1, sizeof(struct group_list));
}

void group_list_destroy(struct group_list *list)
{
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) {
        struct split_group *group = &list->all[i];
        if (group->name != group->title) free(group->name);
        free(group->title);
        free(group->begin);
    }
    free(list->all);
    text_map_release(&list->by_title);
    text_map_release(&list->by_name);
    for (size_t i = 0; i < 2; i++) free(list->patterns[i]);
    free(list);
}

size_t group_list_add(struct group_list *list, const char *title)
{
    char *name = choose_name(list, title), *own = xstrdup(title);
    if (strcmp(name, title) == 0) {
        free(name);
        name = own;
    }
    xgrow(&list->all, &list->room, list->n + 1, list->n / 4 + 16, sizeof *list->all);
    list->all[list->n] = (struct split_group){.title = own, .name = name, .last_number = 1};
    (void)text_map_put(&list->by_title, text_of(own), list->n);
    (void)text_map_put(&list->by_name, text_of(name), list->n);
    return list->n++;
}

ssize_t group_list_find(const struct group_list *list, const char *title)
{
    return find(&list->by_title, title);
}

/* ---- names of files ---- */

void group_list_set_patterns(struct group_list *list, const char *file, const char *index)
{
    list->patterns[0] = xstrdup(file);
    list->patterns[1] = index ? xstrdup(index) : NULL;
}

/* Replaces each % in the pattern with the name, truncated to room bytes with the NUL. Returns the
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
    const char *name = list->all[group].name;
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
    (void)expand(list->patterns[index], list->all[group].name, out, room);
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
    size_t n_name = (n_file - n_other) / n_percents;
    char *name = xmemdup(file + (strchr(pattern, '%') - pattern), n_name + 1);
    name[n_name] = '\0';
    ssize_t group = find(&list->by_name, name);
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
