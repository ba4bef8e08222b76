/*
 * header_text.h -- pieces of SAM header text: lines, their fields, and a map with pieces as keys.
 *
 *     at = header_whole_text(header);
 *     while (header_next_line(&at, &line))
 *         if (header_line_is(line, "@RG"))
 *             for (rest = header_line_rest(line); header_next_field(&rest, &field);)
 *                 value = header_field_value(field, "ID:");
 *
 * Ownership: pieces point into the text, which must outlive them. A map owns its entries, but not
 * their keys. Threads: header_whole_text may change what htslib keeps of a header, and a map is
 * used by one thread at a time; the rest is pure. Nothing can fail.
 */
#ifndef ROCKSORT_BAM_HEADER_TEXT_H
#define ROCKSORT_BAM_HEADER_TEXT_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
    const char *at;             /* does not end with a NUL; NULL: there is no text, not even "" */
    size_t n;
};

static inline struct text text_of(const char *string)
{
    return (struct text){string, strlen(string)};
}

bool text_equal(struct text a, struct text b);

/* The text of a header, valid until the header changes. It is "" for a header without lines, such
   as that of FASTQ. */
const char *header_whole_text(sam_hdr_t *header);

/* Stores the next line that is not empty, without its newline, and moves *at to its end. The text
   ends with a NUL. Returns false at its end. */
bool header_next_line(const char **at, struct text *line);

/* True if the line has this type, which is "@" and two letters. */
bool header_line_is(struct text line, const char *type);

/* True if the type of a line is one of the specification. */
bool header_line_is_known(struct text line);

/* The line without its type, as header_next_field needs it. */
struct text header_line_rest(struct text line);

/* Stores the next field, without its tab, and takes it off the rest of the line. Returns false if
   there is none. */
bool header_next_field(struct text *rest, struct text *field);

/* The value of a field if it has this tag (two letters and a colon); else no text. */
struct text header_field_value(struct text field, const char *tag);

/*
 * Finds the first line that htslib cannot parse, or an @SQ line that has no name, no length above
 * 0, or two lengths that differ. Other types than those of the specification are a fault only if
 * known_types: htslib takes them in BAM, not in SAM. Stores the line and returns what is wrong with
 * it. Returns NULL if there is no such line. Like htslib, ignores a line of at most three bytes at
 * the end.
 */
const char *header_find_bad_line(const char *text, bool known_types, struct text *line);

/* Returns the text with "@CO\t", which samtools 1.24 writes, for each line "@CO", which an older
   htslib drops. NULL if there is no such line. The caller frees it. */
char *header_complete_comments(const char *text);

/* True if there is an @PG line that a new @PG line can follow: some line is not named by the PP of
   another line, or no line has a PP. False if PPs name all lines, as they do in a circle. */
bool header_programs_have_end(const char *text);

struct text_map_entry {
    struct text key;
    size_t value;
};

/* {0} is an empty map. */
struct text_map {
    struct text_map_entry *entries;
    size_t n, room;
};

/* The value of a key, or NULL if the map does not have the key. The caller may change the value;
   the pointer is valid until the next text_map_put. */
size_t *text_map_find(const struct text_map *map, struct text key);

/* Gives the key this value, unless it has a value already. Returns the value of the key. */
size_t text_map_put(struct text_map *map, struct text key, size_t value);

/* Leaves an empty map. */
void text_map_release(struct text_map *map);

#endif
