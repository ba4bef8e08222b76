/*
 * checkpoint_file.c -- see checkpoint_file.h.
 *
 * The text is parsed in place, in a copy that the checkpoint file owns: the end of each line
 * becomes a NUL, escapes are replaced, and the checkpoint file points into the copy.
 */
#include "store/checkpoint_file.h"

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

static const char *const state_names[] = {"loading", "loaded", "partial"};

/* ---- writing ---- */

static void put(kstring_t *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(kstring_t *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    xalloc_require(kvsprintf(to, format, args) >= 0);
    va_end(args);
}

/* Appends a text with escapes. */
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

static void put_line(kstring_t *to, const char *keyword, const char *text)
{
    put(to, "%s ", keyword);
    put_text(to, text);
    put(to, "\n");
}

static void put_optional(kstring_t *to, const char *keyword, const char *text)
{
    put(to, "%s %s", keyword, text ? "=" : "none");
    if (text) put_text(to, text);
    put(to, "\n");
}

static void put_number(kstring_t *to, const char *keyword, uint64_t number)
{
    put(to, "%s %" PRIu64 "\n", keyword, number);
}

static void put_place(kstring_t *to, const struct checkpoint_file *file)
{
    put(to, "%s%d\n", first_word, CHECKPOINT_VERSION);
    put_line(to, "program", file->program);
    put_line(to, "id", file->id);
    put_line(to, "state", state_names[file->state]);
    put(to, "directory %u %zu\n", file->directory, file->n_directories);
    for (size_t i = 0; i < file->n_directories; i++)
        put_line(to, "path", file->directories[i]);
    put_number(to, "lanes", file->n_lanes);
}

static void put_resources(kstring_t *to, const struct checkpoint_resources *resources)
{
    put_number(to, "threads", resources->n_threads);
    put(to, "memory %" PRIu64 " %" PRIu64 "\n", resources->thread_bytes, resources->total_bytes);
    put_optional(to, "codec", resources->codec_auto ? NULL : temp_codec_name(resources->codec));
}

static void put_input(kstring_t *to, const char *keyword, const struct checkpoint_input *input)
{
    put(to, "%s %" PRIu64 " %" PRId64 " ", keyword, input->n_bytes, input->mtime_ns);
    put_text(to, input->path);
    put(to, "\n");
}

static void put_rules(kstring_t *to, const struct checkpoint_file *file)
{
    const struct sort_rules *rules = &file->rules;
    const struct minhash_settings *m = &rules->minhash;
    char tag[3] = {rules->tag[0], rules->tag[0] ? rules->tag[1] : '\0', '\0'};
    put_line(to, "order", sort_order_word(rules->order));
    put_line(to, "below", sort_order_word(rules->below));
    put_optional(to, "tag", tag[0] ? tag : NULL);
    put(to, "minhash %d %d %d %d\n", m->k, m->forward_only, m->squeeze, file->minhash_window);
    if (file->fasta.path)
        put_input(to, "fasta", &file->fasta);
    else
        put(to, "fasta none\n");
    put_number(to, "seed", rules->seed);
    put_optional(to, "fixmate", file->fixmate);
    put_optional(to, "markdup", file->markdup);
}

const char *checkpoint_temporary(const struct checkpoint_output *output, int i)
{
    return i == 0 ? output->temporary : i == 1 ? output->also_temporary : output->index_temporary;
}

const char *checkpoint_count_word(int i)
{
    static const char *const words[CHECKPOINT_N_COUNTS] = {"flagstat", "idxstats", "coverage"};
    return words[i];
}

static void put_files(kstring_t *to, const struct checkpoint_file *file)
{
    const struct checkpoint_output *output = &file->output;
    put(to, "inputs %zu %s\n", file->n_inputs, file->can_read_again ? "again" : "once");
    for (size_t i = 0; i < file->n_inputs; i++) put_input(to, "input", &file->inputs[i]);
    put_optional(to, "output", output->path);
    put_optional(to, "output-format", output->format);
    put(to, "output-level %d %s\n", output->level, bgzf_engine_name(output->engine));
    put_number(to, "output-index", output->write_index);
    put_number(to, "output-fsync", output->durable);
    put_optional(to, "output-columns", output->columns);
    put_optional(to, "output-split", output->split_by);
    put_optional(to, "output-also", output->also);
    for (int i = 0; i < CHECKPOINT_N_COUNTS; i++)
        put_optional(to, checkpoint_count_word(i), output->counts[i]);
    put_optional(to, "statistics", output->statistics);
    put_optional(to, "metrics", output->metrics);
    put_number(to, "output-options", output->n_options);
    for (size_t i = 0; i < output->n_options; i++)
        put_line(to, "output-option", output->options[i]);
    put_optional(to, "temporary", output->temporary);
    put_optional(to, "index-temporary", output->index_temporary);
    put_optional(to, "also-temporary", output->also_temporary);
}

static void put_content(kstring_t *to, const struct checkpoint_file *file)
{
    put_number(to, "runs", file->n_runs);
    put_number(to, "records", file->sum.n_records);
    put_number(to, "bytes", file->sum.n_bytes);
    put_number(to, "sum", file->sum.hash);
    put_number(to, "header", file->header_bytes);
    xalloc_require(kputsn(file->header, file->header_bytes, to) >= 0);
    put(to, "\n");
}

void checkpoint_file_format(const struct checkpoint_file *file, kstring_t *text)
{
    size_t start = text->l;
    put_place(text, file);
    put_resources(text, &file->resources);
    put_rules(text, file);
    put_files(text, file);
    put_content(text, file);
    uint64_t sum = long_hash(text->s + start, text->l - start);
    put(text, "end %016" PRIx64 "\n", sum);
}

/* ---- parsing ---- */

struct parser {
    char *at, *end;             /* the text that is left, without the line "end" */
};

/* Takes the next line and returns its values; NULL if it has another keyword. */
static char *take_line(struct parser *from, const char *keyword)
{
    char *line = from->at;
    char *newline = line < from->end ? memchr(line, '\n', (size_t)(from->end - line)) : NULL;
    size_t n = strlen(keyword);
    if (!newline || newline - line > MAX_LINE_BYTES || (size_t)(newline - line) <= n ||
        memcmp(line, keyword, n) != 0 || line[n] != ' ' ||
        memchr(line, '\0', (size_t)(newline - line)))
        return NULL;
    *newline = '\0';
    from->at = newline + 1;
    return line + n + 1;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Replaces the escapes in place. Returns the text, or NULL if an escape is wrong. */
static char *unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        char c = *at;
        if (c == '%') {
            int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0 || high + low == 0) return NULL;
            c = (char)(high << 4 | low);
            at += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return text;
}

/* Parses a whole number at *at, which must end with `stop`, and moves *at past that. */
static bool parse_number(char **at, char stop, uint64_t most, uint64_t *number)
{
    char *digit = *at;
    *number = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        unsigned value = (unsigned)(*digit - '0');
        if (value > most || *number > (most - value) / 10) return false;
        *number = *number * 10 + value;
    }
    if (digit == *at || *digit != stop) return false;
    *at = digit + (stop != '\0');
    return true;
}

static bool take_number(struct parser *from, const char *keyword, uint64_t most, uint64_t *number)
{
    char *at = take_line(from, keyword);
    return at && parse_number(&at, '\0', most, number);
}

static bool take_text(struct parser *from, const char *keyword, const char **text)
{
    char *at = take_line(from, keyword);
    return at && (*text = unescape(at)) != NULL;
}

static bool take_optional(struct parser *from, const char *keyword, const char **text)
{
    char *at = take_line(from, keyword);
    *text = NULL;
    if (!at || strcmp(at, "none") == 0) return at != NULL;
    return *at == '=' && (*text = unescape(at + 1)) != NULL;
}

/* Takes one of n words; returns its number, or -1. */
static int take_word(struct parser *from, const char *keyword, const char *const *words, int n)
{
    const char *at = take_line(from, keyword);
    for (int i = 0; at && i < n; i++)
        if (strcmp(at, words[i]) == 0) return i;
    return -1;
}

/* Makes an array for n items that the text claims to have. Returns NULL if there are more items
   than bytes left: the claim is checked before memory is taken for it. */
static void *make_array(const struct parser *from, uint64_t n, size_t item_bytes)
{
    if (n > (size_t)(from->end - from->at)) return NULL;
    return xcalloc((size_t)n + 1, item_bytes);
}

static bool parse_place(struct parser *from, struct checkpoint_file *file)
{
    uint64_t directory, n, lanes;
    char *at;
    if (!take_text(from, "program", &file->program) || !take_text(from, "id", &file->id) ||
        strlen(file->id) != CHECKPOINT_ID_BYTES ||
        strspn(file->id, "0123456789abcdef") != CHECKPOINT_ID_BYTES)
        return false;
    int state = take_word(from, "state", state_names, CHECKPOINT_PARTIAL + 1);
    if (state < 0) return false;
    file->state = (enum checkpoint_state)state;
    if (!(at = take_line(from, "directory")) ||
        !parse_number(&at, ' ', CHECKPOINT_MOST_DIRECTORIES, &directory) ||
        !parse_number(&at, '\0', CHECKPOINT_MOST_DIRECTORIES, &n) || directory >= n)
        return false;
    file->directory = (unsigned)directory;
    file->n_directories = (size_t)n;
    file->directories = make_array(from, n, sizeof *file->directories);
    if (!file->directories) return false;
    for (size_t i = 0; i < n; i++)
        if (!take_text(from, "path", &file->directories[i]) || !*file->directories[i])
            return false;
    if (!take_number(from, "lanes", MAX_LANES, &lanes) || lanes == 0) return false;
    file->n_lanes = (unsigned)lanes;
    return true;
}

static bool parse_codec(struct parser *from, struct checkpoint_resources *resources)
{
    const char *codec;
    if (!take_optional(from, "codec", &codec)) return false;
    resources->codec_auto = !codec;
    return !codec || temp_codec_parse(codec, &resources->codec) == 0;
}

static bool parse_resources(struct parser *from, struct checkpoint_resources *resources)
{
    uint64_t n_threads;
    if (!take_number(from, "threads", MAX_THREADS, &n_threads) || n_threads == 0) return false;
    resources->n_threads = (unsigned)n_threads;
    char *at = take_line(from, "memory");
    return at && parse_number(&at, ' ', SIZE_MAX, &resources->thread_bytes) &&
           parse_number(&at, '\0', SIZE_MAX, &resources->total_bytes) &&
           (resources->thread_bytes > 0 || resources->total_bytes > 0) &&
           parse_codec(from, resources);
}

static bool parse_minhash(struct parser *from, struct checkpoint_file *file)
{
    struct minhash_settings *m = &file->rules.minhash;
    char *at = take_line(from, "minhash");
    uint64_t k, forward_only, squeeze, window;
    if (!at || !parse_number(&at, ' ', MINHASH_K_MAX, &k) ||
        !parse_number(&at, ' ', 1, &forward_only) || !parse_number(&at, ' ', 1, &squeeze) ||
        !parse_number(&at, '\0', INT32_MAX, &window) || k < MINHASH_K_MIN || window == 0)
        return false;
    m->k = (int)k;
    m->forward_only = forward_only;
    m->squeeze = squeeze;
    file->minhash_window = (int)window;
    return true;
}

/* Takes the values of a line that describes a file. */
static bool parse_input(char *at, struct checkpoint_input *input)
{
    uint64_t n_bytes, mtime_ns;
    if (!parse_number(&at, ' ', UINT64_MAX, &n_bytes) ||
        !parse_number(&at, ' ', INT64_MAX, &mtime_ns) || !*at || !unescape(at))
        return false;
    *input = (struct checkpoint_input){at, n_bytes, (int64_t)mtime_ns};
    return true;
}

/* True if records are sorted by coordinate, or, for --split-by, by a tag and then by coordinate. */
static bool is_by_coordinate(const struct sort_rules *rules)
{
    return rules->order == SORT_COORDINATE ||
           (rules->order == SORT_TAG && rules->below == SORT_COORDINATE);
}

static bool parse_rules(struct parser *from, struct checkpoint_file *file)
{
    struct sort_rules *rules = &file->rules;
    const char *tag;
    int order = sort_order_of_word(take_line(from, "order"));
    int below = sort_order_of_word(take_line(from, "below"));
    if (order < 0 || order == SORT_COORDINATE_LONG || below < 0 || below > SORT_NAME_LEXICAL ||
        !take_optional(from, "tag", &tag) || (order == SORT_TAG) != (tag != NULL) ||
        (tag && strlen(tag) != 2))
        return false;
    rules->order = (enum sort_order)order;
    rules->below = (enum sort_order)below;
    if (tag) memcpy(rules->tag, tag, 2);
    if (!parse_minhash(from, file)) return false;
    char *at = take_line(from, "fasta");
    if (!at || (strcmp(at, "none") != 0 && !parse_input(at, &file->fasta))) return false;
    return take_number(from, "seed", UINT64_MAX, &rules->seed) &&
           take_optional(from, "fixmate", &file->fixmate) &&
           take_optional(from, "markdup", &file->markdup) &&
           (!file->markdup || is_by_coordinate(rules));
}

static bool parse_inputs(struct parser *from, struct checkpoint_file *file)
{
    uint64_t n;
    char *at = take_line(from, "inputs");
    if (!at || !parse_number(&at, ' ', SIZE_MAX / 64, &n)) return false;
    file->can_read_again = strcmp(at, "again") == 0;
    if (!file->can_read_again && strcmp(at, "once") != 0) return false;
    file->n_inputs = (size_t)n;
    file->inputs = make_array(from, n, sizeof *file->inputs);
    if (!file->inputs) return false;
    for (size_t i = 0; i < n; i++) {
        at = take_line(from, "input");
        if (!at || !parse_input(at, &file->inputs[i])) return false;
    }
    return true;
}

/* Parses "-1 auto", or "1 igzip". */
static bool parse_level(struct parser *from, struct checkpoint_output *output)
{
    char *at = take_line(from, "output-level");
    uint64_t level = 0;
    if (!at) return false;
    bool is_default = strncmp(at, "-1 ", 3) == 0;
    if (is_default)
        at += 3;
    else if (!parse_number(&at, ' ', 9, &level))
        return false;
    output->level = is_default ? -1 : (int)level;
    return bgzf_engine_parse(at, &output->engine) == 0;
}

static bool parse_output(struct parser *from, struct checkpoint_file *file)
{
    struct checkpoint_output *output = &file->output;
    uint64_t write_index, durable, n;
    if (!take_optional(from, "output", &output->path) ||
        !take_optional(from, "output-format", &output->format))
        return false;
    if (!parse_level(from, output)) return false;
    if (!take_number(from, "output-index", 1, &write_index) ||
        !take_number(from, "output-fsync", 1, &durable) ||
        !take_optional(from, "output-columns", &output->columns) ||
        !take_optional(from, "output-split", &output->split_by) ||
        !take_optional(from, "output-also", &output->also))
        return false;
    for (int i = 0; i < CHECKPOINT_N_COUNTS; i++)
        if (!take_optional(from, checkpoint_count_word(i), &output->counts[i])) return false;
    if (!take_optional(from, "statistics", &output->statistics) ||
        !take_optional(from, "metrics", &output->metrics) ||
        !take_number(from, "output-options", MAX_OPTIONS, &n))
        return false;
    output->write_index = write_index;
    output->durable = durable;
    output->n_options = (size_t)n;
    output->options = make_array(from, n, sizeof *output->options);
    if (!output->options) return false;
    for (size_t i = 0; i < n; i++)
        if (!take_text(from, "output-option", &output->options[i])) return false;
    return take_optional(from, "temporary", &output->temporary) &&
           take_optional(from, "index-temporary", &output->index_temporary) &&
           take_optional(from, "also-temporary", &output->also_temporary);
}

static bool parse_content(struct parser *from, struct checkpoint_file *file)
{
    uint64_t n;
    if (!take_number(from, "runs", UINT32_MAX, &file->n_runs) ||
        !take_number(from, "records", UINT64_MAX, &file->sum.n_records) ||
        !take_number(from, "bytes", UINT64_MAX, &file->sum.n_bytes) ||
        !take_number(from, "sum", UINT64_MAX, &file->sum.hash) ||
        !take_number(from, "header", SIZE_MAX / 2, &n) ||
        n != (size_t)(from->end - from->at) - 1 || from->at == from->end)
        return false;
    if (from->end[-1] != '\n' || memchr(from->at, '\0', (size_t)n)) return false;
    from->end[-1] = '\0';
    file->header = from->at;
    file->header_bytes = (size_t)n;
    return true;
}

/* Returns what is wrong with the first line, or NULL. */
static const char *check_version(const char *text, size_t n_bytes)
{
    const size_t n = sizeof first_word - 1;
    if (n_bytes <= n || memcmp(text, first_word, n) != 0)
        return "has a STORE file that rocksort did not write; sort the input again";
    if (n_bytes > n + 1 && text[n] == '0' + CHECKPOINT_VERSION && text[n + 1] == '\n') return NULL;
    return "was written by another version of rocksort; resume it with that one, or sort the input "
           "again";
}

/* True if the text ends with the checksum of what comes before. */
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
    struct parser from = {file->memory, file->memory + n_bytes - END_BYTES};
    from.at += sizeof first_word + 1;           /* skips the first line, which check_version has
                                                   read */
    if (parse_place(&from, file) && parse_resources(&from, &file->resources) &&
        parse_rules(&from, file) && parse_inputs(&from, file) && parse_output(&from, file) &&
        parse_content(&from, file))
        return 0;
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
