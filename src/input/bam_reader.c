/*
 * bam_reader.c -- see bam_reader.h.
 *
 * Sources behind one interface:
 *   - BGZF BAM: htslib opens the file and reads the header; from then on the compressed blocks are
 *     taken from its hFILE as they are. The footer of a block says how much it inflates to, so the
 *     place of every byte is known before anything is inflated.
 *   - other BAM (gzip, uncompressed): bgzf_read.
 *   - SAM, compressed or not: lines for sam_text.h.
 *   - CRAM, FASTQ, and all that htslib is to filter: sam_read1, packed into raw form.
 *   - BAM whose read groups or programs are renamed: bgzf_read, record by record, since records
 *     change their size.
 */
#include "input/bam_reader.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/bam_long.h"
#include "bam/header_text.h"
#include "pipeline/input_damage.h"
#include "util/diag.h"
#include "util/grow.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>
#include <htslib/hts_log.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* hFILE asks the kernel for so much at a time; its default of 32 KiB costs 4 times the calls. */
enum { READ_BYTES = 128 << 10 };

enum source { SOURCE_BGZF, SOURCE_PLAIN, SOURCE_TEXT, SOURCE_RECORDS, SOURCE_RENAMED };

struct bam_reader {
    const char *name;
    samFile *file;
    sam_hdr_t *header;
    enum source source;
    /* SOURCE_BGZF */
    bool check_end;             /* nobody looked for the EOF block yet: the input is a pipe */
    bool last_block_empty;
    uint64_t file_offset;
    bool long_positions;        /* some reference is longer than 2^31 - 1 */
    /* SOURCE_TEXT */
    struct sam_text text;
    /* SOURCE_RECORDS, SOURCE_RENAMED */
    bam1_t *record;             /* SOURCE_RECORDS: as htslib gives it */
    uint8_t *raw, *renamed;     /* the record that comes next, and as it will be named */
    size_t raw_room, renamed_room;
    const uint8_t *waiting;     /* one of the two, when it was read and not handed out, or NULL */
    uint64_t n_records;
    uint64_t record_offset;     /* SOURCE_RENAMED: virtual offset behind the record in raw */
    bool failed;                /* there was a message, and a piece of what came before */
    bool io_failed;             /* the file could not be read, which says nothing of its content */
    /* names that change, or NULL */
    const struct header_union *renames;
    size_t input;               /* number in the union */
};

static bool is_alignment_file(const htsFormat *format)
{
    /* The empty file gets as far as the header, for the message that users of samtools know. */
    return format->category == sequence_data || format->format == empty_format ||
           format->format == unknown_format;
}

static enum source choose_source(samFile *file)
{
    if (file->filter) return SOURCE_RECORDS;
    if (file->format.format == sam) return SOURCE_TEXT;
    if (file->format.format != bam) return SOURCE_RECORDS;
    return bgzf_compression(file->fp.bgzf) == 2 ? SOURCE_BGZF : SOURCE_PLAIN;
}

/* With threads htslib may take a damaged block for the end of the file; this tells. */
static bool bgzf_failed(const samFile *file)
{
    const htsFormat *format = &file->format;
    bool has_bgzf = format->format == bam || (format->format != cram && file->is_bgzf);
    return has_bgzf && file->fp.bgzf->errcode != 0;
}

/* Lets htslib decode in the pool what our own workers do not. */
static int use_pool(samFile *file, htsThreadPool *pool)
{
    if (!pool) return 0;
    const htsFormat *format = &file->format;
    bool by_records = file->filter || (format->format != bam && format->format != sam);
    if (format->format == bam && !by_records) return 0;
    if (format->format != sam && by_records) return hts_set_opt(file, HTS_OPT_THREAD_POOL, pool);
    /* For the file this would start htslib's SAM parser, too; see sam_text.h. */
    return format->compression == bgzf ? bgzf_thread_pool(file->fp.bgzf, pool->pool, pool->qsize)
                                       : 0;
}

/*
 * Looks for the marker at the end of a file that can be sought; else BAM's last block will be
 * looked at when it comes. Who fails to read there does not return to where it was: reading on
 * would find the end of the file at once.
 */
static int look_at_end(struct bam_reader *reader)
{
    enum { MISSING = 0, NO_SEEK = 2 };
    const htsFormat *format = &reader->file->format;
    if (format->format != bam && format->format != cram) return 0;
    errno = 0;
    int end = hts_check_EOF(reader->file);
    if (end < 0 && errno != EINVAL) {   /* that is a file too short for the marker */
        diag_error("cannot read the end of '%s': %s", reader->name,
                   errno ? strerror(errno) : "htslib reports an error");
        return -1;
    }
    if (format->format == bam)  /* the header's reader has warned */
        reader->check_end = end == NO_SEEK;
    else if (end == MISSING && hts_get_log_level() >= HTS_LOG_WARNING)
        diag_warning("'%s' ends without an EOF marker; it is probably truncated", reader->name);
    return 0;
}

int bam_reader_check_reference(const htsFormat *options)
{
    for (const hts_opt *option = options->specific; option; option = option->next) {
        if (option->opt != CRAM_OPT_REFERENCE || strstr(option->val.s, "://") ||
            access(option->val.s, R_OK) == 0)
            continue;
        diag_error("cannot read the reference '%s': %s", option->val.s, strerror(errno));
        return -1;
    }
    return 0;
}

/* htslib 1.16 takes @SQ lines that 1.24 refuses, and with them any length. */
static int check_lengths(struct bam_reader *reader)
{
    enum { MOST_SHOWN = 100 };
    const char *text = header_whole_text(reader->header);
    if (!text) {
        diag_no_memory();
        return -1;
    }
    struct text line;
    const char *problem = header_find_bad_length(text, &line);
    if (!problem) return 0;
    diag_error("the header of '%s' is damaged: the line '%.*s' %s", reader->name,
               line.n < MOST_SHOWN ? (int)line.n : MOST_SHOWN, line.at, problem);
    return -1;
}

struct bam_reader *bam_reader_open(const char *path, const htsFormat *options,
                                   htsThreadPool *pool)
{
    struct bam_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        diag_no_memory();
        return NULL;
    }
    reader->name = strcmp(path, "-") == 0 ? "standard input" : path;
    errno = 0;
    reader->file = sam_open_format(path, "r", options);
    if (!reader->file) {
        int saved = errno;
        if (bam_reader_check_reference(options) < 0) goto err;
        errno = saved;
        diag_error("cannot open '%s': %s", reader->name,
                   errno ? strerror(errno) : "it is damaged or not an alignment file");
        goto err;
    }
    if (!is_alignment_file(hts_get_format(reader->file))) {
        diag_error("'%s' is not an alignment file; rocksort reads SAM, BAM, CRAM and FASTQ",
                   reader->name);
        goto err;
    }
    /* Of an empty file htslib would say that it cannot. */
    if (hts_get_format(reader->file)->format != empty_format &&
        hts_set_opt(reader->file, HTS_OPT_BLOCK_SIZE, READ_BYTES) < 0) {
        diag_error("cannot read '%s': there is no memory for a buffer; give less with -m",
                   reader->name);
        goto err;
    }
    if (use_pool(reader->file, pool) < 0) {
        diag_error("cannot read '%s' with threads: htslib reports an error; give fewer with -@",
                   reader->name);
        goto err;
    }
    reader->header = sam_hdr_read(reader->file);
    if (!reader->header || bgzf_failed(reader->file)) {
        diag_error("failed to read header from '%s': it is empty, damaged or not an alignment file",
                   reader->name);
        goto err;
    }
    if (check_lengths(reader) < 0) goto err;
    if (look_at_end(reader) < 0) goto err;
    reader->source = choose_source(reader->file);
    if (reader->source == SOURCE_RECORDS) {
        reader->record = bam_init1();
        if (!reader->record) {
            diag_no_memory();
            goto err;
        }
    } else if (reader->source == SOURCE_TEXT) {
        if (sam_text_open(&reader->text, reader->file, reader->header) < 0) {
            if (errno == ENOMEM)
                diag_no_memory();
            else
                diag_error("the header of '%s' is damaged: htslib cannot take it apart, see its "
                           "words above", reader->name);
            goto err;
        }
    }
    /* Only now: the header of SAM has been taken apart, which may change what it is. */
    reader->long_positions = bam_header_long_reference(reader->header) >= 0;
    return reader;
err:
    bam_reader_close(reader);
    return NULL;
}

int bam_reader_rename(struct bam_reader *reader, const struct header_union *names, size_t input,
                      htsThreadPool *pool)
{
    reader->renames = names;
    reader->input = input;
    if (reader->source != SOURCE_BGZF && reader->source != SOURCE_PLAIN) return 0;
    BGZF *bgzf = reader->file->fp.bgzf;
    if (reader->source == SOURCE_BGZF && bgzf_thread_pool(bgzf, pool->pool, pool->qsize) < 0) {
        diag_error("cannot read '%s' with threads: htslib reports an error; give fewer with -@",
                   reader->name);
        return -1;
    }
    reader->source = SOURCE_RENAMED;
    return 0;
}

bool bam_reader_can_seek(const struct bam_reader *reader)
{
    return reader->source == SOURCE_BGZF || (reader->source == SOURCE_RENAMED &&
                                             bgzf_compression(reader->file->fp.bgzf) == 2);
}

int bam_reader_seek(struct bam_reader *reader, uint64_t offset, uint64_t n_records)
{
    BGZF *bgzf = reader->file->fp.bgzf;
    reader->n_records = n_records;
    errno = 0;
    int r = bgzf_seek(bgzf, (int64_t)offset, SEEK_SET) < 0 ? -1 : 0;
    /* What is left of a block is taken as what follows the header in its block. */
    if (r == 0 && reader->source == SOURCE_BGZF && (offset & 0xffff) != 0)
        r = bgzf_read_block(bgzf);
    if (r == 0) return 0;
    diag_error("cannot read '%s' from byte %" PRIu64 " on: %s", reader->name, offset >> 16,
               errno ? strerror(errno) : "it is truncated or damaged");
    return -1;
}

sam_hdr_t *bam_reader_header(struct bam_reader *reader)
{
    return reader->header;
}

bool bam_reader_is_text(const struct bam_reader *reader)
{
    return reader->source == SOURCE_TEXT;
}

const htsFormat *bam_reader_format(const struct bam_reader *reader)
{
    return hts_get_format(reader->file);
}

const char *bam_reader_name(const struct bam_reader *reader)
{
    return reader->name;
}

size_t bam_reader_room_needed(const struct bam_reader *reader)
{
    return reader->waiting ? bam_record_bytes(reader->waiting) : BGZF_MAX_BYTES;
}

static int read_error(struct bam_reader *reader)
{
    reader->io_failed = errno != 0;
    diag_error("cannot read '%s' near byte %" PRIu64 ": %s", reader->name, reader->file_offset,
               errno ? strerror(errno) : "it is damaged");
    return BAM_READER_ERROR;
}

/* Makes room for n_bytes in a buffer. Returns 0, or -1 after a message. */
static int reserve(uint8_t **buffer, size_t *room, size_t n_bytes)
{
    if (grow_array(buffer, room, n_bytes, n_bytes / 2, 1) == 0) return 0;
    diag_no_memory();
    return -1;
}

/* Appends the next BGZF block to the piece. Returns one of the reader's codes. */
static int append_block(struct bam_reader *reader, struct bam_piece *piece)
{
    if (reserve(&piece->compressed, &piece->compressed_room,
                piece->compressed_bytes + BGZF_MAX_BYTES) < 0)
        return BAM_READER_ERROR;
    hFILE *in = reader->file->fp.bgzf->fp;
    uint8_t *block = piece->compressed + piece->compressed_bytes;
    errno = 0;
    ssize_t n = hread(in, block, BGZF_HEADER_BYTES);
    if (n < 0) return read_error(reader);
    if (n == 0) return BAM_READER_END;
    size_t block_bytes = n == BGZF_HEADER_BYTES ? bgzf_block_bytes(block) : 0;
    if (n == BGZF_HEADER_BYTES && block_bytes == 0) {
        diag_error("'%s' is damaged: no BGZF block at byte %" PRIu64, reader->name,
                   reader->file_offset);
        return BAM_READER_ERROR;
    }
    ssize_t rest = (ssize_t)block_bytes - BGZF_HEADER_BYTES;
    if (n == BGZF_HEADER_BYTES) n = hread(in, block + BGZF_HEADER_BYTES, (size_t)rest);
    if (n < 0) return read_error(reader);
    if (block_bytes == 0 || n != rest) {
        diag_error("'%s' is truncated: it ends within the BGZF block at byte %" PRIu64,
                   reader->name, reader->file_offset);
        return BAM_READER_ERROR;
    }
    uint32_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
    if (raw_bytes > BGZF_MAX_BYTES) {
        diag_error("'%s' is damaged: the BGZF block at byte %" PRIu64 " claims %u bytes",
                   reader->name, reader->file_offset, raw_bytes);
        return BAM_READER_ERROR;
    }
    reader->last_block_empty = raw_bytes == 0;
    piece->compressed_bytes += block_bytes;
    piece->raw_bytes += raw_bytes;
    reader->file_offset += block_bytes;
    return BAM_READER_PIECE;
}

static int next_bgzf(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                     size_t piece_bytes, size_t room)
{
    if (room < BGZF_MAX_BYTES) return BAM_READER_NO_ROOM;
    BGZF *bgzf = reader->file->fp.bgzf;
    if (bgzf->block_offset < bgzf->block_length) {      /* what follows the header in its block */
        piece->file_offset = (uint64_t)bgzf->block_address;
        piece->block_offset = (uint32_t)bgzf->block_offset;
        ssize_t n = bgzf_read(bgzf, raw, (size_t)(bgzf->block_length - bgzf->block_offset));
        if (n < 0) return read_error(reader);
        piece->raw_bytes = (size_t)n;
        piece->end_offset = (uint64_t)htell(bgzf->fp) << 16;
        return BAM_READER_PIECE;
    }
    if (reader->file_offset == 0) reader->file_offset = (uint64_t)htell(bgzf->fp);
    if (piece_bytes > room) piece_bytes = room;
    piece->file_offset = reader->file_offset;
    piece->block_offset = 0;
    int r = BAM_READER_PIECE;
    do {
        r = append_block(reader, piece);
    } while (r == BAM_READER_PIECE && piece->raw_bytes + BGZF_MAX_BYTES <= piece_bytes &&
             piece->compressed_bytes < piece_bytes);
    reader->failed = r == BAM_READER_ERROR;
    if (reader->failed && piece->compressed_bytes == 0) return r;
    if (r == BAM_READER_END && piece->compressed_bytes == 0) {
        if (reader->check_end && !reader->last_block_empty)
            diag_warning("'%s' ends without an EOF marker; it is probably truncated", reader->name);
        return r;
    }
    piece->end_offset = reader->file_offset << 16;
    return BAM_READER_PIECE;
}

static int next_plain(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                      size_t piece_bytes, size_t room)
{
    if (room < BGZF_MAX_BYTES) return BAM_READER_NO_ROOM;
    errno = 0;
    ssize_t n = bgzf_read(reader->file->fp.bgzf, raw, piece_bytes < room ? piece_bytes : room);
    if (n < 0) return read_error(reader);
    reader->file_offset += (uint64_t)n;
    piece->raw_bytes = (size_t)n;
    return n == 0 ? BAM_READER_END : BAM_READER_PIECE;
}

/* htslib decodes ahead and reports an error before the records in front of it. */
static int error_behind_record(const struct bam_reader *reader)
{
    diag_error("cannot read '%s' after record %" PRIu64 ": it is truncated or damaged",
               reader->name, reader->n_records);
    return BAM_READER_ERROR;
}

/* Reads one record with htslib and packs it into reader->raw. Returns one of the codes. */
static int unpack_next(struct bam_reader *reader)
{
    int r = sam_read1(reader->file, reader->header, reader->record);
    if (r < -1 || (r == -1 && bgzf_failed(reader->file))) return error_behind_record(reader);
    if (r == -1) return BAM_READER_END;
    size_t n_bytes = bam_record_packed_bytes(reader->record);
    bool is_long = n_bytes == 0 && reader->long_positions;
    if (is_long) n_bytes = bam_record_long_bytes(reader->record);
    if (n_bytes == 0) {
        input_damage_record(reader->name, reader->n_records + 1, bam_get_qname(reader->record),
                            "it lies beyond 2^31 or its CIGAR is too long");
        return BAM_READER_ERROR;
    }
    if (reserve(&reader->raw, &reader->raw_room, n_bytes) < 0) return BAM_READER_ERROR;
    if (is_long)
        bam_record_pack_long(reader->record, reader->raw);
    else
        bam_record_pack(reader->record, reader->raw);
    return BAM_READER_PIECE;
}

/* Reads one record of BAM into reader->raw and checks it. Returns one of the codes. */
static int read_next(struct bam_reader *reader)
{
    BGZF *bgzf = reader->file->fp.bgzf;
    uint8_t size[4];
    errno = 0;
    ssize_t n = bgzf_read(bgzf, size, sizeof size);
    if (n == 0 && !bgzf_failed(reader->file)) return BAM_READER_END;
    size_t n_bytes = n == sizeof size ? bam_record_bytes(size) : 0;
    const char *problem = n_bytes < BAM_RECORD_FIXED_BYTES || n_bytes > INT32_MAX
                              ? "it is truncated or claims an impossible size" : NULL;
    if (!problem) {
        if (reserve(&reader->raw, &reader->raw_room, n_bytes) < 0) return BAM_READER_ERROR;
        memcpy(reader->raw, size, sizeof size);
        n = bgzf_read(bgzf, reader->raw + sizeof size, n_bytes - sizeof size);
        problem = n == (ssize_t)(n_bytes - sizeof size)
                      ? bam_record_check(reader->raw, sam_hdr_nref(reader->header))
                      : "it is truncated";
    }
    reader->record_offset = (uint64_t)bgzf_tell(bgzf);
    if (!problem) return BAM_READER_PIECE;
    if (bgzf_failed(reader->file)) return error_behind_record(reader);
    input_damage_record(reader->name, reader->n_records + 1, NULL, problem);
    return BAM_READER_ERROR;
}

/* Lets reader->waiting be the next record. Returns one of the codes. */
static int fetch_record(struct bam_reader *reader)
{
    if (reader->waiting) return BAM_READER_PIECE;
    int r = reader->source == SOURCE_RENAMED ? read_next(reader) : unpack_next(reader);
    if (r != BAM_READER_PIECE) return r;
    reader->n_records++;
    reader->waiting = reader->raw;
    if (!reader->renames) return r;
    size_t bound = header_union_rewrite_bound(reader->renames, reader->input, reader->raw);
    if (reserve(&reader->renamed, &reader->renamed_room, bound) < 0) return BAM_READER_ERROR;
    (void)header_union_rewrite(reader->renames, reader->input, reader->raw, reader->renamed);
    reader->waiting = reader->renamed;
    return r;
}

static int next_lines(struct bam_reader *reader, struct bam_piece *piece, size_t piece_bytes)
{
    /* An unfinished block at the end of a compressed file is an error in bgzf_read. */
    piece->lines.long_positions = reader->long_positions;
    piece->lines.renames = reader->renames;
    piece->lines.input = reader->input;
    switch (sam_text_next(&reader->text, &piece->lines, piece_bytes)) {
    case 1: return BAM_READER_PIECE;
    case 0: return BAM_READER_END;
    default:
        diag_error("cannot read '%s': %s", reader->name,
                   errno == EBADMSG ? "it is truncated or damaged" : strerror(errno));
        return BAM_READER_ERROR;
    }
}

static int next_records(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                        size_t piece_bytes, size_t room)
{
    for (;;) {
        int r = fetch_record(reader);
        reader->failed = r == BAM_READER_ERROR;
        if (r != BAM_READER_PIECE) return piece->raw_bytes ? BAM_READER_PIECE : r;
        size_t size = bam_record_bytes(reader->waiting);
        if (size > room - piece->raw_bytes)
            return piece->raw_bytes ? BAM_READER_PIECE : BAM_READER_NO_ROOM;
        memcpy(raw + piece->raw_bytes, reader->waiting, size);
        reader->waiting = NULL;
        if (reader->source == SOURCE_RENAMED) piece->end_offset = reader->record_offset;
        piece->raw_bytes += size;
        if (piece->raw_bytes >= piece_bytes) return BAM_READER_PIECE;
    }
}

int bam_reader_next(struct bam_reader *reader, struct bam_piece *piece, uint8_t *raw,
                    size_t piece_bytes, size_t room)
{
    piece->compressed_bytes = 0;
    piece->raw_bytes = 0;
    piece->end_offset = INPUT_OFFSET_UNKNOWN;
    if (reader->failed) return BAM_READER_ERROR;
    switch (reader->source) {
    case SOURCE_BGZF: return next_bgzf(reader, piece, raw, piece_bytes, room);
    case SOURCE_PLAIN: return next_plain(reader, piece, raw, piece_bytes, room);
    case SOURCE_TEXT: return next_lines(reader, piece, piece_bytes);
    default: return next_records(reader, piece, raw, piece_bytes, room);
    }
}

bool bam_reader_io_failed(const struct bam_reader *reader)
{
    return reader->io_failed;
}

uint64_t bam_reader_offset(const struct bam_reader *reader)
{
    switch (reader->source) {
    case SOURCE_BGZF:
    case SOURCE_PLAIN: return reader->file_offset;
    /* Of compressed text htslib's threads are somewhere ahead. */
    case SOURCE_TEXT: return reader->file->is_bgzf ? 0 : (uint64_t)htell(reader->file->fp.hfile);
    default: return 0;
    }
}

int bam_piece_inflate(struct bam_piece *piece, struct bgzf_coder *coder, uint8_t *raw)
{
    const uint8_t *block = piece->compressed, *end = block + piece->compressed_bytes;
    while (block < end) {
        size_t block_bytes = bgzf_block_bytes(block);
        if (bgzf_block_inflate(coder, block, block_bytes, raw) < 0) return -1;
        raw += bgzf_block_raw_bytes(block, block_bytes);
        block += block_bytes;
    }
    return 0;
}

uint64_t bam_piece_offset(const struct bam_piece *piece, size_t raw_at)
{
    if (raw_at == piece->raw_bytes || piece->end_offset == INPUT_OFFSET_UNKNOWN)
        return piece->end_offset;
    if (piece->compressed_bytes == 0)
        return piece->file_offset << 16 | (piece->block_offset + (uint32_t)raw_at);
    const uint8_t *block = piece->compressed;
    for (;;) {
        size_t block_bytes = bgzf_block_bytes(block);
        uint32_t raw_bytes = bgzf_block_raw_bytes(block, block_bytes);
        if (raw_at < raw_bytes)
            return (piece->file_offset + (uint64_t)(block - piece->compressed)) << 16 | raw_at;
        raw_at -= raw_bytes;
        block += block_bytes;
    }
}

void bam_piece_release(struct bam_piece *piece)
{
    free(piece->compressed);
    sam_chunk_release(&piece->lines);
    *piece = (struct bam_piece){0};
}

void bam_reader_close(struct bam_reader *reader)
{
    if (!reader) return;
    bam_destroy1(reader->record);
    sam_text_release(&reader->text);
    free(reader->raw);
    free(reader->renamed);
    sam_hdr_destroy(reader->header);
    /* All input was read and checked, or an error was reported: closing cannot add to that. */
    if (reader->file) (void)sam_close(reader->file);
    free(reader);
}
