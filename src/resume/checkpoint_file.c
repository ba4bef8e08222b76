/*
 * checkpoint_file.c -- see checkpoint_file.h.
 *
 * One description of the file serves both directions: walk_file names each value, and a struct
 * file_io either appends them to a text or parses them. A parsed file points into a copy of the
 * text, which it owns.
 */
#include "resume/checkpoint_file.h"

#include "util/long_hash.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LANES = 64,
    MAX_OPTIONS = 1000,
    END_BYTES = 21,                     /* "end ", 16 digits, newline */
};

static const char first_word[] = "rocksort-store ";

/* ---- values ---- */

struct file_io {
    kstring_t *to;              /* NULL: reading */
    const char *at, *end;       /* unread text, without "end" */
    bool is_bad;                /* the text is not a valid checkpoint file */
};

static void put(kstring_t *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(kstring_t *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    xalloc_require(kvsprintf(to, format, args) >= 0);
    va_end(args);
}

static void require(struct file_io *io, bool is_good)
{
    if (!is_good) io->is_bad = true;
}

static void walk_text(struct file_io *io, const char *keyword, const char **text)
{
    if (io->to) {
        put(io->to, "%s %s%c", keyword, *text, '\0');
        return;
    }
    size_t n = strlen(keyword);
    const char *at = io->at;
    const char *end = at < io->end ? memchr(at, '\0', (size_t)(io->end - at)) : NULL;
    require(io, end && strncmp(at, keyword, n) == 0 && at[n] == ' ');
    *text = io->is_bad ? "" : at + n + 1;
    if (!io->is_bad) io->at = end + 1;
}

/* A text that may be missing. */
static void walk_optional(struct file_io *io, const char *keyword, const char **text)
{
    const char *shown = *text ? *text : "";
    char *with_sign = io->to ? xasprintf("%s%s", *text ? "=" : "", shown) : NULL;
    shown = with_sign;
    walk_text(io, keyword, &shown);
    free(with_sign);
    if (io->to) return;
    require(io, *shown == '=' || *shown == '\0');
    *text = *shown == '=' ? shown + 1 : NULL;
}

static void walk_number(struct file_io *io, const char *keyword, uint64_t *number, uint64_t most)
{
    char digits[24], *end;
    const char *text = digits;
    (void)snprintf(digits, sizeof digits, "%" PRIu64, *number);
    walk_text(io, keyword, &text);
    errno = 0;
    *number = strtoull(text, &end, 10);
    require(io, isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && *number <= most);
    if (io->is_bad) *number = 0;
}

/* A number in a variable of any type. */
#define WALK_NUMBER(io, keyword, variable, most)                   \
    do {                                                           \
        uint64_t number_ = (uint64_t)(variable);                   \
        walk_number(io, keyword, &number_, most);                  \
        if (!(io)->to) (variable) = (__typeof__(variable))number_; \
    } while (0)

/* One of n words. Returns its number; 0 for any other word. */
static int walk_word(struct file_io *io, const char *keyword, int word, const char *const *words,
                     int n)
{
    const char *text = words[word];
    walk_text(io, keyword, &text);
    for (int i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0) return i;
    require(io, false);
    return 0;
}

/* When reading, allocates an array of n items, after a check that n, which is untrusted, is at most
   the number of unread bytes. */
static void make_array(struct file_io *io, void *array, size_t *n, size_t item_bytes)
{
    if (io->to) return;
    require(io, !io->is_bad && *n <= (size_t)(io->end - io->at));
    if (io->is_bad) *n = 0;
    *(void **)array = xcalloc(*n + 1, item_bytes);
}

/* ---- the file ---- */

static void walk_place(struct file_io *io, struct checkpoint_file *file)
{
    static const char *const states[] = {"loading", "loaded", "partial"};
    file->state = (enum checkpoint_state)walk_word(io, "state", (int)file->state, states, 3);
    WALK_NUMBER(io, "directory", file->directory, CHECKPOINT_MOST_DIRECTORIES);
    WALK_NUMBER(io, "directories", file->n_directories, CHECKPOINT_MOST_DIRECTORIES);
    require(io, file->directory < file->n_directories);
    make_array(io, &file->directories, &file->n_directories, sizeof *file->directories);
    for (size_t i = 0; i < file->n_directories && !io->is_bad; i++) {
        walk_text(io, "path", &file->directories[i]);
        require(io, *file->directories[i] != '\0');
    }
    WALK_NUMBER(io, "lanes", file->n_lanes, MAX_LANES);
    require(io, file->n_lanes > 0);
}

static void walk_options(struct file_io *io, struct checkpoint_file *file)
{
    WALK_NUMBER(io, "options", file->n_options, MAX_OPTIONS);
    make_array(io, &file->options, &file->n_options, sizeof *file->options);
    for (size_t i = 0; i < file->n_options && !io->is_bad; i++)
        walk_text(io, "option", &file->options[i]);
}

static void walk_input(struct file_io *io, const char *keyword, struct checkpoint_input *input)
{
    walk_text(io, keyword, &input->path);
    WALK_NUMBER(io, "bytes", input->n_bytes, UINT64_MAX);
    WALK_NUMBER(io, "mtime", input->mtime_ns, INT64_MAX);
}

static void walk_inputs(struct file_io *io, struct checkpoint_file *file)
{
    static const char *const readings[] = {"once", "again"};
    file->can_read_again = walk_word(io, "read", file->can_read_again, readings, 2) == 1;
    WALK_NUMBER(io, "inputs", file->n_inputs, SIZE_MAX / 64);
    make_array(io, &file->inputs, &file->n_inputs, sizeof *file->inputs);
    for (size_t i = 0; i < file->n_inputs && !io->is_bad; i++) {
        walk_input(io, "input", &file->inputs[i]);
        require(io, *file->inputs[i].path != '\0');
    }
    walk_input(io, "fasta", &file->fasta);
}

static void walk_count(struct file_io *io, int kind, struct checkpoint_output *output)
{
    walk_optional(io, count_kind_name(kind), &output->counts[kind]);
    walk_optional(io, "count-options", &output->count_options[kind]);
    require(io, !output->counts[kind] == !output->count_options[kind]);
}

static void walk_output(struct file_io *io, struct checkpoint_output *output)
{
    static const char *const temporaries[CHECKPOINT_N_TEMPORARIES] = {
        "temporary", "index-temporary", "also-temporary"};
    walk_optional(io, "output", &output->path);
    walk_optional(io, "index", &output->index);
    walk_optional(io, "also", &output->also);
    for (int kind = 0; kind < COUNT_N_KINDS; kind++) walk_count(io, kind, output);
    walk_optional(io, "statistics", &output->statistics);
    walk_optional(io, "metrics", &output->metrics);
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++)
        walk_optional(io, temporaries[i], &output->temporaries[i]);
    WALK_NUMBER(io, "count-temporaries", output->n_count_temporaries, SIZE_MAX / 64);
    make_array(io, &output->count_temporaries, &output->n_count_temporaries,
               sizeof *output->count_temporaries);
    for (size_t i = 0; i < output->n_count_temporaries && !io->is_bad; i++)
        walk_text(io, "temporary", &output->count_temporaries[i]);
}

/* The totals and the header. */
static void walk_content(struct file_io *io, struct checkpoint_file *file)
{
    WALK_NUMBER(io, "runs", file->n_runs, UINT32_MAX);
    WALK_NUMBER(io, "records", file->sum.n_records, UINT64_MAX);
    WALK_NUMBER(io, "content-bytes", file->sum.n_bytes, UINT64_MAX);
    WALK_NUMBER(io, "sum", file->sum.hash, UINT64_MAX);
    walk_text(io, "header", &file->header);
    require(io, io->at == io->end);
}

static void walk_file(struct file_io *io, struct checkpoint_file *file)
{
    walk_place(io, file);
    walk_options(io, file);
    walk_inputs(io, file);
    walk_output(io, &file->output);
    walk_content(io, file);
}

void checkpoint_file_format(const struct checkpoint_file *file, kstring_t *text)
{
    struct file_io io = {.to = text};
    struct checkpoint_file copy = *file;        /* walk_file changes nothing in it */
    size_t start = text->l;
    put(text, "%s%d\n", first_word, CHECKPOINT_VERSION);
    walk_file(&io, &copy);
    uint64_t sum = long_hash(text->s + start, text->l - start);
    put(text, "end %016" PRIx64 "\n", sum);
}

/* Returns the problem with the first line, or NULL. */
static const char *check_version(const char *text, size_t n_bytes)
{
    const size_t n = sizeof first_word - 1;
    if (n_bytes <= n || memcmp(text, first_word, n) != 0)
        return "has a STORE file that rocksort did not write; sort the input again";
    if (n_bytes > n + 1 && text[n] == '0' + CHECKPOINT_VERSION && text[n + 1] == '\n') return NULL;
    return "was written by another version of rocksort; resume it with that one, or sort the input "
           "again";
}

/* True if the text ends with its checksum. */
static bool verify_end(const char *text, size_t n_bytes)
{
    char want[END_BYTES + 1];
    if (n_bytes < END_BYTES) return false;
    (void)snprintf(want, sizeof want, "end %016" PRIx64 "\n",
                   long_hash(text, n_bytes - END_BYTES));
    return memcmp(text + n_bytes - END_BYTES, want, END_BYTES) == 0;
}

int checkpoint_file_parse(const char *text, size_t n_bytes, struct checkpoint_file *file,
                          const char **problem)
{
    *file = (struct checkpoint_file){0};
    *problem = check_version(text, n_bytes);
    if (*problem) return -1;
    *problem = "has a damaged STORE file; sort the input again";
    if (!verify_end(text, n_bytes)) return -1;
    file->memory = xmemdup(text, n_bytes);
    /* check_version has read the first line. */
    struct file_io io = {.at = file->memory + sizeof first_word + 1,
                         .end = file->memory + n_bytes - END_BYTES};
    walk_file(&io, file);
    if (!io.is_bad) return 0;
    checkpoint_file_release(file);
    return -1;
}

const char *checkpoint_temporary(const struct checkpoint_output *output, size_t i)
{
    return i < CHECKPOINT_N_TEMPORARIES ? output->temporaries[i]
                                        : output->count_temporaries[i - CHECKPOINT_N_TEMPORARIES];
}

void checkpoint_file_release(struct checkpoint_file *file)
{
    free(file->directories);
    free(file->inputs);
    free(file->options);
    free(file->output.count_temporaries);
    free(file->memory);
    *file = (struct checkpoint_file){0};
}
