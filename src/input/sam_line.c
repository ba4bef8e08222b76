/* sam_line.c -- see sam_line.h. */
#include "input/sam_line.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The field behind the next tab, or NULL. */
static char *next_field(char *at)
{
    at = strchr(at, '\t');
    return at ? at + 1 : NULL;
}

/* True unless the field is a number above `most`. */
static bool number_fits(const char *field, unsigned long most)
{
    return *field < '0' || *field > '9' || strtoul(field, NULL, 0) <= most;
}

/* Whether all elements of an array are numbers of its type; `at` is the first comma. */
static bool array_fits(char type, const char *at)
{
    while (*at == ',') {
        const char *element = ++at;
        if (type == 'f') {
            char *end;
            (void)strtof(element, &end);
            at = end;
        } else {
            if (*at == '+' || (*at == '-' && type != 'C' && type != 'S' && type != 'I')) at++;
            at += strspn(at, "0123456789");
        }
    }
    return *at == '\t' || *at == '\0';
}

/* U is T, also in BAM, whose bases have no code for it. */
static void replace_uracil(char *bases)
{
    size_t n = strcspn(bases, "\t");
    for (char *at = bases; (at = memchr(at, 'U', n - (size_t)(at - bases))) != NULL;) *at = 'T';
    for (char *at = bases; (at = memchr(at, 'u', n - (size_t)(at - bases))) != NULL;) *at = 'T';
}

const char *sam_line_correct(char *line)
{
    enum { FLAG = 1, MAPQ = 4, SEQ = 9, FIRST_TAG = 11 };
    char *field = line;
    for (int i = 1; (field = next_field(field)) != NULL; i++) {
        if (i == FLAG && !number_fits(field, UINT16_MAX)) return "its FLAG is above 65535";
        if (i == MAPQ && !number_fits(field, UINT8_MAX)) return "its MAPQ is above 255";
        if (i == SEQ) replace_uracil(field);
        if (i < FIRST_TAG || strnlen(field, 6) < 6 || strncmp(field + 2, ":B:", 3) != 0) continue;
        if (!array_fits(field[5], field + 6))
            return "it has an array with a value that its type cannot hold";
    }
    return NULL;
}
