/*
 * header_text.h -- pieces of SAM header text: lines, their fields, and a map with pieces as keys.
 *
 * Pieces point into text that belongs to somebody else and must outlive them; nothing is copied.
 * All functions but header_whole_text and those that change a map are pure. Besides it only
 * text_map_put and header_programs_have_end can fail, without memory, after a message. A map is
 * used by one thread at a time.
 */
#ifndef ROCKSORT_BAM_HEADER_TEXT_H
#define ROCKSORT_BAM_HEADER_TEXT_H

#include <htslib/sam.h>
#include <stdbool.h>
#include <stddef.h>

struct text {                   /* not terminated */
    const char *at;             /* NULL for none; the empty text is not none */
    size_t n;
};

bool text_equal(struct text a, struct text b);

/* As strcmp. */
int text_compare(struct text a, struct text b);

/* The text of a header, which htslib may have to put together: it stays until the header changes.
   htslib has none for a header without lines, that of FASTQ; this is "" then. NULL without memory,
   without a message. */
const char *header_whole_text(sam_hdr_t *header);

/* Takes the next line that is not empty, without its end, from the terminated text at *at. */
bool header_next_line(const char **at, struct text *line);

/* True if the line has this type, which is "@" and two letters. */
bool header_line_is(struct text line, const char *type);

/* The rest of a line behind its type, to start header_next_field with. */
struct text header_line_rest(struct text line);

/* Takes the next field, without its tab, from the rest of a line. */
bool header_next_field(struct text *rest, struct text *field);

/* The value of a field if it has this tag, two letters and a colon; else none. */
struct text header_field_value(struct text field, const char *tag);

/* Finds the first @SQ line of the text without a length above 0, or with two that differ. Returns
   what is wrong with it and shows it, or NULL. */
const char *header_find_bad_length(const char *text, struct text *line);

/* Of a header's text: 1 if one of its @PG lines is named by no PP, or there is no PP, so that a new
   line has something to follow; 0 if all are in circles, or lead to one; -1 without memory. */
int header_programs_have_end(const char *text);

struct text_map_entry {
    struct text key;
    size_t value;
};

/* All zero when empty. */
struct text_map {
    struct text_map_entry *entries;
    size_t n, room;
};

/* The key's value, to be read or changed before the next put, or NULL. */
size_t *text_map_find(const struct text_map *map, struct text key);

/* Gives the key the value if it has none. Shows the one it has then. Returns 1 if it had none, 0
   if it had, -1 without memory. */
int text_map_put(struct text_map *map, struct text key, size_t value, size_t *shown);

/* Leaves an empty map. */
void text_map_release(struct text_map *map);

#endif
