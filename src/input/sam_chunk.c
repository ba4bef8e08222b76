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

static void note_read_name(struct sam_chunk *chunk, const char *name, size_t n)
{
    (void)snprintf(chunk->problem_name, sizeof chunk->problem_name, "%.*s", (int)n, name);
}

/* Renames the IDs of the record that was put after the others and is not counted yet. The new
   record is first written after the old one, then moved over it. */
static void rename_last(struct sam_chunk *chunk)
{
    size_t n_bytes = bam_record_bytes(chunk->raw + chunk->raw_bytes);
    size_t bound = id_renames_rewrite_bound(chunk->renames, chunk->raw + chunk->raw_bytes);
    size_t most = chunk->raw_bytes + n_bytes + bound;
    xgrow(&chunk->raw, &chunk->raw_room, most, most / 4, 1);
    uint8_t *rec = chunk->raw + chunk->raw_bytes;
    memmove(rec, rec + n_bytes, id_renames_rewrite(chunk->renames, rec, rec + n_bytes));
}

/* Appends a record to the others. Returns NULL, or what is wrong. */
static const char *append_record(struct sam_chunk *chunk, const bam1_t *record)
{
    const char *problem = bam_record_put(record, chunk->long_positions, &chunk->raw,
                                         &chunk->raw_room, chunk->raw_bytes);
    if (problem) {
        note_read_name(chunk, bam_get_qname(record), strlen(bam_get_qname(record)));
        return problem;
    }
    if (chunk->renames) rename_last(chunk);
    chunk->raw_bytes += bam_record_bytes(chunk->raw + chunk->raw_bytes);
    chunk->n_records++;
    return NULL;
}

/* Parses one line and overwrites its last byte, a newline. Returns NULL, or what is wrong. */
static const char *parse_line(struct sam_chunk *chunk, char *line, size_t length, sam_hdr_t *header,
                              bam1_t *record)
{
    length--;
    if (length > 0 && line[length - 1] == '\r') length--;
    if (length == 0) return "its line is empty";
    /* htslib would take the NUL for the end of the line. */
    if (memchr(line, '\0', length)) return "its line contains a NUL byte";
    line[length] = '\0';
    const char *problem = sam_line_correct(line);       /* htslib overwrites the tabs */
    if (problem) {
        note_read_name(chunk, line, strcspn(line, "\t"));
        return problem;
    }
    kstring_t s = {length, length + 1, line};
    errno = 0;
    if (sam_parse1(&s, header, record) >= 0) return append_record(chunk, record);
    if (errno != ENOMEM) return "its line is not a SAM record";
    /* htslib says ENOMEM for a record of more than 2 GiB, too. A line of less than 1 GiB cannot
       become such a record, since an array takes at most twice the bytes of its text. */
    xalloc_require(length >= LONG_LINE_BYTES);
    return "it takes more than 2 GiB";
}

/* ---- a chunk of rows ---- */

void sam_chunk_put_rows(struct sam_chunk *chunk, struct row_batch *rows, uint64_t row, uint64_t n)
{
    row_batch_drop(chunk->rows);
    chunk->rows = row_batch_hold(rows);
    chunk->row = row;
    chunk->end_row = row + n;
    chunk->text_bytes = (size_t)n * row_batch_row_bytes(rows);
}

size_t sam_chunk_room(const struct sam_chunk *chunk)
{
    return chunk->rows ? chunk->text_bytes : chunk->text_room;
}

/* Makes the records of all rows up to the first one that is wrong. */
static void parse_rows(struct sam_chunk *chunk)
{
    while (chunk->row < chunk->end_row && !chunk->problem) {
        struct column_bytes out = {chunk->raw, chunk->raw_bytes, chunk->raw_room};
        chunk->problem = row_batch_put(chunk->rows, chunk->row++, &out);
        chunk->raw = out.bytes;
        chunk->raw_room = out.room;
        if (chunk->problem) break;
        if (chunk->renames) rename_last(chunk);
        chunk->raw_bytes += bam_record_bytes(chunk->raw + chunk->raw_bytes);
        chunk->n_records++;
    }
    row_batch_drop(chunk->rows);
    chunk->rows = NULL;
}

/* ---- both ---- */

static void parse_lines(struct sam_chunk *chunk, sam_hdr_t *header, bam1_t *record)
{
    char *line = chunk->text, *end = chunk->text + chunk->text_bytes;
    while (line < end && !chunk->problem) {
        char *next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        chunk->problem = parse_line(chunk, line, (size_t)(next - line), header, record);
        line = next;
    }
}

void sam_chunk_parse(struct sam_chunk *chunk, sam_hdr_t *header, bam1_t *record)
{
    chunk->raw_bytes = 0;
    chunk->n_records = 0;
    chunk->problem = NULL;
    chunk->problem_name[0] = '\0';
    if (chunk->rows)
        parse_rows(chunk);
    else
        parse_lines(chunk, header, record);
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
    row_batch_drop(chunk->rows);
    free(chunk->text);
    free(chunk->raw);
    *chunk = (struct sam_chunk){0};
}
