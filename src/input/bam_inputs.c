/* bam_inputs.c -- see bam_inputs.h. */
#include "input/bam_inputs.h"

#include "bam/header_text.h"
#include "input/input_file.h"
#include "util/diag.h"

#include <htslib/hts_log.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* An input as it was when it was opened. */
struct input_file {
    bool is_regular;
    struct stat st;
    XXH64_hash_t header;                /* of several inputs that are opened again */
};

struct bam_inputs {
    const char *const *paths;
    size_t n;
    const htsFormat *options;
    htsThreadPool *pool;
    struct bam_reader **readers;        /* NULL: to be opened when its turn comes, or closed */
    struct input_file *files;
    struct header_union *names;         /* of several inputs; NULL of a single one */
    size_t at;                          /* number of the next input */
    uint64_t n_bytes;                   /* of all of them; 0: unknown */
    uint64_t n_bytes_before;            /* ... of those that were read */
    bool can_seek;
    bool changed;
    struct input_position start;        /* where reading begins */
};

static bool can_open_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && input_is_regular(path, &st);
}

/* Opens input i; NULL after a message. */
static struct bam_reader *open_file(struct bam_inputs *in, size_t i)
{
    struct input_file *file = &in->files[i];
    file->is_regular = input_is_regular(in->paths[i], &file->st);
    return bam_reader_open(in->paths[i], in->options, in->pool);
}

/*
 * Of a file that became shorter or longer while it was read, only a part may have been read, and
 * where it ends between two blocks nothing else tells. One that was replaced was read as it was.
 */
static int check_size(struct bam_inputs *in, size_t i)
{
    const struct input_file *file = &in->files[i];
    struct stat now;
    if (!file->is_regular || !input_is_regular(in->paths[i], &now) ||
        now.st_dev != file->st.st_dev || now.st_ino != file->st.st_ino ||
        now.st_size == file->st.st_size)
        return 0;
    in->changed = true;
    diag_error("'%s' was changed while it was read: it had %" PRId64 " bytes and has %" PRId64 "; "
               "sort it again when it is complete", bam_reader_name(in->readers[i]),
               (int64_t)file->st.st_size, (int64_t)now.st_size);
    return -1;
}

/* Of everything in a header, and of the references that its text may lack. */
static XXH64_hash_t hash_header(sam_hdr_t *header)
{
    const char *text = header_whole_text(header);
    XXH64_hash_t hash = text ? XXH3_64bits(text, strlen(text)) : 0;
    for (int i = 0; i < sam_hdr_nref(header); i++) {
        const char *name = sam_hdr_tid2name(header, i);
        hash += (uint64_t)sam_hdr_tid2len(header, i);
        hash = XXH3_64bits_withSeed(name, strlen(name), hash);
    }
    return hash;
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
    struct bam_reader *reader = open_file(in, i);
    hts_set_log_level(level);
    if (!reader) return NULL;
    in->files[i].header = hash_header(bam_reader_header(reader));
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

struct bam_inputs *bam_inputs_open(const char *const *paths, size_t n, const htsFormat *options,
                                   htsThreadPool *pool)
{
    struct bam_inputs *in = calloc(1, sizeof *in);
    if (in) in->readers = calloc(n, sizeof *in->readers);
    if (in) in->files = calloc(n, sizeof *in->files);
    if (!in || !in->readers || !in->files) {
        diag_no_memory();
        bam_inputs_close(in);
        return NULL;
    }
    in->paths = paths;
    in->n = n;
    in->options = options;
    in->pool = pool;
    in->n_bytes = input_bytes_of_all(paths, n);
    in->can_seek = true;
    if (n == 1) in->readers[0] = open_file(in, 0);
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

const struct stat *bam_inputs_file(const struct bam_inputs *in, size_t i)
{
    return in->files[i].is_regular ? &in->files[i].st : NULL;
}

uint64_t bam_inputs_start_at(struct bam_inputs *in, const struct input_position *position)
{
    in->start = *position;
    in->at = position->input;
    for (size_t i = 1; i < in->at; i++)         /* the one before `at` is counted when it is left */
        in->n_bytes_before += (uint64_t)input_bytes(in->paths[i - 1]);
    uint64_t last = in->at > 0 ? (uint64_t)input_bytes(in->paths[in->at - 1]) : 0;
    return in->n_bytes_before + last + (position->offset >> 16);
}

uint32_t bam_inputs_number(const struct bam_inputs *in)
{
    return (uint32_t)(in->at - 1);
}

/* Opens input i again; its header must be what it was, since the union was made of that. */
static struct bam_reader *reopen(struct bam_inputs *in, size_t i)
{
    struct bam_reader *reader = open_file(in, i);
    if (!reader || hash_header(bam_reader_header(reader)) == in->files[i].header) return reader;
    in->changed = true;
    diag_error("'%s' was replaced while others were read: it has another header now; sort again",
               bam_reader_name(reader));
    bam_reader_close(reader);
    return NULL;
}

/* Opens input i and has it begin where reading begins. */
static struct bam_reader *open_reader(struct bam_inputs *in, size_t i)
{
    struct bam_reader *reader = in->readers[i];
    if (!reader) reader = reopen(in, i);
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
    if (in->at > 0 && in->readers[in->at - 1] && check_size(in, in->at - 1) < 0) return -1;
    if (in->at > 0 && in->n_bytes > 0)
        in->n_bytes_before += (uint64_t)input_bytes(in->paths[in->at - 1]);
    /* The header of a single input is still needed. */
    if (in->at > 0 && in->names) {
        bam_reader_close(in->readers[in->at - 1]);
        in->readers[in->at - 1] = NULL;
    }
    if (in->at == in->n) return 0;
    *reader = open_reader(in, in->at++);
    return *reader ? 1 : -1;
}

bool bam_inputs_changed(const struct bam_inputs *in)
{
    return in->changed;
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
    free(in->files);
    free(in->readers);
    free(in);
}
