/*
 * record_source.c -- see record_source.h.
 *
 * One record is read ahead, because only its size tells whether it fits into the piece.
 */
#include "input/record_source.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/bgzf_block.h"
#include "input/input_error.h"
#include "input/sam_text.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/cram.h>
#include <htslib/hfile.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct record_source {
    struct reader_source base;  /* must be the first member */
    /* Reads the next record into `raw`. Returns a code of reader_source.h. */
    int (*read_next)(struct record_source *source);
    bam1_t *record;             /* as htslib decodes it */
    uint8_t *raw;               /* the record that was read last */
    size_t raw_room;
    bool is_waiting;            /* raw was not handed out yet */
    bool has_ended;             /* htslib must not be asked for more */
    int64_t inflated_bytes;     /* of FASTQ or FASTA, before the last record */
    struct sam_text text;       /* SAM, and its lines that were read last */
    struct sam_chunk lines;
    uint64_t n_lines;           /* before these */
    size_t lines_at;            /* so much of their records was handed out */
    uint64_t n_records;         /* read so far */
};

static struct record_source *of(struct reader_source *source)
{
    return (struct record_source *)source;
}

bool record_source_bgzf_failed(const samFile *file)
{
    const htsFormat *format = &file->format;
    bool has_bgzf = format->format == bam || (format->format != cram && file->is_bgzf);
    return has_bgzf && file->fp.bgzf->errcode != 0;
}

/* True if a second CRAM begins where htslib has failed: it has read the magic and the name of the
   file as the header of a container. */
static bool is_second_cram(const samFile *file)
{
    enum { OWN_MAGIC_BYTES = 26, MOST_HEADER_BYTES = 1024 };
    char bytes[MOST_HEADER_BYTES];
    if (file->format.format != cram) return false;
    hFILE *in = cram_fd_get_fp(file->fp.cram);
    off_t at = htell(in) - MOST_HEADER_BYTES;
    if (hseek(in, at > OWN_MAGIC_BYTES ? at : OWN_MAGIC_BYTES, SEEK_SET) < 0) return false;
    ssize_t n = hread(in, bytes, sizeof bytes);
    for (ssize_t i = 0; i + 4 <= n; i++)
        if (memcmp(bytes + i, "CRAM", 4) == 0) return true;
    return false;
}

/* Prints "after record N": htslib decodes ahead and reports an error before it returns the last
   sound records, so the number of the bad record is not known. */
static int error_after_record(const struct record_source *s)
{
    if (is_second_cram(s->base.file->hts)) {
        input_error_joined(s->base.file->name, "CRAM", "record", s->n_records);
        return BAM_READER_ERROR;
    }
    diag_error("cannot read '%s' after record %" PRIu64 ": it is truncated or damaged",
               s->base.file->name, s->n_records);
    return BAM_READER_ERROR;
}

/* ---- the end of FASTQ and FASTA ---- */

static bool is_sequences(const samFile *file)
{
    return file->format.format == fastq_format || file->format.format == fasta_format;
}

/* Notes how far htslib has inflated FASTQ or FASTA before it reads a record. */
static void look_ahead(struct record_source *s)
{
    const samFile *hts = s->base.file->hts;
    if (!is_sequences(hts) || hts->format.compression == no_compression) return;
    BGZF *bgzf = hts->fp.bgzf;
    if (bgzf_peek(bgzf) < 0) return;    /* inflates the next block, if this one is used up */
    s->inflated_bytes = bgzf_utell(bgzf) + bgzf->block_length - bgzf->block_offset;
}

/* Reads how many bytes of text a compressed file holds from its end: right for a gzip file of one
   member, and for BGZF if not more than one block came after those that look_ahead saw inflated. Only
   the lowest 32 bits are known. Returns false if the file cannot be sought in. */
static bool find_text_bytes(const struct record_source *s, uint32_t *n_bytes)
{
    const samFile *hts = s->base.file->hts;
    bool is_bgzf = hts->format.compression == bgzf;
    hFILE *file = hts->fp.bgzf->fp;
    uint8_t size[4];            /* of the last block that is not empty, or of the member */
    off_t at = (off_t)sizeof size + (is_bgzf ? BGZF_END_BYTES : 0);
    if (hseek(file, -at, SEEK_END) < 0 || hread(file, size, sizeof size) != sizeof size) {
        hclearerr(file);        /* else closing it fails, and htslib leaks what it has */
        return false;
    }
    *n_bytes = get_u32(size) + (is_bgzf ? (uint32_t)s->inflated_bytes : 0);
    return true;
}

/* True if compressed text, of which htslib has read all, lacks a newline at its end: then htslib
   counts one more byte than there is. If the last block was inflated before the last record, so many
   bytes there are; but what came after it may have been the newline alone. */
static bool compressed_lacks_newline(const struct record_source *s)
{
    int64_t n_counted = bgzf_utell(s->base.file->hts->fp.bgzf);
    uint32_t n_bytes;
    if (n_counted <= s->inflated_bytes) return false;
    if (find_text_bytes(s, &n_bytes) && (uint32_t)n_counted - n_bytes <= 1)
        return (uint32_t)n_counted != n_bytes;
    return n_counted == s->inflated_bytes + 1;
}

/* The same for all FASTQ and FASTA. A pipe that is not compressed cannot be looked at. */
static bool lacks_newline(const struct record_source *s)
{
    const samFile *hts = s->base.file->hts;
    char last;
    if (!is_sequences(hts)) return false;
    if (hts->format.compression != no_compression) return compressed_lacks_newline(s);
    return hseek(hts->fp.hfile, -1, SEEK_END) >= 0 && hread(hts->fp.hfile, &last, 1) == 1 &&
           last != '\n';
}

/* ---- records that htslib decodes ---- */

/* Ends the source. The last record of the file may be one that a filter has dropped. */
static int end_records(struct record_source *s)
{
    const struct reader_file *file = s->base.file;
    s->has_ended = true;
    s->base.is_cut = lacks_newline(s);
    if (s->base.is_cut && !file->is_quiet && s->record->l_data > 0)
        input_warn_cut(file->name, bam_get_qname(s->record));
    return BAM_READER_END;
}

/* Makes htslib decode a record, and packs it into `raw`. */
static int decode_next(struct record_source *s)
{
    const struct reader_file *file = s->base.file;
    if (s->has_ended) return BAM_READER_END;
    look_ahead(s);
    int r = sam_read1(file->hts, file->header, s->record);
    /* After a container that cannot be read htslib 1.16 says "end" first, and "error" if asked again. */
    if (r == -1 && file->hts->format.format == cram)
        r = sam_read1(file->hts, file->header, s->record);
    if (r < -1 || (r == -1 && record_source_bgzf_failed(file->hts))) return error_after_record(s);
    if (r == -1) return end_records(s);
    const char *problem =
        bam_record_put(s->record, file->long_positions, &s->raw, &s->raw_room, 0);
    if (!problem) return BAM_READER_PIECE;
    input_error_record(file->name, s->n_records + 1, bam_get_qname(s->record), problem);
    return BAM_READER_ERROR;
}

/* ---- lines that are filtered ---- */

/* Reads and parses the next lines of SAM. */
static int fetch_lines(struct record_source *s)
{
    enum { LINES_BYTES = 64 << 10 };
    s->n_lines += s->lines.n_records + s->lines.n_dropped;
    s->lines.raw_bytes = s->lines_at = 0;
    int r = sam_text_fetch(&s->text, &s->base, &s->lines, LINES_BYTES);
    if (r == BAM_READER_PIECE) sam_chunk_parse(&s->lines, s->base.file->header, s->record);
    return r;
}

/* Reads the next record that the filter lets through. */
static int filter_next(struct record_source *s)
{
    struct sam_chunk *lines = &s->lines;
    while (s->lines_at == lines->raw_bytes) {
        bool is_bad = lines->problem != NULL;
        uint64_t n = s->n_lines + lines->n_records + lines->n_dropped;
        if ((is_bad || lines->is_cut) && input_check_lines(s->base.file->name, n, lines) < 0)
            return BAM_READER_ERROR;
        int r = fetch_lines(s);
        if (r != BAM_READER_PIECE) return r;
    }
    size_t n_bytes = bam_record_bytes(lines->raw + s->lines_at);
    xgrow(&s->raw, &s->raw_room, n_bytes, n_bytes / 2, 1);
    memcpy(s->raw, lines->raw + s->lines_at, n_bytes);
    s->lines_at += n_bytes;
    return BAM_READER_PIECE;
}

/* ---- pieces ---- */

/* Reads a record unless one is waiting. Returns a code of reader_source.h. */
static int fetch_record(struct record_source *s)
{
    if (s->is_waiting) return BAM_READER_PIECE;
    int r = s->read_next(s);
    if (r != BAM_READER_PIECE) return r;
    s->n_records++;
    s->is_waiting = true;
    return r;
}

static int next_records(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                        size_t piece_bytes, size_t room)
{
    struct record_source *s = of(source);
    do {
        int r = fetch_record(s);
        source->failed = r == BAM_READER_ERROR;
        if (r != BAM_READER_PIECE) return piece->raw_bytes ? BAM_READER_PIECE : r;
        size_t n_bytes = bam_record_bytes(s->raw);
        if (n_bytes > room - piece->raw_bytes)
            return piece->raw_bytes ? BAM_READER_PIECE : BAM_READER_NO_ROOM;
        memcpy(raw + piece->raw_bytes, s->raw, n_bytes);
        piece->raw_bytes += n_bytes;
        s->is_waiting = false;
    } while (piece->raw_bytes < piece_bytes);
    return BAM_READER_PIECE;
}

static size_t room_needed(const struct reader_source *source)
{
    const struct record_source *s = (const struct record_source *)source;
    return s->is_waiting ? bam_record_bytes(s->raw) : BGZF_MAX_BYTES;
}

static void close_source(struct reader_source *source)
{
    struct record_source *s = of(source);
    bam_destroy1(s->record);
    sam_text_release(&s->text);
    sam_chunk_release(&s->lines);
    free(s->raw);
    free(s);
}

struct reader_source *record_source_open(const struct reader_file *file)
{
    static const struct source_kind kind = {.needs_header = true, .next = next_records,
                                            .room_needed = room_needed, .close = close_source};
    struct record_source *s = xcalloc(1, sizeof *s);
    s->base = (struct reader_source){.kind = &kind, .file = file};
    s->read_next = decode_next;
    s->record = bam_init1();
    xalloc_require(s->record != NULL);
    return &s->base;
}

struct reader_source *record_source_open_lines(const struct reader_file *file)
{
    struct record_source *s = (struct record_source *)record_source_open(file);
    s->read_next = filter_next;
    s->lines.filter = file->hts->filter;
    sam_text_open(&s->text, file->hts);
    return &s->base;
}
