/*
 * header_text.h -- parses SAM header text into lines and fields; also a map with texts as keys.
 *
 *     at = header_whole_text(header);
 *     while (header_next_line(&at, &line))
 *         if (header_line_is(line, "@RG"))
 *             for (rest = header_line_rest(line); header_next_field(&rest, &field);)
 *                 value = header_field_value(field, "ID:");
 *
 * Ownership: lines and fields point into the text, which must outlive them. A map owns its entries,
 * but not their keys. Threads: header_whole_text may change htslib's header, and one thread at a
 * time uses a map; the other functions are pure. Nothing can fail.
 */
#ifndef ROCKSORT_BAM_HEADER_TEXT_H
#define ROCKSORT_BAM_HEADER_TEXT_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
    const char *at;             /* does not end with a NUL; NULL: no text, which differs from "" */
    size_t n;
};

static inline struct text text_of(const char *string)
{
    return (struct text){string, strlen(string)};
}

bool text_equal(struct text a, struct text b);

/* Returns the text of a header, valid until the header changes; "" for a header without lines, such
   as that of FASTQ. */
const char *header_whole_text(sam_hdr_t *header);

/* Stores the next line that is not empty, without its newline, and moves *at to its end. The text
   ends with a NUL. Returns false at its end. */
bool header_next_line(const char **at, struct text *line);

/* True if the line has this type, which is "@" and two letters. */
bool header_line_is(struct text line, const char *type);

/* True if the specification has the type of the line. */
bool header_line_is_known(struct text line);

/* Returns the line without its type, for header_next_field. */
struct text header_line_rest(struct text line);

/* Stores the next field, without its tab, and removes it from the rest of the line. Returns false
   if there is none. */
bool header_next_field(struct text *rest, struct text *field);

/* Returns the value of a field if it has this tag (two letters and a colon); else no text. */
struct text header_field_value(struct text field, const char *tag);

/*
 * Finds the first line that htslib cannot parse, or an @SQ line without a name, without a length
 * above 0, or with two different lengths. With known_types also rejects types that are not in the
 * specification: htslib accepts them in BAM, not in SAM. Stores the line and returns what is wrong
 * with it; NULL if there is no such line. Like htslib, ignores a last line of at most three bytes.
 */
const char *header_find_bad_line(const char *text, bool known_types, struct text *line);

/* Replaces each line "@CO", which an older htslib drops, with "@CO\t", like samtools 1.24. Returns
   the new text, which the caller frees, or NULL if there is no such line. */
char *header_complete_comments(const char *text);

/* A hash table with texts as keys. {0} is an empty map. */
struct text_map {
    struct kh_texts_s *table;   /* NULL: empty */
};

/* Returns the value of a key, or NULL if the map lacks the key. The caller may change the value.
   The pointer is valid until the next text_map_put. */
size_t *text_map_find(const struct text_map *map, struct text key);

/* Adds a key with a value unless the map has the key. Returns the value of the key. */
size_t text_map_put(struct text_map *map, struct text key, size_t value);

/* Frees the entries and leaves an empty map. */
void text_map_release(struct text_map *map);

#endif
