/*
 * sam_chunk.c -- see sam_chunk.h.
 *
 * Each line is first checked for values that htslib would change, then parsed by htslib.
 */
#include "input/sam_chunk.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/kstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_LINE_BYTES = 1 << 30 };

/* ---- one line ---- */

/* The field after the next tab, or NULL. */
static char *next_field(char *at)
{
    at = strchr(at, '\t');
    return at ? at + 1 : NULL;
}

/* True unless the field is a number above `most`. */
static bool number_fits(const char *field, unsigned long most)
{
    return *field < '0' || *field > '9' || strtoul(field, NULL, 0) <= most;
}

/* True if all elements of an array are numbers of its type; `at` is the first comma. */
static bool array_fits(char type, const char *at)
{
    while (*at == ',') {
        const char *element = ++at;
        if (type == 'f') {
            char *end;
            (void)strtof(element, &end);
            at = end;
        } else {
            if (*at == '+' || (*at == '-' && type != 'C' && type != 'S' && type != 'I')) at++;
            at += strspn(at, "0123456789");
        }
    }
    return *at == '\t' || *at == '\0';
}

/* Replaces U by T, since BAM has no code for U. */
static void replace_uracil(char *bases)
{
    size_t n = strcspn(bases, "\t");
    for (char *at = bases; (at = memchr(at, 'U', n - (size_t)(at - bases))) != NULL;) *at = 'T';
    for (char *at = bases; (at = memchr(at, 'u', n - (size_t)(at - bases))) != NULL;) *at = 'T';
}

const char *sam_line_correct(char *line)
{
    enum { FLAG = 1, MAPQ = 4, SEQ = 9, FIRST_TAG = 11 };
    char *field = line;
    for (int i = 1; (field = next_field(field)) != NULL; i++) {
        if (i == FLAG && !number_fits(field, UINT16_MAX)) return "its FLAG is above 65535";
        if (i == MAPQ && !number_fits(field, UINT8_MAX)) return "its MAPQ is above 255";
        if (i == SEQ) replace_uracil(field);
        if (i < FIRST_TAG || strnlen(field, 6) < 6 || strncmp(field + 2, ":B:", 3) != 0) continue;
        if (!array_fits(field[5], field + 6))
            return "it has an array with a value that its type cannot hold";
    }
    return NULL;
}

/* ---- records of a chunk ---- */

/* Copies n bytes, or what fits and dots. */
static void note_text(char *to, size_t room, const char *from, size_t n)
{
    bool fits = n < room;
    (void)snprintf(to, room, "%.*s%s", (int)(fits ? n : room - sizeof "..."), from,
                   fits ? "" : "...");
}

/* Undoes what htslib does to a line: it ends its fields with NULs. */
static void restore_tabs(char *line, size_t length)
{
    for (char *at = line; (at = memchr(at, '\0', length - (size_t)(at - line))) != NULL;) *at = '\t';
}

/* Notes the read name and the beginning of a line, which ends with a NUL. */
static void note_line(struct sam_chunk *chunk, const char *line)
{
    size_t n = sam_problem_has_name(line) ? strcspn(line, "\t") : 0;
    note_text(chunk->read_name, sizeof chunk->read_name, line, n);
    note_text(chunk->line_start, sizeof chunk->line_start, line, strlen(line));
}

/* Appends a record to the others. Returns NULL, or what is wrong. */
static const char *append_record(struct sam_chunk *chunk, const bam1_t *record)
{
    const char *problem = bam_record_put(record, chunk->long_positions, &chunk->raw,
                                         &chunk->raw_room, chunk->raw_bytes);
    if (problem) return problem;
    chunk->raw_bytes += bam_record_bytes(chunk->raw + chunk->raw_bytes);
    chunk->n_records++;
    return NULL;
}

/* Says why htslib has refused a line of n bytes, whose tabs are there. */
static const char *explain(struct sam_chunk *chunk, const char *line, size_t n, int n_refs)
{
    if (errno != ENOMEM) {
        sam_problem_find(line, n_refs, chunk->is_cut, chunk->problem_text);
        return chunk->problem_text;
    }
    /* htslib says ENOMEM for a record of more than 2 GiB, too. A line of less than 1 GiB cannot
       become such a record, since an array takes at most twice the bytes of its text. */
    xalloc_require(n >= LONG_LINE_BYTES);
    return "it takes more than 2 GiB";
}

/* Parses one line of `length` bytes, which ends with a NUL. Returns NULL, or what is wrong; then the
   line is as it was. */
static const char *parse_line(struct sam_chunk *chunk, char *line, size_t length, sam_hdr_t *header,
                              bam1_t *record)
{
    if (length == 0) return "its line is empty";
    /* htslib would take the NUL for the end of the line. */
    if (memchr(line, '\0', length)) return "its line contains a NUL byte";
    const char *problem = sam_line_correct(line);
    if (problem) return problem;
    kstring_t s = {length, length + 1, line};
    errno = 0;
    int r = sam_parse1(&s, header, record), passes = 1;
    if (r >= 0 && chunk->filter) passes = sam_passes_filter(header, record, chunk->filter);
    if (passes == 0) chunk->n_dropped++;
    if (passes < 0) problem = "the filter in --input-fmt-option cannot be applied to it";
    if (r >= 0 && passes > 0) problem = append_record(chunk, record);
    if (r < 0 || problem || chunk->is_cut) restore_tabs(line, length);
    return r < 0 ? explain(chunk, line, length, sam_hdr_nref(header)) : problem;
}

void sam_chunk_parse(struct sam_chunk *chunk, sam_hdr_t *header, bam1_t *record)
{
    char *line = chunk->text, *next = line, *end = chunk->text + chunk->text_bytes;
    bool is_cut = chunk->is_cut;
    chunk->raw_bytes = 0;
    chunk->n_records = chunk->n_dropped = 0;
    chunk->problem = NULL;
    chunk->read_name[0] = '\0';
    while (next < end && !chunk->problem) {
        line = next;
        next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        size_t length = (size_t)(next - line) - 1;
        if (length > 0 && line[length - 1] == '\r') length--;
        line[length] = '\0';
        chunk->is_cut = is_cut && next == end;
        chunk->problem = parse_line(chunk, line, length, header, record);
    }
    if (chunk->problem || chunk->is_cut) note_line(chunk, line);
}

void sam_chunk_shrink_text(struct sam_chunk *chunk, size_t keep_bytes)
{
    if (chunk->text_room <= keep_bytes) return;
    free(chunk->text);
    chunk->text = NULL;
    chunk->text_room = 0;
}

void sam_chunk_shrink_raw(struct sam_chunk *chunk, size_t keep_bytes)
{
    if (chunk->raw_room <= keep_bytes) return;
    free(chunk->raw);
    chunk->raw = NULL;
    chunk->raw_room = 0;
}

void sam_chunk_release(struct sam_chunk *chunk)
{
    free(chunk->text);
    free(chunk->raw);
    *chunk = (struct sam_chunk){0};
}
