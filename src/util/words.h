/*
 * words.h -- splits the text of an option into words like a shell, quotes a word for a shell, and
 * finds a word in a comma-separated list.
 */
#ifndef ROCKSORT_UTIL_WORDS_H
#define ROCKSORT_UTIL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Splits `text` at blanks. Single or double quotes keep blanks in a word; there are no escapes.
 * Returns an array of *n words that ends with NULL, or NULL if a quote is not closed. The caller
 * frees it.
 */
char **words_split(const char *text, size_t *n);

/* True if a comma-separated list contains the word. */
bool words_list_has(const char *list, const char *word);

/* Appends a word to the text in a buffer, quoted for a shell. Allocates nothing. */
void words_quote(const char *word, char *text, size_t room);

#endif
