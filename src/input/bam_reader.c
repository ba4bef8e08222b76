/*
 * bam_reader.c -- see bam_reader.h.
 *
 * Opens a file, checks its header and its end, and chooses the source that reads the records.
 */
#include "input/bam_reader.h"

#include "bam/bam_long.h"
#include "bam/header_text.h"
#include "input/header_references.h"
#include "input/input_error.h"
#include "input/input_file.h"
#include "input/reader_source.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>
#include <htslib/hts_log.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* htslib reads this much in one system call; its default of 32 KiB needs 4 times as many calls. */
enum { READ_BYTES = 128 << 10 };

/* ---- opening ---- */

static bool is_alignment_file(const htsFormat *format)
{
    /* Empty and unknown files are refused later, when the header is read, with messages that users
       of samtools know. */
    return format->category == sequence_data || format->format == empty_format ||
           format->format == unknown_format;
}

/* True for BAM that htslib does not filter: its bytes are used unchanged. */
static bool is_whole_bam(const samFile *hts)
{
    return hts->format.format == bam && !hts->filter;
}

static bool is_text(const samFile *hts)
{
    return hts->format.format == sam;
}

/* Lets htslib use the pool for input that our own workers do not inflate. */
static int use_pool(samFile *hts, htsThreadPool *pool)
{
    if (!pool || is_whole_bam(hts)) return 0;
    if (hts->format.format != sam) return hts_set_opt(hts, HTS_OPT_THREAD_POOL, pool);
    /* hts_set_opt would start htslib's SAM parser, too; see reader_source.h. */
    return hts->format.compression == bgzf
               ? bgzf_thread_pool(hts->fp.bgzf, pool->pool, pool->qsize) : 0;
}

/*
 * Checks the EOF marker, unless the file is a pipe. (In BAM from a pipe the last block is checked
 * when it has been read.) A failed read is an error here: the file position is lost, so the next
 * read would report the end of the file.
 */
static int look_at_end(struct bam_reader *reader)
{
    enum { MISSING = 0, NO_SEEK = 2 };
    const htsFormat *format = &reader->hts->format;
    if (format->format != bam && format->format != cram) return 0;
    errno = 0;
    int end = hts_check_EOF(reader->hts);
    if (end < 0 && errno != EINVAL) {   /* EINVAL: the file is too short for a marker */
        diag_error("cannot read the end of '%s': %s", reader->name,
                   errno ? strerror(errno) : "htslib reports an error");
        return -1;
    }
    reader->is_cut = end == MISSING;
    if (format->format == bam)          /* if the marker is missing, htslib has warned already */
        reader->end_is_unseen = end == NO_SEEK;
    else if (end == MISSING && hts_get_log_level() >= HTS_LOG_WARNING)
        input_warn_no_eof_marker(reader->name);
    return 0;
}

/* Checks the beginning of a file. Returns 0, or -1 after a message. */
static int check_fasta(const char *path)
{
    enum { GZIP = 1 };
    struct stat st;
    errno = 0;
    BGZF *bgzf = stat(path, &st) == 0 && access(path, R_OK) == 0 ? bgzf_open(path, "r") : NULL;
    if (!bgzf) {
        diag_error("cannot read the reference '%s': %s%s", path,
                   errno ? strerror(errno) : "it is damaged", diag_advice(errno));
        return -1;
    }
    int c, r = -1;
    do c = bgzf_getc(bgzf);
    while (c == '\n' || c == '\r');
    if (c != '>')
        diag_error("'%s' is not a FASTA file: it does not begin with '>'", path);
    else if (bgzf_compression(bgzf) == GZIP)
        diag_error("the reference '%s' is compressed with gzip, in which htslib cannot find a "
                   "sequence: compress it with bgzip", path);
    else
        r = 0;
    (void)bgzf_close(bgzf);     /* nothing was written */
    return r;
}

/* Reads the beginning of a URL, or all of it. Returns 0, or -1 after a message. */
static int try_url(const char *url, bool whole)
{
    char bytes[4096];
    errno = 0;
    hFILE *file = hopen(url, "r");
    ssize_t n = file ? hread(file, bytes, sizeof bytes) : -1;
    while (whole && n > 0) n = hread(file, bytes, sizeof bytes);
    if (n < 0)
        diag_error("cannot read '%s', which the reference needs: %s", url,
                   errno ? strerror(errno) : "htslib reports an error");
    if (file) hclose_abruptly(file);
    return n < 0 ? -1 : 0;
}

/* If the index of a reference cannot be read to its end, htslib 1.16 frees memory twice. */
static int check_fasta_url(const char *url)
{
    if (strstr(url, HTS_IDX_DELIM)) return 0;
    char *index = xasprintf("%s.fai", url);
    int r = try_url(url, false) < 0 ? -1 : try_url(index, true);
    free(index);
    return r;
}

int bam_reader_check_reference(const htsFormat *options)
{
    for (const hts_opt *option = options->specific; option; option = option->next) {
        if (option->opt != CRAM_OPT_REFERENCE) continue;
        if (path_is_url(option->val.s)) {
            if (check_fasta_url(option->val.s) < 0) return -1;
            continue;
        }
        struct stat st;
        /* A pipe can be read only once. */
        bool is_file = stat(option->val.s, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
        if (is_file && check_fasta(option->val.s) < 0) return -1;
    }
    return 0;
}

/* Refuses lines that htslib cannot parse, and @SQ lines without a valid length, as htslib 1.24
   does; 1.16 accepts these. */
static int check_lines(const struct bam_reader *reader)
{
    const char *text = header_whole_text(reader->header);
    struct text line;
    if (!header_find_bad_line(text, false, &line)) return 0;
    input_error_header(reader->name, text, false, reader->header_is_cut);
    return -1;
}

/* The errno if a file cannot be opened, or 0. Prevents htslib's own message. */
static int file_problem(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0) return 0;
    if (stat(path, &st) < 0) return strchr(path, ':') ? 0 : errno;      /* it may be a URL */
    if (S_ISDIR(st.st_mode)) return EISDIR;
    return access(path, R_OK) < 0 ? errno : 0;
}

/* Gives htslib its options for the format of the file. */
static int apply_options(struct bam_reader *reader, const htsFormat *options)
{
    if (!options || !options->specific) return 0;
    if (hts_get_format(reader->hts)->format == cram && bam_reader_check_reference(options) < 0)
        return -1;
    if (hts_opt_apply(reader->hts, options->specific) >= 0) return 0;
    diag_error("cannot read '%s': htslib refuses the reference or another option of the input%s",
               reader->name, diag_library_words());
    return -1;
}

/* True if these bytes may begin an Arrow file, an Arrow stream or a Parquet file. */
static bool begins_columns(const uint8_t start[8])
{
    static const uint8_t file[] = "ARROW1\0", message[] = {255, 255, 255, 255};
    return memcmp(start, "PAR1", 4) == 0 || memcmp(start, file, 8) == 0 ||
           memcmp(start, message, sizeof message) == 0;
}

static void refuse_columns(const struct bam_reader *reader, const char *path)
{
    char word[2 * PATH_MAX] = "";
    words_quote(strcmp(path, "-") == 0 ? "FILE" : path, word, sizeof word);
    diag_error("'%s' is Arrow or Parquet; to sort it: "
               "rocksort-columns2sam %s | samtools rocksort -o out.bam -", reader->name, word);
}

/* Opens a file with htslib. reader->hts is NULL if htslib could not. Returns -1 after a message. */
static int open_bytes(struct bam_reader *reader, const char *path)
{
    uint8_t start[8];
    hFILE *bytes = hopen(path, "r");
    ssize_t n = bytes ? hpeek(bytes, start, sizeof start) : -1;
    bool has_columns = n == sizeof start && begins_columns(start);
    /* After a read error htslib 1.16 would not free the file. */
    if (n >= 0 && !has_columns) reader->hts = hts_hopen(bytes, path, "r");
    if (bytes && !reader->hts) {
        int error = errno;
        hclose_abruptly(bytes);
        errno = error;
    }
    if (has_columns) refuse_columns(reader, path);
    return has_columns ? -1 : 0;
}

static void refuse_format(const struct bam_reader *reader)
{
    diag_error("'%s' is not an alignment file; rocksort reads SAM, BAM, CRAM and FASTQ",
               reader->name);
}

static int open_file(struct bam_reader *reader, const char *path, const htsFormat *options)
{
    errno = file_problem(path);
    if (!errno) {
        enum htsLogLevel level = hts_get_log_level();
        /* The message is below. A higher level shows what is sent. */
        if (path_is_url(path) && level <= HTS_LOG_WARNING) hts_set_log_level(HTS_LOG_OFF);
        if (open_bytes(reader, path) < 0) {
            hts_set_log_level(level);
            return -1;
        }
        hts_set_log_level(level);
    }
    if (!reader->hts && errno == ENOEXEC) {       /* htslib knows no format that begins like this */
        refuse_format(reader);
        return -1;
    }
    if (!reader->hts) {
        bool is_vague = errno == EIO && path_is_url(path);
        diag_error("cannot open '%s': %s%s", reader->name,
                   errno ? strerror(errno) : "it is damaged or not an alignment file",
                   is_vague ? "; --verbosity 4 says more" : diag_advice(errno));
        return -1;
    }
    if (!is_alignment_file(hts_get_format(reader->hts))) {
        refuse_format(reader);
        return -1;
    }
    if (apply_options(reader, options) < 0) return -1;
    /* For an empty file htslib would print a warning that it cannot do this. */
    if (hts_get_format(reader->hts)->format != empty_format)
        xalloc_require(hts_set_opt(reader->hts, HTS_OPT_BLOCK_SIZE, READ_BYTES) >= 0);
    return 0;
}

/* Changes the text of a header that htslib has not parsed yet. */
static void complete_comments(sam_hdr_t *header)
{
    char *complete = header->text && !header->hrecs ? header_complete_comments(header->text) : NULL;
    if (!complete) return;
    free(header->text);
    header->text = complete;
    header->l_text = strlen(complete);
}

/* Lets htslib read a header. Returns NULL after a message. */
static sam_hdr_t *read_with_htslib(samFile *hts, const char *name)
{
    sam_hdr_t *header = sam_hdr_read(hts);
    if (header && !record_source_bgzf_failed(hts)) {
        complete_comments(header);
        return header;
    }
    sam_hdr_destroy(header);
    input_error_header(name, NULL, false, false);
    return NULL;
}

/* Reads the header. Does not warn if the reader is quiet, or while several inputs are opened for
   the first time. */
static int read_header(struct bam_reader *reader, bool checks)
{
    if (is_text(reader->hts))
        reader->header =
            sam_text_read_header(reader->hts, reader->name, &reader->header_is_cut);
    else
        reader->header = read_with_htslib(reader->hts, reader->name);
    if (!reader->header || (checks && check_lines(reader) < 0)) return -1;
    if (hts_get_format(reader->hts)->format != bam) return 0;
    return header_references_settle(reader->header, reader->name,
                                    reader->is_quiet || hts_get_log_level() < HTS_LOG_WARNING);
}

/* Chooses the function that fetches pieces. */
static void choose_source(struct bam_reader *reader)
{
    enum { BGZF_FORMAT = 2 };
    samFile *hts = reader->hts;
    reader->is_text = is_text(hts);
    if (is_whole_bam(hts)) {
        reader->can_seek = bgzf_compression(hts->fp.bgzf) == BGZF_FORMAT;
        reader->next = reader->can_seek ? bgzf_source_next : plain_source_next;
    } else if (reader->is_text) {
        reader->next = sam_text_next;
        reader->first_line = (uint64_t)hts->lineno + 1;
    } else {
        reader->next = record_source_next;
        reader->record = bam_init1();
        xalloc_require(reader->record != NULL);
    }
}

struct bam_reader *bam_reader_open(const char *path, const htsFormat *options,
                                   htsThreadPool *pool, enum reader_open how)
{
    struct bam_reader *reader = xcalloc(1, sizeof *reader);
    xalloc_require(pthread_mutex_init(&reader->filter_lock, NULL) == 0);
    reader->name = input_shown_name(path);
    reader->is_quiet = how == READER_AGAIN_QUIETLY;
    if (open_file(reader, path, options) < 0) goto err;
    if (use_pool(reader->hts, pool) < 0) {
        diag_error("cannot read '%s' with threads: htslib reports an error; give fewer with -@",
                   reader->name);
        goto err;
    }
    if (read_header(reader, how == READER_FIRST) < 0 || look_at_end(reader) < 0) goto err;
    choose_source(reader);
    reader->is_cut = reader->is_cut || reader->header_is_cut;
    reader->long_positions = bam_header_long_reference(reader->header) >= 0;
    return reader;
err:
    bam_reader_close(reader);
    return NULL;
}

int bam_reader_seek(struct bam_reader *reader, uint64_t offset)
{
    BGZF *bgzf = reader->hts->fp.bgzf;
    errno = 0;
    /* The rest of this block becomes the first piece. */
    if (bgzf_seek(bgzf, (int64_t)offset, SEEK_SET) == 0 &&
        ((offset & 0xffff) == 0 || bgzf_read_block(bgzf) == 0))
        return 0;
    diag_error("cannot read '%s' from byte %" PRIu64 " on: %s", reader->name, offset >> 16,
               errno ? strerror(errno) : "it is truncated or damaged");
    return -1;
}

void bam_reader_drop_header(struct bam_reader *reader)
{
    if (!is_whole_bam(reader->hts)) return;
    sam_hdr_destroy(reader->header);
    reader->header = NULL;
}

void bam_reader_close(struct bam_reader *reader)
{
    if (!reader) return;
    bam_destroy1(reader->record);
    sam_hdr_destroy(reader->header);
    /* An error of sam_close does not matter: all input was read and checked, or an error was
       reported. */
    if (reader->hts) (void)sam_close(reader->hts);
    (void)pthread_mutex_destroy(&reader->filter_lock);
    free(reader->ahead);
    free(reader->tail);
    free(reader->open);
    free(reader);
}
