/* name_pattern.c -- see name_pattern.h. */
#include "duplicates/name_pattern.h"

#include "util/xalloc.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* More threads than that share copies. */
enum { COPIES = 128, COPY_ALIGN = 64 };

struct copy {
    _Alignas(COPY_ALIGN) atomic_flag busy;      /* who sets it owns what follows */
    bool is_compiled;
    regex_t regex;
};

struct name_pattern {
    char *text;
    size_t n_groups;
    struct copy *copies;
};

static int compile(const char *text, regex_t *regex)
{
    int error = regcomp(regex, text, REG_EXTENDED);
    xalloc_require(error != REG_ESPACE);
    return error;
}

struct name_pattern *name_pattern_compile(const char *text, char why[NAME_PATTERN_WHY_BYTES])
{
    regex_t regex;
    int error = compile(text, &regex);
    if (error) {
        (void)regerror(error, &regex, why, NAME_PATTERN_WHY_BYTES);
        return NULL;
    }
    struct name_pattern *pattern = xmalloc(sizeof *pattern);
    *pattern = (struct name_pattern){.text = xstrdup(text), .n_groups = regex.re_nsub};
    pattern->copies = aligned_alloc(COPY_ALIGN, COPIES * sizeof *pattern->copies);
    xalloc_require(pattern->copies != NULL);
    for (size_t i = 0; i < COPIES; i++) {
        atomic_flag_clear(&pattern->copies[i].busy);
        pattern->copies[i].is_compiled = false;
    }
    regfree(&regex);
    return pattern;
}

void name_pattern_destroy(struct name_pattern *pattern)
{
    if (!pattern) return;
    for (size_t i = 0; i < COPIES; i++)
        if (pattern->copies[i].is_compiled) regfree(&pattern->copies[i].regex);
    free(pattern->copies);
    free(pattern->text);
    free(pattern);
}

size_t name_pattern_n_groups(const struct name_pattern *pattern)
{
    return pattern->n_groups;
}

/* Takes a copy that no other thread uses. A thread begins where its stack says, so it mostly gets
   the same copy again, and another one than other threads. */
static struct copy *take_copy(struct name_pattern *pattern)
{
    enum { STACK_SHIFT = 16 };
    char here;
    size_t i = ((uintptr_t)&here >> STACK_SHIFT) * UINT64_C(0x9e3779b97f4a7c15) >> 57;
    for (size_t n = 1; atomic_flag_test_and_set_explicit(&pattern->copies[i].busy,
                                                         memory_order_acquire); n++) {
        i = (i + 1) % COPIES;
        if (n % COPIES == 0) (void)sched_yield();
    }
    return &pattern->copies[i];
}

bool name_pattern_match(struct name_pattern *pattern, const char *name,
                        regmatch_t found[NAME_PATTERN_GROUPS + 1])
{
    struct copy *copy = take_copy(pattern);
    if (!copy->is_compiled) copy->is_compiled = compile(pattern->text, &copy->regex) == 0;
    int error = copy->is_compiled ? regexec(&copy->regex, name, NAME_PATTERN_GROUPS + 1, found, 0)
                                  : REG_NOMATCH;
    atomic_flag_clear_explicit(&copy->busy, memory_order_release);
    xalloc_require(error != REG_ESPACE);
    return error == 0;
}
