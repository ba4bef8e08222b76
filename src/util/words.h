/*
 * words.h -- splits the text of an option into words, as a shell would; quotes a word for a shell;
 * finds a word in a list that commas separate.
 */
#ifndef ROCKSORT_UTIL_WORDS_H
#define ROCKSORT_UTIL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Splits `text` at blanks. Quotes, single or double, keep blanks in a word; there are no escapes.
 * Returns an array of *n words, which ends with NULL, or NULL if a quote has no end. The caller
 * frees it with words_free.
 */
char **words_split(const char *text, size_t *n);

/* NULL is accepted. */
void words_free(char **words);

/* True if a list that commas separate has the word. */
bool words_list_has(const char *list, const char *word);

/* Appends a word to the text in a buffer, as a shell must read it. Allocates nothing. */
void words_quote(const char *word, char *text, size_t room);

#endif
