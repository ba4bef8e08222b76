/* mod_lists.c -- see mod_lists.h. */
#include "template/mod_lists.h"

#include <stdbool.h>

/* Returns 0 if the letter is not a base that can have a list. */
static uint32_t base_of(char letter)
{
    switch (letter) {
    case 'A': return 1;
    case 'C': return 2;
    case 'G': return 4;
    case 'T':
    case 'U': return 8;
    case 'N': return MOD_LISTS_ANY_BASE;
    default: return 0;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns -1 if there is no number, or if it has more than 31 bits. htslib allows a plus sign. */
static int64_t take_number(const char **at)
{
    const char *c = *at;
    int64_t n = 0;
    if (*c == '+') c++;
    if (!is_digit(*c)) return -1;
    for (; is_digit(*c); c++) {
        n = 10 * n + (*c - '0');
        if (n > INT32_MAX) return -1;
    }
    *at = c;
    return n;
}

/* Reads what stands before the steps. As in htslib, there may be no code. */
static int take_head(const char **at, struct mod_list *list)
{
    const char *c = *at;
    *list = (struct mod_list){.text = c, .base = base_of(*c++)};
    if (list->base == 0 || (*c != '+' && *c != '-')) return -1;
    c++;
    if (is_digit(*c)) {
        if (take_number(&c) < 0) return -1;
        list->n_codes = 1;
    } else {
        for (; is_letter(*c); c++) list->n_codes++;
    }
    if (*c == '.' || *c == '?') c++;
    list->steps = *at = c;
    return 0;
}

int mod_lists_next(const char **at, struct mod_list *list)
{
    if (!**at) return 0;
    if (take_head(at, list) < 0) return -1;
    while (**at == ',') {
        ++*at;
        int64_t step = take_number(at);
        if (step < 0) return -1;
        list->n_steps++;
        list->n_bases += (uint64_t)step + 1;
    }
    if (**at != ';') return -1;
    ++*at;
    return 1;
}

uint32_t mod_lists_step(const char **at)
{
    ++*at;
    return (uint32_t)take_number(at);
}
