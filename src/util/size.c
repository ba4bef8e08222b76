/* size.c -- see size.h. */
#include "util/size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Parses digits and moves *at to their end. False if there are none, or too many for 63 bits. */
static bool parse_whole(const char **at, uint64_t *value)
{
    const char *begin = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (*value > (INT64_MAX - digit) / 10) return false;
        *value = *value * 10 + digit;
    }
    return *at > begin;
}

/* Parses a point and the digits after it, and moves *at to their end. False if there are none. */
static bool parse_fraction(const char **at, double *value)
{
    enum { MOST_DIGITS = 15 };          /* of a double; further digits are less than a byte */
    double digits = 0, scale = 1;
    const char *begin = ++*at;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*at - begin >= MOST_DIGITS) continue;
        digits = 10 * digits + (**at - '0');
        scale *= 10;
    }
    *value = digits / scale;
    return *at > begin;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* True for a valid end of a unit, after its letter: nothing, B or iB. */
static bool is_rest_of_unit(const char *text)
{
    if (upper(text[0]) == 'I' && upper(text[1]) == 'B') text++;
    if (upper(text[0]) == 'B') text++;
    return *text == '\0';
}

int size_parse(const char *text, uint64_t *n_bytes)
{
    static const char units[] = "KMGT";
    const char *at = text;
    uint64_t whole;
    double fraction = 0;
    if (!parse_whole(&at, &whole)) return -1;
    bool has_point = *at == '.';
    if (has_point && !parse_fraction(&at, &fraction)) return -1;
    const char *unit = *at ? strchr(units, upper(*at)) : NULL;
    if (!unit && (*at || has_point)) return -1;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (unit && !is_rest_of_unit(at + 1)) return -1;
    if (whole > (uint64_t)INT64_MAX >> shift) return -1;
    /* The fraction is below 1, so this stays below 2^63. */
    *n_bytes = (whole << shift) + (uint64_t)(fraction * (double)((uint64_t)1 << shift));
    return 0;
}

const char *size_format(uint64_t n_bytes, char text[SIZE_TEXT_BYTES])
{
    static const struct {
        double bytes;
        const char *name;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if ((double)n_bytes < units[i].bytes) continue;
        (void)snprintf(text, SIZE_TEXT_BYTES, "%.1f %s", (double)n_bytes / units[i].bytes,
                       units[i].name);
        return text;
    }
    (void)snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64 " bytes", n_bytes);
    return text;
}
