/*
 * name_pattern.h -- a regular expression that several threads match with read names at one time.
 *
 * regexec of the GNU C library takes a lock for as long as it matches, which is 2 to 3 us for each
 * name: all workers together would match no more names than one. So each thread gets a copy of the
 * compiled expression. Copies are compiled when they are first needed.
 *
 * Order of calls: compile; match, by any thread; destroy, when no other thread matches.
 */
#ifndef ROCKSORT_DUPLICATES_NAME_PATTERN_H
#define ROCKSORT_DUPLICATES_NAME_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    NAME_PATTERN_GROUPS = 3,    /* that can be asked for */
    NAME_PATTERN_WHY_BYTES = 256,
};

struct name_pattern;

/* Compiles an extended regular expression. Returns NULL if it is wrong, and says so in `why`. The
   text is copied. */
struct name_pattern *name_pattern_compile(const char *text, char why[NAME_PATTERN_WHY_BYTES]);

/* NULL is accepted. */
void name_pattern_destroy(struct name_pattern *pattern);

/* The number of groups in parentheses. */
size_t name_pattern_n_groups(const struct name_pattern *pattern);

/* Looks for the pattern in `name`. If it is there, found[i] says where group i is, as regexec does;
   found[0] is the whole match. */
bool name_pattern_match(struct name_pattern *pattern, const char *name,
                        regmatch_t found[NAME_PATTERN_GROUPS + 1]);

#endif
