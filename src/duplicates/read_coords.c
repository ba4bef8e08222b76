/* read_coords.c -- see read_coords.h. */
#include "duplicates/read_coords.h"

#include "duplicates/name_pattern.h"

#include <string.h>

enum { MOST_COLONS = 7 };

/* Reads the number that begins at `at`, as strtol does: what follows it plays no part, and one that
   is too large counts as the largest. Returns false if there is none. */
static bool read_number(const char *at, const char *end, int64_t *number)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end || *at < '0' || *at > '9') return false;
    int64_t value = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        int digit = *at - '0';
        value = value > (INT64_MAX - digit) / 10 ? INT64_MAX : value * 10 + digit;
    }
    *number = negative ? -value : value;
    return true;
}

static struct read_coords by_colons(const char *name)
{
    struct read_coords coords = {.known = false};
    uint8_t after[MOST_COLONS + 1] = {0};       /* where what follows each colon begins */
    size_t n = 0, at = 0;
    for (; name[at]; at++)
        if (name[at] == ':' && ++n <= MOST_COLONS) after[n] = (uint8_t)(at + 1);
    if (n < 3 || n == 5 || n > MOST_COLONS) return coords;
    size_t y = n == MOST_COLONS ? n - 1 : n;    /* the colon before y; a barcode follows the last */
    const char *end = name + at;
    coords.end = after[y - 1];
    coords.known = read_number(name + coords.end, end, &coords.x) &&
                   read_number(name + after[y], end, &coords.y);
    return coords;
}

static struct read_coords by_pattern(const struct duplicate_rules *rules, const char *name)
{
    struct read_coords coords = {.known = false};
    regmatch_t found[NAME_PATTERN_GROUPS + 1];
    if (!name_pattern_match(rules->coords, name, found)) return coords;
    const regmatch_t *x = &found[rules->coords_x], *y = &found[rules->coords_y];
    if (x->rm_so < 0 || y->rm_so < 0) return coords;
    if (rules->coords_t > 0) {
        const regmatch_t *t = &found[rules->coords_t];
        if (t->rm_so < 0) return coords;
        coords.begin = (uint8_t)t->rm_so;
        coords.end = (uint8_t)t->rm_eo;
    }
    coords.known = read_number(name + x->rm_so, name + x->rm_eo, &coords.x) &&
                   read_number(name + y->rm_so, name + y->rm_eo, &coords.y);
    return coords;
}

struct read_coords read_coords_of(const struct duplicate_rules *rules, const char *name)
{
    return rules->coords ? by_pattern(rules, name) : by_colons(name);
}

/* Neither is INT64_MIN, but their difference may be too large for its type. */
static bool is_near(int64_t a, int64_t b, int64_t distance)
{
    uint64_t difference = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return difference <= (uint64_t)distance;
}

bool read_coords_near(const struct read_coords *a, const char *a_name, const struct read_coords *b,
                      const char *b_name, int64_t distance)
{
    size_t n = (size_t)(a->end - a->begin);
    return a->known && b->known && n == (size_t)(b->end - b->begin) &&
           memcmp(a_name + a->begin, b_name + b->begin, n) == 0 && is_near(a->x, b->x, distance) &&
           is_near(a->y, b->y, distance);
}
