/* column_input.c -- see column_input.h. */
#include "input/column_input.h"

#include "columns/arrow_reader.h"
#include "columns/parquet_reader.h"
#include "input/row_batch.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/hts_log.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct column_input {
    hFILE *file;
    const char *name;
    struct arrow_reader *arrow; /* or, if that is NULL: */
    struct parquet_reader *parquet;
    char **references;          /* names of the header's */
    size_t n_references;
    struct row_batch *batch;    /* NULL: the next one is to be read */
    uint64_t row;               /* the next one */
    uint64_t n_records;         /* handed out so far */
    uint64_t batch_begin, batch_end;    /* bytes of the file that the batch stands for */
    uint64_t file_bytes;        /* Parquet */
    size_t reader_bytes;        /* memory of arrow or parquet, after the last batch */
    atomic_size_t batch_bytes;  /* memory of the batches that somebody has */
    size_t most_bytes;          /* of both; the user is warned above this; 0: no limit */
    bool is_quiet;              /* the user was warned */
    bool is_at_end;
};

static ssize_t read_file(void *arg, uint8_t *to, size_t n)
{
    return hread(arg, to, n);
}

static int64_t seek_file(void *arg, int64_t offset, int whence)
{
    return hseek(arg, offset, whence);
}

static ssize_t read_file_at(void *arg, uint64_t at, uint8_t *to, size_t n)
{
    return hseek(arg, (off_t)at, SEEK_SET) < 0 ? -1 : hread(arg, to, n);
}

int column_input_knows(hFILE *file)
{
    uint8_t start[ARROW_START_BYTES];
    ssize_t n = hpeek(file, start, sizeof start);
    if (n < 0) return -1;
    return n == sizeof start && (arrow_reader_knows(start) || parquet_reader_knows(start));
}

static bool is_parquet(hFILE *file)
{
    uint8_t start[PARQUET_START_BYTES];
    return hpeek(file, start, sizeof start) == sizeof start && parquet_reader_knows(start);
}

static int read_error(const struct column_input *input)
{
    const char *problem = input->arrow ? arrow_reader_problem(input->arrow)
                                       : parquet_reader_problem(input->parquet);
    if (!problem && errno == ESPIPE)
        diag_error("cannot read '%s': Parquet is read from its end, which no pipe gives first, and "
                   "not all servers: name a file", input->name);
    else if (!problem)
        diag_error("cannot read '%s': %s", input->name, strerror(errno ? errno : EIO));
    else if (input->n_records == 0)
        diag_error("cannot read '%s': %s", input->name, problem);
    else
        diag_error("cannot read '%s' after record %" PRIu64 ": %s", input->name, input->n_records,
                   problem);
    return -1;
}

static int open_arrow(struct column_input *input)
{
    const struct arrow_input bytes = {read_file, seek_file, input->file};
    input->arrow = arrow_reader_create(&bytes);
    errno = 0;
    return arrow_reader_open(input->arrow) < 0 ? read_error(input) : 0;
}

/* Parquet says at its end what it holds. */
static int open_parquet(struct column_input *input)
{
    errno = 0;
    off_t n_bytes = hseek(input->file, 0, SEEK_END);
    input->parquet = parquet_reader_create(read_file_at, input->file,
                                           n_bytes > 0 ? (uint64_t)n_bytes : 0);
    if (n_bytes < 0 || parquet_reader_open(input->parquet) < 0) return read_error(input);
    input->file_bytes = (uint64_t)n_bytes;
    return 0;
}

struct column_input *column_input_open(hFILE *file, const char *name)
{
    struct column_input *input = xcalloc(1, sizeof *input);
    input->file = file;
    input->name = name;
    if ((is_parquet(file) ? open_parquet(input) : open_arrow(input)) == 0) return input;
    column_input_close(input);
    return NULL;
}

void column_input_close(struct column_input *input)
{
    if (!input) return;
    row_batch_drop(input->batch);
    arrow_reader_destroy(input->arrow);
    parquet_reader_destroy(input->parquet);
    for (size_t i = 0; i < input->n_references; i++) free(input->references[i]);
    free(input->references);
    hclose_abruptly(input->file);       /* nothing was written */
    free(input);
}

static const char *header_text(const struct column_input *input)
{
    return input->arrow ? arrow_reader_header(input->arrow) : parquet_reader_header(input->parquet);
}

bool column_input_has_header(const struct column_input *input)
{
    return header_text(input) != NULL;
}

static bool may_warn(const struct column_input *input)
{
    return !input->is_quiet && hts_get_log_level() >= HTS_LOG_WARNING;
}

void column_input_be_quiet(struct column_input *input)
{
    input->is_quiet = true;
}

static void warn_of_unknown(const struct column_input *input)
{
    const char *unknown = input->arrow ? arrow_reader_unknown(input->arrow)
                                       : parquet_reader_unknown(input->parquet);
    if (unknown && may_warn(input))
        diag_warning("'%s' has columns that no record has, such as '%s': they are left out",
                     input->name, unknown);
}

sam_hdr_t *column_input_make_header(struct column_input *input, const char *lent_text)
{
    const char *text = header_text(input);
    if (!text) text = lent_text;
    if (!text) {
        diag_error("the metadata of '%s' have no sam_header, as Polars and DuckDB drop it: give a "
                   "file with the header as the first input", input->name);
        return NULL;
    }
    warn_of_unknown(input);
    sam_hdr_t *header = sam_hdr_parse(strlen(text), text);
    int n = header ? sam_hdr_nref(header) : -1;
    if (n < 0) {
        diag_error("the header of '%s' is damaged", input->name);
        sam_hdr_destroy(header);
        return NULL;
    }
    /* sam_hdr_parse keeps no text of a header without references. */
    if (n == 0 && !header->text) {
        header->text = xstrdup(text);
        header->l_text = strlen(text);
    }
    input->references = xcalloc((size_t)n + 1, sizeof *input->references);
    input->n_references = (size_t)n;
    for (int i = 0; i < n; i++) input->references[i] = xstrdup(sam_hdr_tid2name(header, i));
    const char *const *names = (const char *const *)input->references;
    if (input->arrow)
        arrow_reader_set_references(input->arrow, names, (uint32_t)n);
    else
        parquet_reader_set_references(input->parquet, names, (uint32_t)n);
    return header;
}

const char *column_input_format(const struct column_input *input)
{
    return input->arrow ? "Arrow" : "Parquet";
}

/* Warns that something takes more memory than there is. */
static void warn_of_memory(struct column_input *input, size_t n_bytes, const char *what,
                           const char *advice)
{
    if (!may_warn(input) || input->most_bytes == 0 || n_bytes <= input->most_bytes) return;
    input->is_quiet = true;
    diag_warning("reading %s'%s' takes %zu MiB of memory, %zu MiB more than it should: %s", what,
                 input->name, n_bytes >> 20, (n_bytes - input->most_bytes) >> 20, advice);
}

void column_input_limit(struct column_input *input, size_t memory_bytes, size_t most_bytes)
{
    input->most_bytes = most_bytes;
    if (!input->parquet) return;
    parquet_reader_limit(input->parquet, memory_bytes);
    warn_of_memory(input, parquet_reader_footer_bytes(input->parquet), "the footer of ",
                   "write larger row groups");
}

size_t column_input_memory(const struct column_input *input)
{
    return input->reader_bytes + atomic_load(&input->batch_bytes);
}

bool column_input_begins_batch(const struct column_input *input)
{
    return !input->batch;
}

/* ---- as a source of the reader ---- */

/* Notes which bytes of the file the rows of the batch stand for. Parquet says how many rows it has
   in all. Of Arrow the file was read up to the end of the batch. */
static void note_place(struct column_input *input, uint64_t n_rows)
{
    input->batch_begin = input->batch_end;
    if (input->parquet) {
        double part = (double)(input->n_records + n_rows) /
                      (double)parquet_reader_n_rows(input->parquet);
        input->batch_end = (uint64_t)((double)input->file_bytes * part);
        return;
    }
    off_t at = htell(input->file);      /* a file may have its batches in any order */
    if (at > 0 && (uint64_t)at > input->batch_end) input->batch_end = (uint64_t)at;
}

/* Reads a batch that has rows. Returns 1, 0 at the end, or -1 after a message. */
static int next_batch(struct column_input *input)
{
    const struct column_schema *schema = input->arrow ? arrow_reader_schema(input->arrow)
                                                      : parquet_reader_schema(input->parquet);
    struct column_values *columns;
    uint64_t n_rows;
    input->row = 0;
    while (!input->is_at_end) {
        errno = 0;
        int r = input->arrow ? arrow_reader_next(input->arrow, &columns, &n_rows)
                             : parquet_reader_next(input->parquet, &columns, &n_rows);
        input->is_at_end = r <= 0;
        if (r < 0) return read_error(input);
        if (r == 0) break;
        input->batch = row_batch_create(schema, columns, n_rows, &input->batch_bytes);
        input->reader_bytes = input->arrow ? arrow_reader_bytes(input->arrow)
                                           : parquet_reader_bytes(input->parquet);
        warn_of_memory(input, column_input_memory(input), "",
                       input->arrow ? "write smaller batches" : "write smaller pages");
        if (n_rows > 0) {
            note_place(input, n_rows);
            return 1;
        }
        row_batch_drop(input->batch);
        input->batch = NULL;
    }
    return 0;
}

static int next_rows(struct reader_source *source, struct bam_piece *piece, uint8_t *raw,
                     size_t piece_bytes, size_t room)
{
    struct column_input *input = source->file->columns;
    (void)raw;
    (void)room;
    if (!input->batch) {
        int r = next_batch(input);
        source->failed = r < 0;
        if (r <= 0) return r < 0 ? BAM_READER_ERROR : BAM_READER_END;
    }
    uint64_t n = piece_bytes / row_batch_row_bytes(input->batch) + 1;
    uint64_t n_left = row_batch_n_rows(input->batch) - input->row;
    if (n > n_left) n = n_left;
    piece->lines.renames = source->file->renames;
    sam_chunk_put_rows(&piece->lines, input->batch, input->row, n);
    input->row += n;
    input->n_records += n;
    if (n == n_left) {
        row_batch_drop(input->batch);
        input->batch = NULL;
    }
    return BAM_READER_PIECE;
}

/* The columns of a batch are read together: each row stands for an equal part of its bytes. */
static uint64_t offset_of_rows(const struct reader_source *source)
{
    const struct column_input *input = source->file->columns;
    if (!input->batch) return input->batch_end;
    uint64_t n_bytes = input->batch_end - input->batch_begin;
    double part = (double)input->row / (double)row_batch_n_rows(input->batch);
    return input->batch_begin + (uint64_t)((double)n_bytes * part);
}

static void close_source(struct reader_source *source)
{
    free(source);
}

struct reader_source *column_input_open_source(const struct reader_file *file)
{
    static const struct source_kind kind = {
        .is_text = true, .next = next_rows, .offset = offset_of_rows, .close = close_source};
    struct reader_source *source = xcalloc(1, sizeof *source);
    *source = (struct reader_source){.kind = &kind, .file = file};
    return source;
}
