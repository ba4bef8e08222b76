/* size.c -- see size.h. */
#include "util/size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    static const char units[] = "KMGT", digits[] = "0123456789";
    size_t n_whole = strspn(text, digits);
    const char *at = text + n_whole;
    bool has_point = *at == '.';
    size_t n_fraction = has_point ? strspn(at + 1, digits) : 0;
    if (n_whole == 0 || (has_point && n_fraction == 0)) return -1;
    /* If there are too many digits, this is the largest value, which is refused below. */
    uint64_t whole = strtoull(text, NULL, 10);
    char *end = (char *)at;
    double fraction = has_point ? strtod(at, &end) : 0;
    if (has_point && end != at + 1 + n_fraction) return -1;     /* an exponent */
    at = end;
    const char *unit = *at ? strchr(units, upper(*at)) : NULL;
    if (!unit && (*at || has_point)) return -1;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (unit && !is_rest_of_unit(at + 1)) return -1;
    if (whole > (uint64_t)INT64_MAX >> shift) return -1;
    /* The fraction is below 1, but many nines are rounded up. So this stays below 2^63. */
    uint64_t unit_bytes = (uint64_t)1 << shift;
    uint64_t part_bytes = (uint64_t)(fraction * (double)unit_bytes);
    *n_bytes = (whole << shift) + (part_bytes < unit_bytes ? part_bytes : unit_bytes - 1);
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
