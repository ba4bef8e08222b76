/* bam_inputs.c -- see bam_inputs.h. */
#include "input/bam_inputs.h"

#include "bam/header_text.h"
#include "input/header_union.h"
#include "input/input_error.h"
#include "input/input_file.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/bgzf.h>
#include <htslib/hts_log.h>
#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static bool can_open_again(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && input_is_regular(path, &st);
}

/* Opens input i, and stores its status just before; NULL after a message. */
static struct bam_reader *open_file(struct bam_inputs *in, size_t i, enum reader_open how)
{
    in->files[i].is_regular = input_is_regular(in->paths[i], &in->files[i].st);
    return bam_reader_open(in->paths[i], in->options, in->pool, how);
}

/*
 * If the size of a file changed while it was read, perhaps only a part was read. If the part ends
 * between two blocks, only the size shows that. It is not an error if the path now names another
 * file: the opened file was read to its end.
 */
static int check_size(struct bam_inputs *in, size_t i)
{
    const struct opened_file *file = &in->files[i];
    struct stat now;
    if (!file->is_regular || !input_is_regular(in->paths[i], &now) ||
        now.st_dev != file->st.st_dev || now.st_ino != file->st.st_ino ||
        now.st_size == file->st.st_size)
        return 0;
    in->changed = true;
    diag_error("'%s' was changed while it was read: it had %" PRId64 " bytes and has %" PRId64 "; "
               "sort it again when it is complete", in->readers[i]->name,
               (int64_t)file->st.st_size, (int64_t)now.st_size);
    return -1;
}

/* Notes the format of input i, and the order that its header claims. */
static void note_order(struct bam_inputs *in, size_t i, struct bam_reader *reader)
{
    const char *at = header_whole_text(reader->header);
    struct text line, field, rest = {"", 0}, order = {"", 0}, sub_order = {NULL, 0};
    while (!rest.n && header_next_line(&at, &line))     /* htslib takes @HD in any line */
        if (header_line_is(line, "@HD")) rest = header_line_rest(line);
    while (header_next_field(&rest, &field)) {
        struct text so = header_field_value(field, "SO:"), ss = header_field_value(field, "SS:");
        if (so.at) order = so;
        if (ss.at) sub_order = ss;
    }
    in->files[i].by_coordinate = text_equal(order, text_of("coordinate"));
    in->files[i].format = hts_get_format(reader->hts)->format;
    if (sub_order.at) order = sub_order;
    if (!in->common_order)
        in->common_order = xasprintf("%.*s", (int)order.n, order.at);
    else if (!text_equal(order, text_of(in->common_order)))
        in->common_order[0] = '\0';
}

/* A hash of the header's text, whose @SQ lines agree with its references. */
static XXH64_hash_t hash_header(sam_hdr_t *header)
{
    const char *text = header_whole_text(header);
    return XXH3_64bits(text, strlen(text));
}

/* A copy of a header without its @SQ lines; NULL after a message. */
static sam_hdr_t *copy_without_references(sam_hdr_t *header, const char *name)
{
    const char *at = header_whole_text(header);
    kstring_t text = KS_INITIALIZE;
    struct text line;
    while (header_next_line(&at, &line)) {
        if (header_line_is(line, "@SQ")) continue;
        xalloc_require(kputsn(line.at, line.n, &text) >= 0 && kputc('\n', &text) >= 0);
    }
    sam_hdr_t *copy = text.l > 0 ? sam_hdr_parse(text.l, text.s) : sam_hdr_init();
    if (!copy) input_error_header(name, text.s, false, false);
    ks_free(&text);
    return copy;
}

/* Copies the header of input i for the union. The references of all inputs except the first are
   compared with the first's and not copied. NULL after a message. */
static sam_hdr_t *copy_header(sam_hdr_t *header, size_t i, sam_hdr_t *first, const char **names)
{
    if (i > 0)
        return header_union_check_references(first, names[0], header, names[i]) < 0
                   ? NULL : copy_without_references(header, names[i]);
    sam_hdr_t *copy = sam_hdr_dup(header);
    xalloc_require(copy != NULL);
    return copy;
}

/* Opens input i, stores its name, and returns a copy of its header; NULL after a message. */
static sam_hdr_t *look_at_input(struct bam_inputs *in, size_t i, sam_hdr_t *first,
                                const char **names)
{
    bool again = can_open_again(in->paths[i]);
    /* Warnings are printed when the input is opened to be read. */
    enum htsLogLevel level = hts_get_log_level();
    if (again && level > HTS_LOG_ERROR) hts_set_log_level(HTS_LOG_ERROR);
    struct bam_reader *reader = open_file(in, i, READER_FIRST);
    hts_set_log_level(level);
    if (!reader) return NULL;
    sam_hdr_t *header = reader->header;
    in->files[i].header_hash = hash_header(header);
    note_order(in, i, reader);
    in->files[i].can_seek = again && reader->can_seek;
    if (!in->files[i].can_seek) in->can_seek = false;
    names[i] = reader->name;         /* stays valid after the reader is closed */
    sam_hdr_t *copy = copy_header(header, i, first, names);
    if (again)
        bam_reader_close(reader);
    else
        in->readers[i] = reader;
    in->files[i].is_warned_of = !again;
    return copy;
}

static int unite_headers(struct bam_inputs *in)
{
    sam_hdr_t **headers = xcalloc(in->n, sizeof *headers);
    const char **names = xcalloc(in->n, sizeof *names);
    size_t n = 0;
    while (n < in->n && (headers[n] = look_at_input(in, n, headers[0], names)) != NULL) n++;
    if (n == in->n) in->names = header_union_create(headers, names, n);
    for (size_t i = 0; i < n; i++) sam_hdr_destroy(headers[i]);
    free(names);
    free(headers);
    return in->names ? 0 : -1;
}

static int open_single(struct bam_inputs *in)
{
    in->readers[0] = open_file(in, 0, READER_FIRST);
    if (!in->readers[0]) return -1;
    in->files[0].is_warned_of = true;
    note_order(in, 0, in->readers[0]);
    in->can_seek = can_open_again(in->paths[0]) && in->readers[0]->can_seek;
    return 0;
}

struct bam_inputs *bam_inputs_open(const char *const *paths, size_t n, const htsFormat *options,
                                   htsThreadPool *pool, bool is_merge)
{
    struct bam_inputs *in = xcalloc(1, sizeof *in);
    *in = (struct bam_inputs){
        .paths = paths,
        .n = n,
        .options = options,
        .pool = pool,
        .readers = xcalloc(n, sizeof *in->readers),
        .files = xcalloc(n, sizeof *in->files),
        .n_bytes = input_bytes_of_all(paths, n),
        .can_seek = true,
    };
    if ((n == 1 && !is_merge ? open_single(in) : unite_headers(in)) == 0) {
        in->header = in->names ? in->names->header
                               : in->readers[0]->header;
        return in;
    }
    bam_inputs_close(in);
    return NULL;
}

const char *bam_inputs_sorted_by_coordinate(const struct bam_inputs *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->files[i].by_coordinate) return input_shown_name(in->paths[i]);
    return NULL;
}

const struct id_renames *bam_inputs_renames(const struct bam_inputs *in, size_t i)
{
    return in->names ? header_union_renames(in->names, i) : NULL;
}

const struct stat *bam_inputs_file(const struct bam_inputs *in, size_t i)
{
    return in->files[i].is_regular ? &in->files[i].st : NULL;
}

uint64_t bam_inputs_start_at(struct bam_inputs *in, const struct input_position *position)
{
    in->start = *position;
    in->at = position->input;
    for (size_t i = 1; i < in->at; i++)         /* the one before `at` is counted later */
        in->n_bytes_before += (uint64_t)input_bytes(in->paths[i - 1]);
    uint64_t last = in->at > 0 ? (uint64_t)input_bytes(in->paths[in->at - 1]) : 0;
    return in->n_bytes_before + last + (position->offset >> 16);
}

/* Opens input i again. Its header must be the same as before, since the united header was made from
   it. */
static struct bam_reader *reopen(struct bam_inputs *in, size_t i)
{
    struct bam_reader *reader =
        open_file(in, i, in->files[i].is_warned_of ? READER_AGAIN_QUIETLY : READER_AGAIN);
    in->files[i].is_warned_of = true;
    if (!reader) return NULL;
    if (hash_header(reader->header) == in->files[i].header_hash) return reader;
    in->changed = true;
    diag_error("'%s' was replaced while others were read: it has another header now; sort again",
               reader->name);
    bam_reader_close(reader);
    return NULL;
}

struct bam_reader *bam_inputs_open_one(struct bam_inputs *in, size_t i)
{
    if (!in->readers[i]) in->readers[i] = reopen(in, i);
    return in->readers[i];
}

/* Also called for an input that was skipped because a sort is resumed. */
int bam_inputs_leave(struct bam_inputs *in, size_t i)
{
    if (in->readers[i] && check_size(in, i) < 0) return -1;
    if (in->readers[i] && in->readers[i]->is_cut && !in->files[i].is_cut) {
        in->files[i].is_cut = true;
        in->n_cut++;
    }
    if (in->n_bytes > 0) in->n_bytes_before += (uint64_t)input_bytes(in->paths[i]);
    if (!in->names) return 0;           /* the header of a single input is still needed */
    bam_reader_close(in->readers[i]);
    in->readers[i] = NULL;
    return 0;
}

int bam_inputs_next(struct bam_inputs *in, struct bam_reader **reader)
{
    if (in->at > 0 && bam_inputs_leave(in, in->at - 1) < 0) return -1;
    if (in->at == in->n) return 0;
    *reader = bam_inputs_open_one(in, in->at);
    bool seeks = in->at++ == in->start.input && in->start.offset > 0;
    return *reader && (!seeks || bam_reader_seek(*reader, in->start.offset) == 0) ? 1 : -1;
}

uint64_t bam_inputs_bytes_read(const struct bam_inputs *in)
{
    const struct bam_reader *reader = in->at > 0 ? in->readers[in->at - 1] : NULL;
    uint64_t offset = reader ? reader->file_offset : 0;
    return offset > 0 ? in->n_bytes_before + offset : 0;
}

void bam_inputs_close(struct bam_inputs *in)
{
    if (!in) return;
    for (size_t i = 0; i < in->n; i++) bam_reader_close(in->readers[i]);
    header_union_destroy(in->names);
    free(in->common_order);
    free(in->files);
    free(in->readers);
    free(in);
}

/* ---- first and last record of a file ---- */

/* Reads the next record into *record, which is allocated if it is NULL. Returns 1, 0 at the end, or
   -1. */
static int read_record(BGZF *file, bam1_t **record)
{
    enum { END = -1 };
    bam1_t *next = bam_init1();
    int r = next ? bam_read1(file, next) : -2;
    if (r < 0) {
        bam_destroy1(next);
        return r == END ? 0 : -1;
    }
    bam_destroy1(*record);
    *record = next;
    return 1;
}

/* After the header: the offset of the next block, or -1 if the current block has records. */
static int64_t end_of_header(BGZF *file)
{
    int64_t at = bgzf_tell(file);
    if ((at & 0xffff) == 0) return at >> 16;
    if (file->block_offset < file->block_length) return -1;
    /* htslib moves to the next block only when it reads. */
    return bgzf_read_block(file) < 0 ? -1 : file->block_address;
}

static int read_ends(BGZF *file, const struct bam_ends_places *places, struct bam_ends *ends)
{
    bam_hdr_t *header = bam_hdr_read(file);
    if (!header) return -1;
    bam_hdr_destroy(header);
    int64_t begin = end_of_header(file);
    if (begin < 0) return -1;
    ends->begin = (uint64_t)begin;
    int r = read_record(file, &ends->first);
    if (r <= 0) return r;
    if (places->placed_end > 0 && (bgzf_seek(file, (int64_t)places->placed_end, SEEK_SET) < 0 ||
                                   read_record(file, &ends->after) < 0))
        return -1;
    if (places->last_begin == 0) return 0;
    if (bgzf_seek(file, (int64_t)places->last_begin, SEEK_SET) < 0) return -1;
    while ((r = read_record(file, &ends->last)) > 0) continue;
    return r < 0 || !ends->last ? -1 : 0;
}

int bam_ends_read(const char *path, const struct bam_ends_places *places, struct bam_ends *ends)
{
    *ends = (struct bam_ends){0};
    /* Faults of the file will be reported when it is read. Wrong places are not an error. */
    enum htsLogLevel level = hts_get_log_level();
    hts_set_log_level(HTS_LOG_OFF);
    BGZF *file = bgzf_open(path, "r");
    int r = file && bgzf_check_EOF(file) == 1 ? read_ends(file, places, ends) : -1;
    if (file && bgzf_close(file) < 0) r = -1;
    hts_set_log_level(level);
    if (r < 0) bam_ends_release(ends);
    return r;
}

void bam_ends_release(struct bam_ends *ends)
{
    bam_destroy1(ends->first);
    bam_destroy1(ends->last);
    bam_destroy1(ends->after);
    *ends = (struct bam_ends){0};
}
