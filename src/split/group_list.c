/*
 * group_list.c -- see group_list.h.
 *
 * All texts are in one array. Two hash tables of group numbers, with linear probing, find groups by
 * title and by name.
 */
#include "split/group_list.h"

#include "util/xalloc.h"

#include <ctype.h>
#include <htslib/kstring.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_ROOM = 16 };

struct group {
    struct split_group_counts counts;
    uint32_t last_number;       /* last _N added to this name to make another one */
    size_t title, name;         /* offsets in `texts` */
    size_t begin;               /* offset in `texts` plus 1; 0: none */
};

/* The size is a power of two; at most two thirds of the slots are in use. */
struct group_set {
    uint32_t *slots;            /* 0: free; else the number of a group, from 1 */
    size_t n, room;
    size_t field;               /* offset in struct group of the key's offset */
};

struct group_list {
    struct group *groups;
    size_t n, room;
    kstring_t texts;
    struct group_set by_title, by_name;
    char *patterns[2];          /* of the file, and of the index */
};

/* ---- texts and sets ---- */

/* Adds a text. Returns its offset. */
static size_t add_text(struct group_list *list, const char *text)
{
    size_t at = list->texts.l;
    xalloc_require(kputsn(text, strlen(text) + 1, &list->texts) >= 0);
    return at;
}

static const char *key_of(const struct group_list *list, const struct group_set *set, size_t group)
{
    size_t at;
    memcpy(&at, (const char *)&list->groups[group] + set->field, sizeof at);
    return list->texts.s + at;
}

/* The slot of the key, or the free slot for it. At least one slot must be free. */
static uint32_t *find_slot(const struct group_list *list, const struct group_set *set,
                           const char *key, size_t n)
{
    size_t k = (size_t)XXH3_64bits(key, n) & (set->room - 1);
    for (; set->slots[k]; k = (k + 1) & (set->room - 1)) {
        const char *other = key_of(list, set, set->slots[k] - 1);
        if (strncmp(other, key, n) == 0 && !other[n]) break;
    }
    return &set->slots[k];
}

static ssize_t find(const struct group_list *list, const struct group_set *set, const char *key,
                    size_t n)
{
    return set->n > 0 ? (ssize_t)*find_slot(list, set, key, n) - 1 : -1;
}

/* Adds a group, unless the set has its key. */
static void put(const struct group_list *list, struct group_set *set, size_t group)
{
    const char *key = key_of(list, set, group);
    uint32_t *slot = find_slot(list, set, key, strlen(key));
    if (*slot) return;
    *slot = (uint32_t)group + 1;
    set->n++;
}

/* Adds the last group. */
static void put_last(const struct group_list *list, struct group_set *set)
{
    if (set->n + 1 <= set->room / 3 * 2) {
        put(list, set, list->n - 1);
        return;
    }
    free(set->slots);
    set->room = set->room ? 2 * set->room : FIRST_ROOM;
    set->slots = xcalloc(set->room, sizeof *set->slots);
    set->n = 0;
    for (size_t i = 0; i < list->n; i++) put(list, set, i);
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
    ssize_t taken = find(list, &list->by_name, safe, strlen(safe));
    if (taken < 0) return safe;
    uint32_t *number = &list->groups[taken].last_number;
    for (;;) {
        char *name = xasprintf("%s_%u", safe, ++*number);
        if (find(list, &list->by_name, name, strlen(name)) < 0) {
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
    list->by_title.field = offsetof(struct group, title);
    list->by_name.field = offsetof(struct group, name);
    return list;
}

void group_list_destroy(struct group_list *list)
{
    if (!list) return;
    free(list->groups);
    free(list->texts.s);
    free(list->by_title.slots);
    free(list->by_name.slots);
    for (size_t i = 0; i < 2; i++) free(list->patterns[i]);
    free(list);
}

size_t group_list_add(struct group_list *list, const char *title)
{
    char *name = choose_name(list, title);
    xgrow(&list->groups, &list->room, list->n + 1, list->n / 4 + 16, sizeof *list->groups);
    struct group *group = &list->groups[list->n++];
    *group = (struct group){.last_number = 1, .title = add_text(list, title)};
    group->name = strcmp(name, title) == 0 ? group->title : add_text(list, name);
    free(name);
    put_last(list, &list->by_title);
    put_last(list, &list->by_name);
    return list->n - 1;
}

size_t group_list_count(const struct group_list *list)
{
    return list->n;
}

const char *group_list_title(const struct group_list *list, size_t group)
{
    return list->texts.s + list->groups[group].title;
}

const char *group_list_name(const struct group_list *list, size_t group)
{
    return list->texts.s + list->groups[group].name;
}

ssize_t group_list_find(const struct group_list *list, const char *title)
{
    return find(list, &list->by_title, title, strlen(title));
}

struct split_group_counts *group_list_counts(struct group_list *list, size_t group)
{
    return &list->groups[group].counts;
}

void group_list_set_begin(struct group_list *list, size_t group, const char *begin)
{
    if (begin) list->groups[group].begin = add_text(list, begin) + 1;
}

const char *group_list_begin(const struct group_list *list, size_t group)
{
    size_t begin = list->groups[group].begin;
    return begin ? list->texts.s + begin - 1 : NULL;
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
    size_t n_name = (n_file - n_other) / n_percents;
    ssize_t group = find(list, &list->by_name, file + (strchr(pattern, '%') - pattern), n_name);
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
