/* sam_text.c -- see reader_source.h. */
#define _GNU_SOURCE             /* memrchr, pipe2 */
#include "input/reader_source.h"

#include "bam/header_text.h"
#include "input/input_error.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A text as a file: a pipe, if it fits into one. htslib opens memory, too, but loads its plug-ins
   and the libraries of curl to do so, which takes as long as a small sort. */
static hFILE *open_text(const char *text, size_t n_bytes)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        bool is_whole = write(ends[1], text, n_bytes) == (ssize_t)n_bytes;
        (void)close(ends[1]);
        hFILE *file = is_whole ? hdopen(ends[0], "r") : NULL;
        if (file) return file;
        (void)close(ends[0]);
    }
    hFILE *file = hopen("mem:", "r:", xmemdup(text, n_bytes), n_bytes);         /* frees the copy */
    xalloc_require(file != NULL);
    return file;
}

/* Lets htslib read a header from memory. Returns NULL if htslib refuses it, or mistakes a read
   whose name begins with @ for FASTQ. */
static sam_hdr_t *parse_header(const char *text, size_t n_bytes)
{
    if (n_bytes == 0) return sam_hdr_init();
    hFILE *bytes = open_text(text, n_bytes);
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
    if (!header) input_error_header(name, is_read ? text.s : NULL, true, *is_cut);
    free(complete);
    ks_free(&text);
    return header;
}

/* Reads n_bytes, or fewer at the end of the input. Returns -1 with errno set on error. */
static ssize_t read_text(samFile *file, uint8_t *to, size_t n_bytes)
{
    errno = 0;
    if (file->format.compression == no_compression) return hread(file->fp.hfile, to, n_bytes);
    ssize_t n = bgzf_read(file->fp.bgzf, to, n_bytes);
    /* With threads htslib may return "end of file" for a damaged block. */
    if (file->fp.bgzf->errcode != 0) n = -1;
    if (n < 0 && errno == 0) errno = EBADMSG;
    return n;
}

/*
 * Adds a newline if the last line of the file lacks one, and returns true if it does. As in htslib,
 * a carriage return at the end of such a line belongs to the line. It is doubled here, because
 * sam_chunk_parse drops one carriage return before a newline.
 */
static bool end_line(struct record_span *span)
{
    uint8_t last = span->packed[span->packed_bytes - 1];
    if (last == '\n') return false;
    if (last == '\r') span->packed[span->packed_bytes++] = '\r';
    span->packed[span->packed_bytes++] = '\n';
    return true;
}

int sam_text_next(struct bam_reader *reader, struct record_span *span)
{
    enum { LINE_END_BYTES = 2 };        /* end_line adds at most this many */
    size_t n_wanted = reader->span_bytes / 2 + 1;
    const uint8_t *newline = NULL;
    span->lines.first_line = reader->first_line;
    span->packed_bytes = reader->n_ahead;
    xgrow(&span->packed, &span->packed_room, reader->n_ahead, 0, 1);
    (void)copy_bytes(span->packed, reader->ahead, reader->n_ahead);
    while (!reader->has_ended && !newline) {
        size_t room = span->packed_bytes + n_wanted + LINE_END_BYTES;
        xgrow(&span->packed, &span->packed_room, room, room / 4, 1);
        uint8_t *text = span->packed + span->packed_bytes;
        ssize_t n = read_text(reader->hts, text, n_wanted);
        if (n < 0) {
            diag_error("cannot read '%s': %s", reader->name,
                       errno == EBADMSG ? "it is truncated or damaged" : strerror(errno));
            return BAM_READER_ERROR;
        }
        span->packed_bytes += (size_t)n;
        reader->has_ended = (size_t)n < n_wanted;
        newline = memrchr(text, '\n', (size_t)n);
    }
    /* For compressed text the offset is not known, because htslib's threads read ahead. */
    if (!reader->hts->is_bgzf) reader->file_offset = (uint64_t)htell(reader->hts->fp.hfile);
    reader->n_ahead = 0;
    if (!reader->has_ended) {           /* what follows the last whole line is for the next piece */
        size_t n_lines_bytes = (size_t)(newline + 1 - span->packed);
        reader->n_ahead = span->packed_bytes - n_lines_bytes;
        xgrow(&reader->ahead, &reader->ahead_room, reader->n_ahead, reader->n_ahead / 4, 1);
        (void)copy_bytes(reader->ahead, newline + 1, reader->n_ahead);
        span->packed_bytes = n_lines_bytes;
    } else if (span->packed_bytes > 0) {
        reader->is_cut = end_line(span);
        span->lines.is_cut = reader->is_cut && !reader->is_quiet;
    } else {
        if (reader->header_is_cut && !reader->is_quiet)
            diag_warning("'%s' has no newline at its end: it is probably truncated, within line "
                         "%" PRIu64 " of its header", reader->name, reader->first_line - 1);
        return BAM_READER_END;
    }
    return BAM_READER_PIECE;
}
