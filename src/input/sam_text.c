/* sam_text.c -- see sam_text.h. */
#define _GNU_SOURCE             /* memrchr */
#include "input/sam_text.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "input/sam_line.h"
#include "util/grow.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <stdio.h>
#include <stdlib.h>

/* Makes room for n_bytes in a buffer of some type of bytes. */
static int reserve(void *buffer, size_t *room, size_t n_bytes)
{
    return grow_array(buffer, room, n_bytes, n_bytes / 4, 1);
}

int sam_text_open(struct sam_text *text, samFile *file, sam_hdr_t *header)
{
    *text = (struct sam_text){.file = file};
    /* The dictionary of reference names is built at its first use: before threads share it. */
    errno = 0;
    if (sam_hdr_name2tid(header, "*") < -1) {
        if (errno != ENOMEM) errno = EBADMSG;
        return -1;
    }
    /* htslib knows the header's end by having read the first line behind it. */
    if (file->line.l == 0) return 0;
    if (reserve(&text->tail, &text->tail_room, file->line.l + 1) < 0) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(text->tail, file->line.s, file->line.l);
    text->tail[file->line.l] = '\n';
    text->tail_bytes = file->line.l + 1;
    file->line.l = 0;
    return 0;
}

void sam_text_release(struct sam_text *text)
{
    free(text->tail);
    *text = (struct sam_text){0};
}

/* Reads up to n_bytes; less only at the end of the input. -1: errno is set. */
static ssize_t read_text(samFile *file, char *to, size_t n_bytes)
{
    errno = 0;
    if (file->format.compression == no_compression) return hread(file->fp.hfile, to, n_bytes);
    ssize_t n = bgzf_read(file->fp.bgzf, to, n_bytes);
    /* With threads a damaged block may look like the end of the file. */
    if (file->fp.bgzf->errcode != 0) n = -1;
    if (n < 0 && errno == 0) errno = EBADMSG;
    return n;
}

/* Keeps what follows the last line end for the next chunk. */
static int keep_tail(struct sam_text *text, struct sam_chunk *chunk, size_t lines_bytes)
{
    size_t n = chunk->text_bytes - lines_bytes;
    if (reserve(&text->tail, &text->tail_room, n) < 0) return -1;
    if (n > 0) memcpy(text->tail, chunk->text + lines_bytes, n);
    text->tail_bytes = n;
    chunk->text_bytes = lines_bytes;
    return 0;
}

/*
 * Ends the file's last line where it lacks its newline. Without one a carriage return at its end
 * belongs to the line, as for htslib, and stays when parse_line takes off the one before a newline.
 */
static void end_line(struct sam_chunk *chunk)
{
    char last = chunk->text[chunk->text_bytes - 1];
    if (last == '\r') chunk->text[chunk->text_bytes++] = '\r';
    if (last != '\n') chunk->text[chunk->text_bytes++] = '\n';
}

int sam_text_next(struct sam_text *text, struct sam_chunk *chunk, size_t chunk_bytes)
{
    /* Two bytes more: see end_line. */
    if (reserve(&chunk->text, &chunk->text_room, text->tail_bytes + chunk_bytes + 2) < 0) return -1;
    if (text->tail_bytes > 0) memcpy(chunk->text, text->tail, text->tail_bytes);
    size_t searched = 0;
    chunk->text_bytes = text->tail_bytes;
    text->tail_bytes = 0;
    while (!text->ended) {
        if (reserve(&chunk->text, &chunk->text_room, chunk->text_bytes + chunk_bytes + 2) < 0)
            return -1;
        ssize_t n = read_text(text->file, chunk->text + chunk->text_bytes, chunk_bytes);
        if (n < 0) return -1;
        text->ended = (size_t)n < chunk_bytes;
        chunk->text_bytes += (size_t)n;
        const char *last = memrchr(chunk->text + searched, '\n', chunk->text_bytes - searched);
        if (last && !text->ended) {
            if (keep_tail(text, chunk, (size_t)(last + 1 - chunk->text)) < 0) return -1;
            return 1;
        }
        searched = chunk->text_bytes;
    }
    if (chunk->text_bytes == 0) return 0;
    end_line(chunk);
    return 1;
}

const char sam_chunk_no_memory[] = "out of memory";

/* Makes room for n_bytes more. */
static int reserve_raw(struct sam_chunk *chunk, size_t n_bytes)
{
    return reserve(&chunk->raw, &chunk->raw_room, chunk->raw_bytes + n_bytes);
}

/* Packs a record behind the others. Returns NULL or what is wrong. */
static const char *append_record(struct sam_chunk *chunk, const bam1_t *record)
{
    size_t size = bam_record_packed_bytes(record);
    bool is_long = size == 0 && chunk->long_positions;
    if (is_long) size = bam_record_long_bytes(record);
    if (size == 0) {
        (void)snprintf(chunk->problem_name, sizeof chunk->problem_name, "%s",
                       bam_get_qname(record));
        return "it lies beyond 2^31 or its CIGAR is too long";
    }
    if (reserve_raw(chunk, size) < 0) return sam_chunk_no_memory;
    uint8_t *raw = chunk->raw + chunk->raw_bytes;
    if (is_long)
        bam_record_pack_long(record, raw);
    else
        bam_record_pack(record, raw);
    if (chunk->renames) {
        /* Behind the record there is room for the renamed one, which then takes its place. */
        size_t bound = header_union_rewrite_bound(chunk->renames, chunk->input, raw);
        if (reserve_raw(chunk, size + bound) < 0) return sam_chunk_no_memory;
        raw = chunk->raw + chunk->raw_bytes;
        size_t renamed = header_union_rewrite(chunk->renames, chunk->input, raw, raw + size);
        memmove(raw, raw + size, renamed);
        size = renamed;
    }
    chunk->raw_bytes += size;
    chunk->n_records++;
    return NULL;
}

/* Parses one line, whose last byte, a newline, is overwritten. Returns NULL or what is wrong. */
static const char *parse_line(struct sam_chunk *chunk, char *line, size_t length, sam_hdr_t *header,
                              bam1_t *record)
{
    length--;
    if (length > 0 && line[length - 1] == '\r') length--;
    if (length == 0) return "its line is empty";
    /* htslib would take it for the end of the line. */
    if (memchr(line, '\0', length)) return "its line contains a NUL byte";
    line[length] = '\0';
    const char *problem = sam_line_correct(line);       /* before tabs are overwritten */
    if (problem) {
        (void)snprintf(chunk->problem_name, sizeof chunk->problem_name, "%.*s",
                       (int)strcspn(line, "\t"), line);
        return problem;
    }
    kstring_t s = {length, length + 1, line};
    errno = 0;
    if (sam_parse1(&s, header, record) < 0)
        return errno == ENOMEM ? sam_chunk_no_memory : "its line is not a SAM record";
    return append_record(chunk, record);
}

void sam_chunk_parse(struct sam_chunk *chunk, sam_hdr_t *header, bam1_t *record)
{
    char *line = chunk->text, *end = chunk->text + chunk->text_bytes;
    chunk->raw_bytes = 0;
    chunk->n_records = 0;
    chunk->problem = NULL;
    chunk->problem_name[0] = '\0';
    while (line < end && !chunk->problem) {
        char *next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        chunk->problem = parse_line(chunk, line, (size_t)(next - line), header, record);
        line = next;
    }
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
