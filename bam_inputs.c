/* bam_inputs.c -- see bam_inputs.h. */
#include "bam_inputs.h"

#include "diag.h"
#include "header_text.h"

#include <htslib/hts_log.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bam_inputs {
    const char *const *paths;
    size_t n;
    const htsFormat *options;
    htsThreadPool *pool;
    struct bam_reader **readers;        /* NULL: to be opened when its turn comes, or closed */
    struct header_union *names;         /* of several inputs; NULL of a single one */
    size_t at;                          /* number of the next input */
    uint64_t n_bytes;                   /* of all of them; 0: unknown */
    uint64_t n_bytes_before;            /* ... of those that were read */
    bool can_seek;
    struct input_position start;        /* where reading begins */
};

static bool can_open_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A copy of a header without its @SQ lines. */
static sam_hdr_t *copy_without_references(sam_hdr_t *header)
{
    const char *line = header_whole_text(header);
    kstring_t text = {0, 0, NULL};
    int r = line ? kputs("", &text) : -1;
    while (r >= 0 && *line) {
        const char *newline = strchr(line, '\n');
        size_t n = newline ? (size_t)(newline + 1 - line) : strlen(line);
        if (strncmp(line, "@SQ\t", 4) != 0) r = kputsn(line, n, &text);
        line += n;
    }
    sam_hdr_t *copy = NULL;
    if (r >= 0) copy = text.l > 0 ? sam_hdr_parse(text.l, text.s) : sam_hdr_init();
    ks_free(&text);
    if (!copy) diag_no_memory();
    return copy;
}

/* Opens input i and copies its header and name, for the union; of all but the first the references
   are compared with the first's and not copied. */
static sam_hdr_t *copy_header(struct bam_inputs *in, size_t i, sam_hdr_t *first,
                              const char **names)
{
    bool again = can_open_again(in->paths[i]);
    /* What there is to warn of is said when the input is opened to be read. */
    enum htsLogLevel level = hts_get_log_level();
    if (again && level > HTS_LOG_ERROR) hts_set_log_level(HTS_LOG_ERROR);
    struct bam_reader *reader = bam_reader_open(in->paths[i], in->options, in->pool);
    hts_set_log_level(level);
    if (!reader) return NULL;
    if (!again || !bam_reader_can_seek(reader)) in->can_seek = false;
    names[i] = bam_reader_name(reader);         /* its path, or a constant */
    sam_hdr_t *header = bam_reader_header(reader), *copy = NULL;
    if (i == 0) {
        copy = sam_hdr_dup(header);
        if (!copy) diag_no_memory();
    } else if (header_union_check_references(first, names[0], header, names[i]) == 0) {
        copy = copy_without_references(header);
    }
    if (again)
        bam_reader_close(reader);
    else
        in->readers[i] = reader;
    return copy;
}

static int unite_headers(struct bam_inputs *in)
{
    sam_hdr_t **headers = calloc(in->n, sizeof *headers);
    const char **names = calloc(in->n, sizeof *names);
    size_t n = 0;
    if (!headers || !names) {
        diag_no_memory();
    } else {
        while (n < in->n && (headers[n] = copy_header(in, n, headers[0], names)) != NULL) n++;
        if (n == in->n) in->names = header_union_create(headers, names, n);
        for (size_t i = 0; i < n; i++) sam_hdr_destroy(headers[i]);
    }
    free(names);
    free(headers);
    return in->names ? 0 : -1;
}

/* Size of a regular file, which standard input may be, too; -1 of anything else. */
static int64_t file_bytes(const char *path)
{
    struct stat st;
    int r = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);
    return r == 0 && S_ISREG(st.st_mode) ? (int64_t)st.st_size : -1;
}

static uint64_t sum_of_file_bytes(const char *const *paths, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t n_bytes = file_bytes(paths[i]);
        if (n_bytes < 0) return 0;
        sum += (uint64_t)n_bytes;
    }
    return sum;
}

struct bam_inputs *bam_inputs_open(const char *const *paths, size_t n, const htsFormat *options,
                                   htsThreadPool *pool)
{
    struct bam_inputs *in = calloc(1, sizeof *in);
    if (in) in->readers = calloc(n, sizeof *in->readers);
    if (!in || !in->readers) {
        diag_no_memory();
        free(in);
        return NULL;
    }
    in->paths = paths;
    in->n = n;
    in->options = options;
    in->pool = pool;
    in->n_bytes = sum_of_file_bytes(paths, n);
    in->can_seek = true;
    if (n == 1) in->readers[0] = bam_reader_open(paths[0], options, pool);
    if (n == 1 && in->readers[0])
        in->can_seek = can_open_again(paths[0]) && bam_reader_can_seek(in->readers[0]);
    if (n == 1 ? !in->readers[0] : unite_headers(in) < 0) {
        bam_inputs_close(in);
        return NULL;
    }
    return in;
}

sam_hdr_t *bam_inputs_header(struct bam_inputs *in)
{
    return in->names ? header_union_header(in->names) : bam_reader_header(in->readers[0]);
}

bool bam_inputs_can_seek(const struct bam_inputs *in)
{
    return in->can_seek;
}

uint64_t bam_inputs_start_at(struct bam_inputs *in, const struct input_position *position)
{
    in->start = *position;
    in->at = position->input;
    for (size_t i = 1; i < in->at; i++)         /* the one before `at` is counted when it is left */
        in->n_bytes_before += (uint64_t)file_bytes(in->paths[i - 1]);
    uint64_t last = in->at > 0 ? (uint64_t)file_bytes(in->paths[in->at - 1]) : 0;
    return in->n_bytes_before + last + (position->offset >> 16);
}

uint32_t bam_inputs_number(const struct bam_inputs *in)
{
    return (uint32_t)(in->at - 1);
}

/* Opens input i and has it begin where reading begins. */
static struct bam_reader *open_reader(struct bam_inputs *in, size_t i)
{
    struct bam_reader *reader = in->readers[i];
    if (!reader) reader = bam_reader_open(in->paths[i], in->options, in->pool);
    in->readers[i] = reader;
    if (!reader) return NULL;
    if (in->names && header_union_renames(in->names, i) &&
        bam_reader_rename(reader, in->names, i, in->pool) < 0)
        return NULL;
    if (i == in->start.input && in->start.offset > 0 &&
        bam_reader_seek(reader, in->start.offset, in->start.n_records) < 0)
        return NULL;
    return reader;
}

int bam_inputs_next(struct bam_inputs *in, struct bam_reader **reader)
{
    if (in->at > 0 && in->n_bytes > 0)
        in->n_bytes_before += (uint64_t)file_bytes(in->paths[in->at - 1]);
    /* The header of a single input is still needed. */
    if (in->at > 0 && in->names) {
        bam_reader_close(in->readers[in->at - 1]);
        in->readers[in->at - 1] = NULL;
    }
    if (in->at == in->n) return 0;
    *reader = open_reader(in, in->at++);
    return *reader ? 1 : -1;
}

uint64_t bam_inputs_bytes(const struct bam_inputs *in)
{
    return in->n_bytes;
}

uint64_t bam_inputs_bytes_read(const struct bam_inputs *in)
{
    const struct bam_reader *reader = in->at > 0 ? in->readers[in->at - 1] : NULL;
    uint64_t offset = reader ? bam_reader_offset(reader) : 0;
    return offset > 0 ? in->n_bytes_before + offset : 0;
}

void bam_inputs_close(struct bam_inputs *in)
{
    if (!in) return;
    for (size_t i = 0; i < in->n; i++) bam_reader_close(in->readers[i]);
    header_union_destroy(in->names);
    free(in->readers);
    free(in);
}
