/*
 * piece_list.c -- see piece_list.h.
 *
 * All texts stand in one array, one after the other. Two hash tables with linear probing, of the
 * numbers of pieces, find pieces by their titles and by their names.
 */
#include "split/piece_list.h"

#include "util/text_pool.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_ROOM = 16 };

struct piece {
    struct piece_counts counts;
    uint32_t last_number;       /* that was put after this name to make another one */
    size_t title, name;         /* where they stand in the texts */
    size_t begin;               /* likewise, from 1; 0: none */
};

/* The size is a power of two; at most two thirds of the slots are in use. */
struct piece_set {
    uint32_t *slots;            /* 0: free; else the number of a piece, from 1 */
    size_t n, room;
    size_t field;               /* of struct piece, where the key stands */
};

struct piece_list {
    struct piece *pieces;
    size_t n, room;
    struct text_pool texts;
    struct piece_set by_title, by_name;
    char *patterns[2];          /* of the file, and of the index */
};

/* ---- texts and sets ---- */

static const char *key_of(const struct piece_list *list, const struct piece_set *set, size_t piece)
{
    size_t at;
    memcpy(&at, (const char *)&list->pieces[piece] + set->field, sizeof at);
    return list->texts.bytes + at;
}

/* The slot of the key, or the free slot that it would get. At least one slot must be free. */
static uint32_t *find_slot(const struct piece_list *list, const struct piece_set *set,
                           const char *key, size_t n)
{
    size_t k = (size_t)XXH3_64bits(key, n) & (set->room - 1);
    for (; set->slots[k]; k = (k + 1) & (set->room - 1)) {
        const char *other = key_of(list, set, set->slots[k] - 1);
        if (strncmp(other, key, n) == 0 && !other[n]) break;
    }
    return &set->slots[k];
}

static ssize_t find(const struct piece_list *list, const struct piece_set *set, const char *key,
                    size_t n)
{
    return set->n > 0 ? (ssize_t)*find_slot(list, set, key, n) - 1 : -1;
}

/* Adds a piece, unless one with its key is there. */
static void put(const struct piece_list *list, struct piece_set *set, size_t piece)
{
    const char *key = key_of(list, set, piece);
    uint32_t *slot = find_slot(list, set, key, strlen(key));
    if (*slot) return;
    *slot = (uint32_t)piece + 1;
    set->n++;
}

/* Adds the last piece. */
static void put_last(const struct piece_list *list, struct piece_set *set)
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

/* DuckDB reads no set with a directory such as contig=x=1. */
static bool is_safe(const char *name, size_t at)
{
    unsigned char c = (unsigned char)name[at];
    if (at == 0 && (c == '.' || c == '-')) return false;
    return (c < 0x80 && isalnum(c)) || strchr("._-+,@", c) != NULL;
}

static char *make_safe(const char *title)
{
    size_t n = strnlen(title, PIECE_NAME_BYTES);
    char *safe = xmalloc(n + 2);
    for (size_t i = 0; i < n; i++) safe[i] = is_safe(title, i) ? title[i] : '_';
    if (n == 0) safe[n++] = '_';
    safe[n] = '\0';
    return safe;
}

/* Returns a name that no piece has; the caller frees it. */
static char *choose_name(struct piece_list *list, const char *title)
{
    char *safe = make_safe(title);
    ssize_t taken = find(list, &list->by_name, safe, strlen(safe));
    if (taken < 0) return safe;
    uint32_t *number = &list->pieces[taken].last_number;
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

struct piece_list *piece_list_create(void)
{
    struct piece_list *list = xcalloc(1, sizeof *list);
    list->by_title.field = offsetof(struct piece, title);
    list->by_name.field = offsetof(struct piece, name);
    return list;
}

void piece_list_destroy(struct piece_list *list)
{
    if (!list) return;
    free(list->pieces);
    free(list->texts.bytes);
    free(list->by_title.slots);
    free(list->by_name.slots);
    for (size_t i = 0; i < 2; i++) free(list->patterns[i]);
    free(list);
}

size_t piece_list_add(struct piece_list *list, const char *title)
{
    char *name = choose_name(list, title);
    xgrow(&list->pieces, &list->room, list->n + 1, list->n / 4 + 16, sizeof *list->pieces);
    struct piece *piece = &list->pieces[list->n++];
    *piece = (struct piece){.last_number = 1, .title = text_pool_put(&list->texts, title)};
    piece->name = strcmp(name, title) == 0 ? piece->title : text_pool_put(&list->texts, name);
    free(name);
    put_last(list, &list->by_title);
    put_last(list, &list->by_name);
    return list->n - 1;
}

size_t piece_list_count(const struct piece_list *list)
{
    return list->n;
}

const char *piece_list_title(const struct piece_list *list, size_t piece)
{
    return list->texts.bytes + list->pieces[piece].title;
}

const char *piece_list_name(const struct piece_list *list, size_t piece)
{
    return list->texts.bytes + list->pieces[piece].name;
}

ssize_t piece_list_find(const struct piece_list *list, const char *title)
{
    return find(list, &list->by_title, title, strlen(title));
}

struct piece_counts *piece_list_counts(struct piece_list *list, size_t piece)
{
    return &list->pieces[piece].counts;
}

void piece_list_set_begin(struct piece_list *list, size_t piece, const char *begin)
{
    if (begin) list->pieces[piece].begin = text_pool_put(&list->texts, begin) + 1;
}

const char *piece_list_begin(const struct piece_list *list, size_t piece)
{
    size_t begin = list->pieces[piece].begin;
    return begin ? list->texts.bytes + begin - 1 : NULL;
}

/* ---- names of files ---- */

void piece_list_set_patterns(struct piece_list *list, const char *file, const char *index)
{
    list->patterns[0] = xstrdup(file);
    list->patterns[1] = index ? xstrdup(index) : NULL;
}

/* Puts the name in the place of each % in the pattern. Returns the bytes that this needs, without
   the NUL; cut after room bytes, with the NUL. */
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

static char *file_of(const struct piece_list *list, size_t piece, const char *pattern)
{
    if (!pattern) return NULL;
    const char *name = piece_list_name(list, piece);
    size_t n = expand(pattern, name, NULL, 0);
    char *file = xmalloc(n + 1);
    (void)expand(pattern, name, file, n + 1);
    return file;
}

char *piece_list_file(const struct piece_list *list, size_t piece)
{
    return file_of(list, piece, list->patterns[0]);
}

char *piece_list_index(const struct piece_list *list, size_t piece)
{
    return file_of(list, piece, list->patterns[1]);
}

void piece_list_put_file(const struct piece_list *list, size_t piece, bool index, char *out,
                         size_t room)
{
    (void)expand(list->patterns[index], piece_list_name(list, piece), out, room);
}

/* True if the pattern makes this file of the name of some piece. There is one name at most, because
   the pattern says how long it is and where it stands. */
static bool is_made(const struct piece_list *list, const char *file, const char *pattern)
{
    size_t n_percents = 0, n_other = 0, n_file = strlen(file);
    for (const char *at = pattern; *at; at++) {
        if (*at == '%') n_percents++;
        else n_other++;
    }
    if (n_percents == 0 || n_file < n_other || (n_file - n_other) % n_percents != 0) return false;
    size_t n_name = (n_file - n_other) / n_percents;
    ssize_t piece = find(list, &list->by_name, file + (strchr(pattern, '%') - pattern), n_name);
    if (piece < 0) return false;
    char *made = file_of(list, (size_t)piece, pattern);
    bool same = strcmp(made, file) == 0;
    free(made);
    return same;
}

char *piece_list_clash(const struct piece_list *list, size_t piece)
{
    for (size_t i = 0; list->patterns[1] && i < 2; i++) {
        char *file = file_of(list, piece, list->patterns[i]);
        if (is_made(list, file, list->patterns[!i])) return file;
        free(file);
    }
    return NULL;
}
