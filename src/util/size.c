/* size.c -- see size.h. */
#include "util/size.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int size_parse(const char *text, uint64_t *n_bytes)
{
    static const char suffixes[] = "KMGT";
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (INT64_MAX - digit) / 10) return -1;
        value = value * 10 + digit;
    }
    if (at == text) return -1;
    if (*at) {
        char upper = *at >= 'a' ? (char)(*at - 'a' + 'A') : *at;
        const char *suffix = strchr(suffixes, upper);
        if (!suffix || !*suffix || at[1]) return -1;
        int shift = 10 * (int)(suffix - suffixes + 1);
        if (value > (uint64_t)INT64_MAX >> shift) return -1;
        value <<= shift;
    }
    *n_bytes = value;
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
