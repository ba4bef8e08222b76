/* read_names.c -- see read_names.h. */
#include "markdup/read_names.h"

#include "bam/bam_long.h"
#include "util/xalloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- patterns ---- */

struct name_pattern {
    char *text;
    size_t n_groups;
    pthread_key_t copy; /* of each thread: its regex_t */
};

static int compile(const char *text, regex_t *regex)
{
    int error = regcomp(regex, text, REG_EXTENDED);
    xalloc_require(error != REG_ESPACE);
    return error;
}

static void free_copy(void *regex)
{
    if (regex) regfree(regex);
    free(regex);
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
    xalloc_require(pthread_key_create(&pattern->copy, free_copy) == 0);
    regfree(&regex);
    return pattern;
}

void name_pattern_destroy(struct name_pattern *pattern)
{
    if (!pattern) return;
    free_copy(pthread_getspecific(pattern->copy));
    (void)pthread_key_delete(pattern->copy);
    free(pattern->text);
    free(pattern);
}

size_t name_pattern_n_groups(const struct name_pattern *pattern)
{
    return pattern->n_groups;
}

bool name_pattern_match(struct name_pattern *pattern, const char *name,
                        regmatch_t found[NAME_PATTERN_GROUPS + 1])
{
    regex_t *regex = pthread_getspecific(pattern->copy);
    if (!regex) {
        regex = xmalloc(sizeof *regex);
        if (compile(pattern->text, regex) != 0) abort(); /* it was compiled before */
        xalloc_require(pthread_setspecific(pattern->copy, regex) == 0);
    }
    int error = regexec(regex, name, NAME_PATTERN_GROUPS + 1, found, 0);
    xalloc_require(error != REG_ESPACE);
    return error == 0;
}

/* ---- barcodes ---- */

static const char umi_tag[] = {'R', 'X', 'Z'};

/* True for characters of read names, which never contain @. */
static bool is_of_barcode(char c)
{
    return c >= '!' && c <= '~' && c != '@';
}

/* Finds the eighth field of a name: what follows the seventh colon, up to the first character that
   is not allowed in names. As in samtools, it may contain more colons. */
static struct read_barcode find_eighth_field(const char *name)
{
    enum { COLONS_BEFORE = 7 };
    struct read_barcode barcode = {.text = NULL};
    for (int i = 0; i < COLONS_BEFORE && name; i++) {
        name = strchr(name, ':');
        if (name) name++;
    }
    while (name && is_of_barcode(name[barcode.n])) barcode.n++;
    if (barcode.n > 0) barcode.text = name;
    barcode.is_unreadable = barcode.n == 0;
    return barcode;
}

static struct read_barcode find_in_name(const struct markdup_rules *rules, const char *name)
{
    regmatch_t found[NAME_PATTERN_GROUPS + 1];
    struct read_barcode barcode = {.is_unreadable = true};
    if (!rules->barcode_pattern) return find_eighth_field(name);
    if (!name_pattern_match(rules->barcode_pattern, name, found) || found[1].rm_so < 0)
        return barcode;
    barcode.is_unreadable = false;
    barcode.n = (size_t)(found[1].rm_eo - found[1].rm_so);
    if (barcode.n > 0) barcode.text = name + found[1].rm_so;
    return barcode;
}

static struct read_barcode find_in_tag(const struct markdup_rules *rules, const uint8_t *rec)
{
    struct read_barcode barcode = {.text = NULL};
    struct bam_aux aux;
    if (bam_aux_find(rec, rules->barcode_tag, &aux) <= 0) return barcode;
    barcode.is_unreadable = !bam_aux_is_text(&aux);
    if (barcode.is_unreadable || aux.value_bytes <= 1) return barcode;
    barcode.text = (const char *)aux.value;
    barcode.n = aux.value_bytes - 1;
    return barcode;
}

struct read_barcode read_barcode_of(const struct markdup_rules *rules, const uint8_t *rec)
{
    switch (rules->barcode_source) {
    case BARCODE_TAG: return find_in_tag(rules, rec);
    case BARCODE_NAME: return find_in_name(rules, (const char *)bam_record_name(rec));
    default: return (struct read_barcode){.text = NULL};
    }
}

/* Writes the name without the barcode and one separator. Returns its end, after the NUL. */
static uint8_t *put_name(const char *name, const struct read_barcode *barcode, char separator,
                         uint8_t *out)
{
    size_t begin = (size_t)(barcode->text - name), end = begin + barcode->n;
    if (begin > 0 && name[begin - 1] == separator)
        begin--;
    else if (name[end] == separator)
        end++;
    uint8_t *name_end = copy_bytes(copy_bytes(out, name, begin), name + end, strlen(name + end));
    if (name_end == out) *name_end++ = '*';
    *name_end++ = '\0';
    return name_end;
}

static uint8_t *put_umi(uint8_t *out, const struct read_barcode *barcode)
{
    out = copy_bytes(copy_bytes(out, umi_tag, sizeof umi_tag), barcode->text, barcode->n);
    *out++ = '\0';
    return out;
}

size_t read_barcode_move(const struct markdup_rules *rules, const uint8_t *rec, uint8_t *out)
{
    const char *name = (const char *)bam_record_name(rec);
    struct read_barcode barcode = find_in_name(rules, name);
    struct bam_aux aux;
    if (!barcode.text) return 0;
    uint8_t *out_name = out + BAM_RECORD_FIXED_BYTES;
    memcpy(out, rec, BAM_RECORD_FIXED_BYTES);
    uint8_t *at = put_name(name, &barcode, rules->umi_separator, out_name);
    out[BAM_NAME_BYTES_AT] = (uint8_t)(at - out_name);
    const uint8_t *rest = bam_record_ops(rec), *end = bam_record_end(rec);
    if (bam_aux_find(rec, umi_tag, &aux) > 0) {
        at = put_umi(copy_bytes(at, rest, (size_t)(aux.start - rest)), &barcode);
        rest = aux.value + aux.value_bytes;
        at = copy_bytes(at, rest, (size_t)(end - rest));
    } else {
        const uint8_t *tags_end = bam_record_tags_end(rec);
        at = put_umi(copy_bytes(at, rest, (size_t)(tags_end - rest)), &barcode);
        at = copy_bytes(at, tags_end, (size_t)(end - tags_end));
    }
    size_t n_bytes = (size_t)(at - out);
    put_u32(out, (uint32_t)(n_bytes - 4));
    return n_bytes;
}

/* ---- places on the flow cell ---- */

enum { MOST_COLONS = 7 };

/* Reads the number at `at` like strtol: ignores what follows, and clamps a number that is too
   large. Returns false if there is none. */
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
    uint8_t after[MOST_COLONS + 1] = {0};       /* index after each colon */
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

static struct read_coords by_pattern(const struct markdup_rules *rules, const char *name)
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

struct read_coords read_coords_of(const struct markdup_rules *rules, const char *name)
{
    return rules->coords ? by_pattern(rules, name) : by_colons(name);
}

/* Neither coordinate is INT64_MIN. */
static bool is_within(int64_t a, int64_t b, int64_t distance)
{
    uint64_t difference = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
    return difference <= (uint64_t)distance;
}

bool read_coords_near(const struct read_coords *a, const char *a_name, const struct read_coords *b,
                      const char *b_name, int64_t distance)
{
    size_t n = (size_t)(a->end - a->begin);
    return a->known && b->known && n == (size_t)(b->end - b->begin) &&
           memcmp(a_name + a->begin, b_name + b->begin, n) == 0 &&
           is_within(a->x, b->x, distance) &&
           is_within(a->y, b->y, distance);
}
