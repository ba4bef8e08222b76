/*
 * header_text.c -- see header_text.h.
 *
 * The map is a hash table with linear probing. Its size is a power of two, and at most two thirds
 * of its entries are in use.
 */
#include "bam/header_text.h"

#include "util/xalloc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { TYPE_BYTES = 3, TAG_BYTES = 3, FIRST_ROOM = 16 };

bool text_equal(struct text a, struct text b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0);
}

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

/* Finds the next value of this tag in @PG lines. *rest: the rest of the line; starts as no text. */
static bool next_program_value(const char **at, struct text *rest, const char *tag,
                               struct text *value)
{
    struct text line, field;
    for (;;) {
        while (header_next_field(rest, &field)) {
            *value = header_field_value(field, tag);
            if (value->at) return true;
        }
        do {
            if (!header_next_line(at, &line)) return false;
        } while (!header_line_is(line, "@PG"));
        *rest = header_line_rest(line);
    }
}

bool header_programs_have_end(const char *text)
{
    struct text_map named = {NULL, 0, 0};
    struct text rest = {NULL, 0}, name;
    for (const char *at = text; next_program_value(&at, &rest, "PP:", &name);)
        (void)text_map_put(&named, name, 0);
    bool has_end = named.n == 0;
    for (const char *at = text; !has_end && next_program_value(&at, &rest, "ID:", &name);)
        has_end = !text_map_find(&named, name);
    text_map_release(&named);
    return has_end;
}

/* Returns the entry of the key, or the free entry for it. At least one entry must be free. */
static struct text_map_entry *find_place(struct text_map_entry *entries, size_t room,
                                         struct text key)
{
    size_t k = (size_t)XXH3_64bits(key.at, key.n) & (room - 1);
    while (entries[k].key.at && !text_equal(entries[k].key, key)) k = (k + 1) & (room - 1);
    return &entries[k];
}

static void grow(struct text_map *map)
{
    size_t room = map->room > 0 ? 2 * map->room : FIRST_ROOM;
    struct text_map_entry *entries = xcalloc(room, sizeof *entries);
    for (size_t k = 0; k < map->room; k++)
        if (map->entries[k].key.at)
            *find_place(entries, room, map->entries[k].key) = map->entries[k];
    free(map->entries);
    map->entries = entries;
    map->room = room;
}

size_t *text_map_find(const struct text_map *map, struct text key)
{
    if (map->n == 0) return NULL;
    struct text_map_entry *entry = find_place(map->entries, map->room, key);
    return entry->key.at ? &entry->value : NULL;
}

size_t text_map_put(struct text_map *map, struct text key, size_t value)
{
    if (map->n >= map->room / 3 * 2) grow(map);
    struct text_map_entry *entry = find_place(map->entries, map->room, key);
    if (!entry->key.at) {
        *entry = (struct text_map_entry){key, value};
        map->n++;
    }
    return entry->value;
}

void text_map_release(struct text_map *map)
{
    free(map->entries);
    *map = (struct text_map){NULL, 0, 0};
}
