/* words.c -- see words.h. */
#include "util/words.h"

#include "util/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\n";

/* Copies the word at *at to out, and moves *at to its end. Returns the end of the copy, or NULL if
   a quote is not closed. */
static char *copy_word(const char **at, char *out)
{
    const char *from = *at;
    while (*from && !strchr(blanks, *from)) {
        if (*from != '"' && *from != '\'') {
            *out++ = *from++;
            continue;
        }
        const char *end = strchr(from + 1, *from);
        if (!end) return NULL;
        size_t n = (size_t)(end - from - 1);
        memcpy(out, from + 1, n);
        out += n;
        from = end + 1;
    }
    *out++ = '\0';
    *at = from;
    return out;
}

/* Allocates the array and the copies of all words at once: the words together are no longer than
   the text, and their number is at most half its length plus one. */
char **words_split(const char *text, size_t *n)
{
    size_t n_bytes = strlen(text) + 1, most = n_bytes / 2 + 2;
    char **words = xmalloc(most * sizeof *words + n_bytes);
    char *out = (char *)(words + most);
    *n = 0;
    while (*(text += strspn(text, blanks))) {
        words[(*n)++] = out;
        out = copy_word(&text, out);
        if (!out) {
            free(words);
            return NULL;
        }
    }
    words[*n] = NULL;
    return words;
}

bool words_list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == '\0' || at[n] == ',')) return true;
    }
    return false;
}

/* True if the word needs no quotes. */
static bool is_plain(const char *word)
{
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        bool plain = c >= 128 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                     (c >= 'a' && c <= 'z') || strchr("/._-+:,@%=", c);
        if (!plain) return false;
    }
    return true;
}

void words_quote(const char *word, char *text, size_t room)
{
    size_t at = strlen(text);
    if (is_plain(word)) {
        (void)snprintf(text + at, room - at, "%s", word);
        return;
    }
    enum { MOST = sizeof "'\\''" };     /* of one character and the end */
    if (at + MOST < room) text[at++] = '\'';
    for (; *word && at + MOST < room; word++) {
        if (*word == '\'') {
            memcpy(text + at, "'\\'", 3);
            at += 3;
        }
        text[at++] = *word;
    }
    text[at++] = '\'';
    text[at] = '\0';
}
