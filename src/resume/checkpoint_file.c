/*
 * checkpoint_file.c -- see checkpoint_file.h.
 *
 * One description of the file serves both directions: walk_file names each line and its values, and
 * a struct line_io either appends them to a text or parses them. The text is parsed in place, in a
 * copy that the checkpoint file owns: the end of each line becomes a NUL, escapes are replaced, and
 * the checkpoint file points into the copy.
 */
#include "resume/checkpoint_file.h"

#include "util/long_hash.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINE_BYTES = 1 << 20,           /* enough for a path with every byte escaped */
    MAX_LANES = 64,
    MAX_THREADS = 1024,
    MAX_OPTIONS = 1000,
    END_BYTES = 21,                     /* "end ", 16 digits, newline */
};

static const char first_word[] = "rocksort-store ";

/* ---- lines and their values ---- */

struct line_io {
    kstring_t *to;              /* NULL: reading */
    char *at, *end;             /* unread text, without the line "end" */
    char *values;               /* unread part of the current line */
    bool is_bad;                /* the text is no valid checkpoint file */
};

static void put(kstring_t *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(kstring_t *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    xalloc_require(kvsprintf(to, format, args) >= 0);
    va_end(args);
}

static void require(struct line_io *io, bool is_good)
{
    if (!is_good) io->is_bad = true;
}

static void begin_line(struct line_io *io, const char *keyword)
{
    static char nothing[] = "";
    if (io->to) {
        put(io->to, "%s", keyword);
        return;
    }
    char *line = io->at;
    char *newline = line < io->end ? memchr(line, '\n', (size_t)(io->end - line)) : NULL;
    size_t n = strlen(keyword);
    io->values = nothing;
    require(io, newline && newline - line <= MAX_LINE_BYTES && (size_t)(newline - line) > n &&
                    memcmp(line, keyword, n) == 0 && !memchr(line, '\0', (size_t)(newline - line)));
    if (io->is_bad) return;
    *newline = '\0';
    io->values = line + n;
    io->at = newline + 1;
}

static void end_line(struct line_io *io)
{
    if (io->to)
        put(io->to, "\n");
    else
        require(io, *io->values == '\0');
}

/* Reads the space before a value. */
static void begin_value(struct line_io *io)
{
    require(io, *io->values == ' ');
    if (!io->is_bad) io->values++;
}

static void value_number(struct line_io *io, uint64_t *number, uint64_t most)
{
    if (io->to) {
        put(io->to, " %" PRIu64, *number);
        return;
    }
    begin_value(io);
    char *digit = io->values;
    *number = 0;
    for (; *digit >= '0' && *digit <= '9' && !io->is_bad; digit++) {
        unsigned value = (unsigned)(*digit - '0');
        require(io, value <= most && *number <= (most - value) / 10);
        *number = *number * 10 + value;
    }
    require(io, digit > io->values);
    if (io->is_bad) *number = 0;
    io->values = digit;
}

/* A number in a variable of any type. */
#define VALUE_NUMBER(io, variable, most)                        \
    do {                                                        \
        uint64_t number_ = (uint64_t)(variable);                \
        value_number(io, &number_, most);                       \
        if (!(io)->to) (variable) = (__typeof__(variable))number_; \
    } while (0)

#define LINE_NUMBER(io, keyword, variable, most)                \
    do {                                                        \
        begin_line(io, keyword);                                \
        VALUE_NUMBER(io, variable, most);                       \
        end_line(io);                                           \
    } while (0)

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Replaces the escapes in place. Returns false if an escape is wrong. */
static bool unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        char c = *at;
        if (c == '%') {
            int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0 || high + low == 0) return false;
            c = (char)(high << 4 | low);
            at += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

static void put_text(kstring_t *to, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == '%' || c == 127)
            put(to, "%%%02X", c);
        else
            xalloc_require(kputc(c, to) >= 0);
    }
}

/* A text, the last value of its line. */
static void value_text(struct line_io *io, const char **text)
{
    if (io->to) {
        put(io->to, " ");
        put_text(io->to, *text);
        return;
    }
    begin_value(io);
    *text = io->values;
    require(io, unescape(io->values));
    io->values += strlen(io->values);
}

static void line_text(struct line_io *io, const char *keyword, const char **text)
{
    begin_line(io, keyword);
    value_text(io, text);
    end_line(io);
}

static void line_optional(struct line_io *io, const char *keyword, const char **text)
{
    begin_line(io, keyword);
    if (io->to) {
        put(io->to, " %s", *text ? "=" : "none");
        if (*text) put_text(io->to, *text);
    } else {
        value_text(io, text);
        require(io, **text == '=' || strcmp(*text, "none") == 0);
        *text = **text == '=' ? *text + 1 : NULL;
    }
    end_line(io);
}

/* One of n words, the last value of its line. Returns its number; 0 for any other word. */
static int value_word(struct line_io *io, int word, const char *const *words, int n)
{
    const char *text = words[word];
    value_text(io, &text);
    for (int i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0) return i;
    require(io, false);
    return 0;
}

/* When reading, allocates an array of n items, after a check that n, which is untrusted, is at most
   the number of unread bytes. */
static void make_array(struct line_io *io, void *array, size_t *n, size_t item_bytes)
{
    if (io->to) return;
    require(io, !io->is_bad && *n <= (size_t)(io->end - io->at));
    if (io->is_bad) *n = 0;
    *(void **)array = xcalloc(*n + 1, item_bytes);
}

/* ---- the file ---- */

static void walk_place(struct line_io *io, struct checkpoint_file *file)
{
    static const char *const states[] = {"loading", "loaded", "partial"};
    line_text(io, "program", &file->program);
    begin_line(io, "state");
    file->state = (enum checkpoint_state)value_word(io, (int)file->state, states, 3);
    end_line(io);
    begin_line(io, "directory");
    VALUE_NUMBER(io, file->directory, CHECKPOINT_MOST_DIRECTORIES);
    VALUE_NUMBER(io, file->n_directories, CHECKPOINT_MOST_DIRECTORIES);
    end_line(io);
    require(io, file->directory < file->n_directories);
    make_array(io, &file->directories, &file->n_directories, sizeof *file->directories);
    for (size_t i = 0; i < file->n_directories && !io->is_bad; i++) {
        line_text(io, "path", &file->directories[i]);
        require(io, *file->directories[i] != '\0');
    }
    LINE_NUMBER(io, "lanes", file->n_lanes, MAX_LANES);
    require(io, file->n_lanes > 0);
}

static void walk_resources(struct line_io *io, struct checkpoint_resources *resources)
{
    LINE_NUMBER(io, "threads", resources->n_threads, MAX_THREADS);
    begin_line(io, "memory");
    VALUE_NUMBER(io, resources->thread_bytes, SIZE_MAX);
    VALUE_NUMBER(io, resources->total_bytes, SIZE_MAX);
    end_line(io);
    require(io, resources->n_threads > 0 &&
                    (resources->thread_bytes > 0 || resources->total_bytes > 0));
    const char *codec = resources->codec_auto ? NULL : temp_codec_name(resources->codec);
    line_optional(io, "codec", &codec);
    resources->codec_auto = !codec;
    require(io, !codec || temp_codec_parse(codec, &resources->codec) == 0);
}

/* The values that describe a file. */
static void walk_input(struct line_io *io, struct checkpoint_input *input)
{
    VALUE_NUMBER(io, input->n_bytes, UINT64_MAX);
    VALUE_NUMBER(io, input->mtime_ns, INT64_MAX);
    value_text(io, &input->path);
    require(io, *input->path != '\0');
}

static void walk_minhash(struct line_io *io, struct checkpoint_file *file)
{
    struct minhash_settings *m = &file->rules.minhash;
    begin_line(io, "minhash");
    VALUE_NUMBER(io, m->k, MINHASH_K_MAX);
    VALUE_NUMBER(io, m->forward_only, 1);
    VALUE_NUMBER(io, m->squeeze, 1);
    VALUE_NUMBER(io, file->minhash_window, INT32_MAX);
    end_line(io);
    require(io, m->k >= MINHASH_K_MIN && file->minhash_window > 0);
    begin_line(io, "fasta");
    if (io->to ? file->fasta.path != NULL : strcmp(io->values, " none") != 0) {
        walk_input(io, &file->fasta);
    } else {
        const char *none = "none";
        value_text(io, &none);
    }
    end_line(io);
}

/* True if records are sorted by coordinate, or, for --split-by, by a tag and then by coordinate. */
static bool is_by_coordinate(const struct sort_rules *rules)
{
    return rules->order == SORT_COORDINATE ||
           (rules->order == SORT_TAG && rules->below == SORT_COORDINATE);
}

static void walk_rules(struct line_io *io, struct checkpoint_file *file)
{
    struct sort_rules *rules = &file->rules;
    const char *order_word = sort_order_word(rules->order);
    const char *below_word = sort_order_word(rules->below);
    char tag_text[3] = {rules->tag[0], rules->tag[0] ? rules->tag[1] : '\0', '\0'};
    const char *tag = tag_text[0] ? tag_text : NULL;
    line_text(io, "order", &order_word);
    line_text(io, "below", &below_word);
    line_optional(io, "tag", &tag);
    int order = sort_order_of_word(order_word), below = sort_order_of_word(below_word);
    require(io, order >= 0 && order != SORT_COORDINATE_LONG && below >= 0 &&
                    below <= SORT_NAME_LEXICAL && (order == SORT_TAG) == (tag != NULL) &&
                    (!tag || strlen(tag) == 2));
    if (!io->to && !io->is_bad) {
        rules->order = (enum sort_order)order;
        rules->below = (enum sort_order)below;
        if (tag) memcpy(rules->tag, tag, 2);
    }
    walk_minhash(io, file);
    LINE_NUMBER(io, "seed", rules->seed, UINT64_MAX);
    line_optional(io, "fixmate", &file->fixmate);
    line_optional(io, "markdup", &file->markdup);
    require(io, !file->markdup || is_by_coordinate(rules));
}

static void walk_inputs(struct line_io *io, struct checkpoint_file *file)
{
    static const char *const readings[] = {"once", "again"};
    begin_line(io, "inputs");
    VALUE_NUMBER(io, file->n_inputs, SIZE_MAX / 64);
    file->can_read_again = value_word(io, file->can_read_again, readings, 2) == 1;
    end_line(io);
    make_array(io, &file->inputs, &file->n_inputs, sizeof *file->inputs);
    for (size_t i = 0; i < file->n_inputs && !io->is_bad; i++) {
        begin_line(io, "input");
        walk_input(io, &file->inputs[i]);
        end_line(io);
    }
}

/* "-1 auto", or "1 igzip". */
static void walk_level(struct line_io *io, struct checkpoint_output *output)
{
    static const char default_level[] = " -1";
    const size_t n = sizeof default_level - 1;
    const char *engine = bgzf_engine_name(output->engine);
    begin_line(io, "output-level");
    if (io->to ? output->level >= 0 : strncmp(io->values, default_level, n) != 0) {
        VALUE_NUMBER(io, output->level, 9);
    } else {
        output->level = -1;
        if (io->to)
            put(io->to, "%s", default_level);
        else
            io->values += n;
    }
    value_text(io, &engine);
    end_line(io);
    require(io, bgzf_engine_parse(engine, &output->engine) == 0);
}

static void walk_output(struct line_io *io, struct checkpoint_output *output)
{
    line_optional(io, "output", &output->path);
    line_optional(io, "output-format", &output->format);
    walk_level(io, output);
    LINE_NUMBER(io, "output-index", output->write_index, 1);
    LINE_NUMBER(io, "output-fsync", output->durable, 1);
    line_optional(io, "output-columns", &output->columns);
    line_optional(io, "output-split", &output->split_by);
    line_optional(io, "output-also", &output->also);
    for (unsigned i = 0; i < COUNT_N_KINDS; i++)
        line_optional(io, count_kind_name(i), &output->counts[i]);
    line_optional(io, "statistics", &output->statistics);
    line_optional(io, "metrics", &output->metrics);
    LINE_NUMBER(io, "output-options", output->n_options, MAX_OPTIONS);
    make_array(io, &output->options, &output->n_options, sizeof *output->options);
    for (size_t i = 0; i < output->n_options && !io->is_bad; i++)
        line_text(io, "output-option", &output->options[i]);
    static const char *const temporaries[CHECKPOINT_N_TEMPORARIES] = {
        "temporary", "index-temporary", "also-temporary"};
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++)
        line_optional(io, temporaries[i], &output->temporaries[i]);
}

/* The totals and the header. */
static void walk_content(struct line_io *io, struct checkpoint_file *file)
{
    LINE_NUMBER(io, "runs", file->n_runs, UINT32_MAX);
    LINE_NUMBER(io, "records", file->sum.n_records, UINT64_MAX);
    LINE_NUMBER(io, "bytes", file->sum.n_bytes, UINT64_MAX);
    LINE_NUMBER(io, "sum", file->sum.hash, UINT64_MAX);
    LINE_NUMBER(io, "header", file->header_bytes, SIZE_MAX / 2);
    size_t n = file->header_bytes;
    if (io->to) {
        xalloc_require(kputsn(file->header, n, io->to) >= 0);
        put(io->to, "\n");
        return;
    }
    require(io, io->at < io->end && n == (size_t)(io->end - io->at) - 1 &&
                    io->end[-1] == '\n' && !memchr(io->at, '\0', n));
    if (io->is_bad) return;
    io->end[-1] = '\0';
    file->header = io->at;
}

static void walk_file(struct line_io *io, struct checkpoint_file *file)
{
    walk_place(io, file);
    walk_resources(io, &file->resources);
    walk_rules(io, file);
    walk_inputs(io, file);
    walk_output(io, &file->output);
    walk_content(io, file);
}

void checkpoint_file_format(const struct checkpoint_file *file, kstring_t *text)
{
    struct line_io io = {.to = text};
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
    struct line_io io = {.at = file->memory, .end = file->memory + n_bytes - END_BYTES};
    io.at += sizeof first_word + 1;             /* skips the first line, which check_version has
                                                   read */
    walk_file(&io, file);
    if (!io.is_bad) return 0;
    checkpoint_file_release(file);
    return -1;
}

void checkpoint_file_release(struct checkpoint_file *file)
{
    free(file->directories);
    free(file->inputs);
    free(file->output.options);
    free(file->memory);
    *file = (struct checkpoint_file){0};
}
