/* piece_names.c -- see piece_names.h. */
#include "split/piece_names.h"

#include "bam/header_text.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <htslib/kstring.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct piece_names {
    struct text_map taken;      /* owns its keys; the value: the last number that was added */
};

struct piece_names *piece_names_create(void)
{
    return xcalloc(1, sizeof(struct piece_names));
}

void piece_names_destroy(struct piece_names *names)
{
    if (!names) return;
    for (size_t i = 0; i < names->taken.room; i++)
        free((void *)(uintptr_t)names->taken.entries[i].key.at);
    text_map_release(&names->taken);
    free(names);
}

static bool is_safe(const char *name, size_t at)
{
    unsigned char c = (unsigned char)name[at];
    if (at == 0 && (c == '.' || c == '-')) return false;
    return (c < 0x80 && isalnum(c)) || strchr("._-+=,@", c) != NULL;
}

static char *make_safe(const char *name)
{
    size_t n = strnlen(name, PIECE_NAME_BYTES);
    char *safe = xmalloc(n + 2);
    for (size_t i = 0; i < n; i++) safe[i] = is_safe(name, i) ? name[i] : '_';
    if (n == 0) safe[n++] = '_';
    safe[n] = '\0';
    return safe;
}

/* Adds a name to those that are taken. Returns false if it was there. */
static bool add(struct piece_names *names, const char *name)
{
    if (text_map_find(&names->taken, text_of(name))) return false;
    (void)text_map_put(&names->taken, text_of(xstrdup(name)), 1);
    return true;
}

char *piece_names_take(struct piece_names *names, const char *name)
{
    char *safe = make_safe(name);
    if (add(names, safe)) return safe;
    for (size_t number = *text_map_find(&names->taken, text_of(safe)) + 1;; number++) {
        char *next = xasprintf("%s_%zu", safe, number);
        if (add(names, next)) {
            *text_map_find(&names->taken, text_of(safe)) = number;
            free(safe);
            return next;
        }
        free(next);
    }
}

char *piece_names_expand(const char *pattern, const char *piece)
{
    kstring_t text = {0, 0, NULL};
    bool had_memory = kputs("", &text) >= 0;
    for (; *pattern && had_memory; pattern++)
        had_memory = (*pattern == '%' ? kputs(piece, &text) : kputc(*pattern, &text)) >= 0;
    xalloc_require(had_memory);
    return ks_release(&text);
}
