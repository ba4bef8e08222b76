/* count_kinds.c -- see count_kinds.h. */
#include "counts/count_kinds.h"

#include "depth/mosdepth.h"
#include "depth/depth_track.h"
#include "picard/picard_kind.h"
#include "stats/stats_kinds.h"
#include "util/diag.h"
#include "util/option_table.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

#define KIND_ROW(kind, name, takes) &kind##_kind,
const struct count_kind *const count_kinds[COUNT_N_KINDS] = {COUNT_KINDS(KIND_ROW)};

const char *count_kind_option(int kind)
{
#define OPTION_ROW(kind, name, takes) "--" name,
    static const char *const options[COUNT_N_KINDS] = {COUNT_KINDS(OPTION_ROW)};
    return options[kind];
}

const char *count_kind_name(int kind)
{
    return count_kind_option(kind) + 2;
}

/* Appends a word to the text, so that words_split gives it again. Quotes of one kind stand in the
   other one; a word with both becomes several quoted texts without blanks between them. */
static char *add_word(char *text, const char *word)
{
    bool is_plain = *word && !word[strcspn(word, " \t\n'\"")];
    char *longer = xasprintf("%s%s%s", text, *text ? " " : "", is_plain ? word : "");
    free(text);
    if (is_plain) return longer;
    do {
        const char *quote = *word == '"' || !strchr(word, '\'') ? "'" : "\"";
        size_t n = strcspn(word, quote);
        text = longer;
        longer = xasprintf("%s%s%.*s%s", text, quote, (int)n, word, quote);
        free(text);
        word += n;
    } while (*word);
    return longer;
}

char *count_request_text(const char *words, const char *name)
{
    return *words ? add_word(xstrdup(words), name) : xstrdup(name);
}

/* The options as one text. */
static char *join_words(const struct count_kind *kind, const void *options, char **words, size_t n)
{
    const struct option_list *list =
        kind->list ? (const struct option_list *)((const char *)options + kind->list) : NULL;
    char *text = xstrdup("");
    if (list) n = list->n;
    for (size_t i = 0; i < n; i++) text = add_word(text, list ? list->words[i] : words[i]);
    return text;
}

/* Parses n words before the name. */
static int parse_options(int kind, char **words, size_t n, struct count_request *request)
{
    const struct count_kind *is = count_kinds[kind];
    char **argv = xcalloc(n + 2, sizeof *argv);
    argv[0] = (char *)(uintptr_t)count_kind_option(kind);
    if (n > 0) memcpy(argv + 1, words, n * sizeof *argv);
    request->options = is->parse((int)n + 1, argv);
    free(argv);
    if (!request->options) return -1;
    request->words = join_words(is, request->options, words, n);
    return 0;
}

/* True if the text begins with an option, or, where these are options, with a word NAME=VALUE. */
static bool begins_with_option(const struct count_kind *kind, const char *text)
{
    if (!kind->parse) return false;
    if (text[0] == '-') return text[1] != '\0';
    size_t n_name = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return kind->takes_settings && n_name > 0 && text[n_name] == '=' && strchr(text, ' ');
}

int count_request_parse(int kind, const char *text, struct count_request *request)
{
    const bool takes_options = count_kinds[kind]->parse != NULL;
    const char *option = count_kind_option(kind);
    const char *name = text;
    size_t n = 0;
    *request = (struct count_request){0};
    if (begins_with_option(count_kinds[kind], text)) {
        request->memory = words_split(text, &n);
        if (!request->memory) {
            diag_error("%s: a quote in '%s' has no end", option, text);
            return -1;
        }
        name = request->memory[--n];
        if (name[0] == '-' && name[1]) {
            diag_error("%s takes the name of a file after its options, not '%s'", option, name);
            count_request_release(kind, request);
            return -1;
        }
    }
    if (takes_options && parse_options(kind, request->memory, n, request) < 0) {
        count_request_release(kind, request);
        return -1;
    }
    if (!takes_options) request->words = xstrdup("");
    request->name = xstrdup(name);
    return 0;
}

void count_request_release(int kind, struct count_request *request)
{
    const struct count_kind *is = count_kinds[kind];
    if (request->options && is->free_options) is->free_options(request->options);
    free(request->name);
    free(request->words);
    free(request->memory);
    *request = (struct count_request){0};
}
