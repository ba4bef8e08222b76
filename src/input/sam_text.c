/* sam_text.c -- see reader_source.h. */
#define _GNU_SOURCE             /* memrchr */
#include "input/reader_source.h"

#include "bam/header_text.h"
#include "input/input_error.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n_bytes in a buffer of text. */
static void reserve(char **buffer, size_t *room, size_t n_bytes)
{
    xgrow(buffer, room, n_bytes, n_bytes / 4, 1);
}

/* The next byte, without consuming it; EOF at the end, or -2 if the file cannot be read. */
static int peek_byte(samFile *file)
{
    char c;
    if (file->format.compression != no_compression) {
        int next = bgzf_peek(file->fp.bgzf);
        return file->fp.bgzf->errcode != 0 ? -2 : next;
    }
    ssize_t n = hpeek(file->fp.hfile, &c, 1);
    return n == 1 ? (uint8_t)c : n == 0 ? EOF : -2;
}

/* Reads the lines that begin with @. Returns 0, or -1 if the file cannot be read. */
static int read_header_text(samFile *file, kstring_t *text)
{
    bool is_plain = file->format.compression == no_compression;
    int first, c;
    while ((first = peek_byte(file)) == '@') {
        do {
            c = is_plain ? hgetc(file->fp.hfile) : bgzf_getc(file->fp.bgzf);
            if (c == '\n' && text->l > 0 && text->s[text->l - 1] == '\r') text->l--;
            if (c >= 0) xalloc_require(kputc(c, text) >= 0);
        } while (c >= 0 && c != '\n');
        file->lineno++;
    }
    return first < EOF ? -1 : 0;
}

/* Lets htslib read a header from memory. Returns NULL if htslib refuses it, or mistakes a read
   whose name begins with @ for FASTQ. */
static sam_hdr_t *parse_header(const char *text, size_t n_bytes)
{
    if (n_bytes == 0) return sam_hdr_init();
    hFILE *bytes = hopen("mem:", "r:", xmemdup(text, n_bytes), n_bytes);        /* frees the copy */
    xalloc_require(bytes != NULL);
    samFile *file = hts_hopen(bytes, "header", "r");
    if (!file) {
        hclose_abruptly(bytes);
        return NULL;
    }
    sam_hdr_t *header = file->format.format == sam ? sam_hdr_read(file) : NULL;
    (void)sam_close(file);                      /* nothing was written */
    return header;
}

sam_hdr_t *sam_text_read_header(samFile *file, const char *name, bool *is_cut)
{
    kstring_t text = KS_INITIALIZE;
    bool is_read = read_header_text(file, &text) == 0;
    *is_cut = text.l > 0 && text.s[text.l - 1] != '\n';
    bool is_text = text.l > 0 && strlen(text.s) == text.l;
    char *complete = is_text ? header_complete_comments(text.s) : NULL;
    sam_hdr_t *header = !is_read ? NULL
                        : complete ? parse_header(complete, strlen(complete))
                                   : parse_header(text.s, text.l);
    /* htslib builds its dictionary of reference names at the first use. This must happen before
       threads share it. */
    if (header && sam_hdr_name2tid(header, "*") < -1) {
        sam_hdr_destroy(header);
        header = NULL;
    }
    if (!is_read)
        input_error_no_header(name);
    else if (!header)
        input_error_header(name, text.s, true, *is_cut);
    free(complete);
    ks_free(&text);
    return header;
}

void sam_text_open(struct sam_text *text, samFile *file)
{
    *text = (struct sam_text){.file = file, .first_line = (uint64_t)file->lineno + 1};
}

void sam_text_release(struct sam_text *text)
{
    free(text->tail);
    *text = (struct sam_text){0};
}

/* Reads n_bytes, or fewer at the end of the input. Returns -1 with errno set on error. */
static ssize_t read_text(samFile *file, char *to, size_t n_bytes)
{
    errno = 0;
    if (file->format.compression == no_compression) return hread(file->fp.hfile, to, n_bytes);
    ssize_t n = bgzf_read(file->fp.bgzf, to, n_bytes);
    /* With threads htslib may return "end of file" for a damaged block. */
    if (file->fp.bgzf->errcode != 0) n = -1;
    if (n < 0 && errno == 0) errno = EBADMSG;
    return n;
}

/* Keeps what follows the last whole line for the next chunk. */
static void keep_tail(struct sam_text *text, struct sam_chunk *chunk, size_t lines_bytes)
{
    size_t n = chunk->text_bytes - lines_bytes;
    reserve(&text->tail, &text->tail_room, n);
    if (n > 0) memcpy(text->tail, chunk->text + lines_bytes, n);
    text->tail_bytes = n;
    chunk->text_bytes = lines_bytes;
}

/*
 * Adds a newline if the last line of the file lacks one, and returns true if it does. As in htslib,
 * a carriage return at the end of such a line belongs to the line. It is doubled here, because
 * sam_chunk_parse drops one carriage return before a newline.
 */
static bool end_line(struct sam_chunk *chunk)
{
    char last = chunk->text[chunk->text_bytes - 1];
    if (last == '\n') return false;
    if (last == '\r') chunk->text[chunk->text_bytes++] = '\r';
    chunk->text[chunk->text_bytes++] = '\n';
    return true;
}

int sam_text_next(struct sam_text *text, struct sam_chunk *chunk, size_t chunk_bytes)
{
    enum { LINE_END_BYTES = 2 };        /* end_line adds at most this many */
    size_t more = chunk_bytes + LINE_END_BYTES;
    reserve(&chunk->text, &chunk->text_room, text->tail_bytes + more);
    if (text->tail_bytes > 0) memcpy(chunk->text, text->tail, text->tail_bytes);
    size_t searched = 0;
    chunk->first_line = text->first_line;
    chunk->is_cut = false;
    chunk->text_bytes = text->tail_bytes;
    text->tail_bytes = 0;
    while (!text->ended) {
        reserve(&chunk->text, &chunk->text_room, chunk->text_bytes + more);
        ssize_t n = read_text(text->file, chunk->text + chunk->text_bytes, chunk_bytes);
        if (n < 0) return -1;
        text->ended = (size_t)n < chunk_bytes;
        chunk->text_bytes += (size_t)n;
        const char *last = memrchr(chunk->text + searched, '\n', chunk->text_bytes - searched);
        if (last && !text->ended) {
            keep_tail(text, chunk, (size_t)(last + 1 - chunk->text));
            return 1;
        }
        searched = chunk->text_bytes;
    }
    if (chunk->text_bytes == 0) return 0;
    chunk->is_cut = end_line(chunk);
    return 1;
}

/* ---- as a source of the reader ---- */

struct text_source {
    struct reader_source base;  /* must be the first member */
    struct sam_text text;
    struct sam_filter filter;
};

static int next_lines(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                      size_t span_bytes, size_t room)
{
    struct text_source *s = (struct text_source *)source;
    const struct reader_file *file = source->file;
    struct sam_chunk *chunk = &piece->lines;
    (void)raw;
    (void)room;
    chunk->long_positions = file->long_positions;
    chunk->filter = s->filter.filter ? &s->filter : NULL;
    int r = sam_text_next(&s->text, chunk, span_bytes);
    if (r > 0) {
        source->is_cut = chunk->is_cut;
        if (file->is_quiet) chunk->is_cut = false;
        return BAM_READER_PIECE;
    }
    if (r == 0) {
        if (file->is_cut && !file->is_quiet)
            diag_warning("'%s' has no newline at its end: it is probably truncated, within line "
                         "%" PRIu64 " of its header", file->name, (uint64_t)file->hts->lineno);
        return BAM_READER_END;
    }
    diag_error("cannot read '%s': %s", file->name,
               errno == EBADMSG ? "it is truncated or damaged" : strerror(errno));
    return BAM_READER_ERROR;
}

/* For compressed text the offset is not known, because htslib's threads read ahead. */
static uint64_t text_offset(const struct reader_source *source)
{
    const samFile *file = source->file->hts;
    return file->is_bgzf ? 0 : (uint64_t)htell(file->fp.hfile);
}

static void close_source(struct reader_source *source)
{
    struct text_source *s = (struct text_source *)source;
    sam_text_release(&s->text);
    (void)pthread_mutex_destroy(&s->filter.lock);
    free(s);
}

struct reader_source *sam_text_open_source(const struct reader_file *file)
{
    static const struct source_kind kind = {
        .is_text = true, .needs_header = true, .next = next_lines, .offset = text_offset,
        .close = close_source};
    struct text_source *s = xcalloc(1, sizeof *s);
    s->base = (struct reader_source){.kind = &kind, .file = file};
    s->filter = (struct sam_filter){file->hts->filter, PTHREAD_MUTEX_INITIALIZER};
    sam_text_open(&s->text, file->hts);
    return &s->base;
}
