/* header_text.c -- see header_text.h. */
#include "bam/header_text.h"

#include "util/xalloc.h"

#include <ctype.h>
#include <htslib/khash.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { TYPE_BYTES = 3, TAG_BYTES = 3 };

bool text_equal(struct text a, struct text b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

static khint_t hash_text(struct text text)
{
    return (khint_t)XXH3_64bits(text.at, text.n);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"   /* in the functions that khash.h defines */
KHASH_INIT(texts, struct text, size_t, 1, hash_text, text_equal)
#pragma GCC diagnostic pop

const char *header_whole_text(sam_hdr_t *header)
{
    static const char *const types[] = {"HD", "SQ", "RG", "PG", "CO"};
    const char *text = sam_hdr_str(header);
    int n_lines = 0;
    for (size_t i = 0; !text && i < sizeof types / sizeof *types && n_lines == 0; i++)
        n_lines = sam_hdr_count_lines(header, types[i]);
    xalloc_require(text || n_lines == 0);
    return text ? text : "";
}

bool header_next_line(const char **at, struct text *line)
{
    *at += strspn(*at, "\n");
    line->at = *at;
    line->n = strcspn(*at, "\n");
    *at += line->n;
    return line->n > 0;
}

bool header_line_is(struct text line, const char *type)
{
    return line.n >= TYPE_BYTES && memcmp(line.at, type, TYPE_BYTES) == 0 &&
           (line.n == TYPE_BYTES || line.at[TYPE_BYTES] == '\t');
}

struct text header_line_rest(struct text line)
{
    return (struct text){line.at + TYPE_BYTES, line.n - TYPE_BYTES};
}

bool header_next_field(struct text *rest, struct text *field)
{
    if (rest->n == 0) return false;
    field->at = rest->at + 1;
    const char *tab = memchr(field->at, '\t', rest->n - 1);
    field->n = tab ? (size_t)(tab - field->at) : rest->n - 1;
    rest->at = field->at + field->n;
    rest->n -= 1 + field->n;
    return true;
}

struct text header_field_value(struct text field, const char *tag)
{
    if (field.n < TAG_BYTES || memcmp(field.at, tag, TAG_BYTES) != 0)
        return (struct text){NULL, 0};
    return (struct text){field.at + TAG_BYTES, field.n - TAG_BYTES};
}

/* True if the text begins with a number above zero. Like htslib, ignores text after it. */
static bool is_length(struct text text)
{
    size_t i = 0;
    while (i < text.n && text.at[i] == '0') i++;
    return i < text.n && text.at[i] >= '1' && text.at[i] <= '9';
}

/* Checks name and lengths in the rest of an @SQ line. Returns what is wrong, or NULL. */
static const char *check_reference(struct text rest)
{
    struct text first = {0}, field;
    bool has_name = false;
    while (header_next_field(&rest, &field)) {
        struct text length = header_field_value(field, "LN:");
        has_name |= header_field_value(field, "SN:").at != NULL;
        if (first.at && length.at && !text_equal(first, length)) return "has two lengths (LN)";
        if (length.at) first = length;
    }
    if (!has_name) return "has no name (SN)";
    return is_length(first) ? NULL : "has no length above 0 (LN)";
}

static const char *check_id(struct text rest)
{
    struct text field;
    while (header_next_field(&rest, &field))
        if (header_field_value(field, "ID:").at) return NULL;
    return "has no ID";
}

bool header_line_is_known(struct text line)
{
    static const char *const types[] = {"@HD", "@SQ", "@RG", "@PG", "@CO"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (header_line_is(line, types[i])) return true;
    return false;
}

/* Checks the syntax that all types of lines share. */
static const char *check_syntax(struct text line, bool known_types)
{
    struct text field;
    bool has_type = line.n >= TYPE_BYTES && line.at[0] == '@' &&
                    isalpha((unsigned char)line.at[1]) && isalpha((unsigned char)line.at[2]);
    if (!has_type || (known_types && !header_line_is_known(line)))
        return "is not one of @HD, @SQ, @RG, @PG or @CO; read names must not begin with @";
    struct text rest = header_line_rest(line);
    if (rest.n > 0 && rest.at[0] != '\t') return "has no tab after its type";
    if (header_line_is(line, "@CO")) return NULL;
    while (header_next_field(&rest, &field))
        if (field.n < TAG_BYTES || field.at[2] != ':') return "has a field that is not TAG:VALUE";
    return NULL;
}

const char *header_find_bad_line(const char *text, bool known_types, struct text *line)
{
    const char *end = text + strlen(text);
    while (header_next_line(&text, line) && end - line->at > TYPE_BYTES) {
        const char *problem = check_syntax(*line, known_types);
        struct text rest = problem ? (struct text){0} : header_line_rest(*line);
        if (!problem && header_line_is(*line, "@SQ")) problem = check_reference(rest);
        if (!problem && (header_line_is(*line, "@RG") || header_line_is(*line, "@PG")))
            problem = check_id(rest);
        if (problem) return problem;
    }
    return NULL;
}

/* True if the line is a comment without anything in it, not even a tab. */
static bool is_bare_comment(struct text line)
{
    return line.n == TYPE_BYTES && header_line_is(line, "@CO");
}

char *header_complete_comments(const char *text)
{
    size_t n_bare = 0, n_bytes = strlen(text);
    struct text line;
    for (const char *at = text; header_next_line(&at, &line);) n_bare += is_bare_comment(line);
    if (n_bare == 0) return NULL;
    char *complete = xmalloc(n_bytes + n_bare + 1), *to = complete;
    const char *copied = text;
    for (const char *at = text; header_next_line(&at, &line);) {
        if (!is_bare_comment(line)) continue;
        memcpy(to, copied, (size_t)(at - copied));
        to += at - copied;
        *to++ = '\t';
        copied = at;
    }
    memcpy(to, copied, (size_t)(text + n_bytes - copied) + 1);
    return complete;
}

size_t *text_map_find(const struct text_map *map, struct text key)
{
    khint_t at = map->table ? kh_get(texts, map->table, key) : 0;
    return map->table && at < kh_end(map->table) ? &kh_val(map->table, at) : NULL;
}

size_t text_map_put(struct text_map *map, struct text key, size_t value)
{
    int r;
    if (!map->table) map->table = kh_init(texts);
    xalloc_require(map->table != NULL);
    khint_t at = kh_put(texts, map->table, key, &r);
    xalloc_require(r >= 0);
    if (r > 0) kh_val(map->table, at) = value;
    return kh_val(map->table, at);
}

void text_map_release(struct text_map *map)
{
    kh_destroy(texts, map->table);
    map->table = NULL;
}
