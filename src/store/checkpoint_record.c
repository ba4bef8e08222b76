/*
 * checkpoint_record.c -- see checkpoint_record.h.
 *
 * The text is parsed in place, in a copy that the record keeps: lines get their end, texts lose
 * their escapes, and the record points to them.
 */
#include "store/checkpoint_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LINE_BYTES = 1 << 20,           /* paths, all escaped, and names of references */
    MAX_DIRECTORIES = 32,
    MAX_LANES = 64,
    MAX_OPTIONS = 1000,
    END_BYTES = 21,                     /* "end ", 16 digits, newline */
};

static const char first_word[] = "rocksort-store ";

static const char *const state_names[] = {"loading", "loaded", "partial"};

const char *checkpoint_state_name(enum checkpoint_state state)
{
    return state_names[state];
}

/* ---- writing ---- */

static int put_text(kstring_t *to, const char *text)
{
    int r = 0;
    for (; r >= 0 && *text; text++) {
        unsigned char c = (unsigned char)*text;
        r = c < ' ' || c == '%' || c == 127 ? ksprintf(to, "%%%02X", c) : kputc(c, to);
    }
    return r;
}

static int put_line(kstring_t *to, const char *keyword, const char *text)
{
    return kputs(keyword, to) < 0 || kputc(' ', to) < 0 || put_text(to, text) < 0 ||
                   kputc('\n', to) < 0 ? -1 : 0;
}

static int put_optional(kstring_t *to, const char *keyword, const char *text)
{
    if (!text) return ksprintf(to, "%s none\n", keyword);
    return kputs(keyword, to) < 0 || kputs(" =", to) < 0 || put_text(to, text) < 0 ||
                   kputc('\n', to) < 0 ? -1 : 0;
}

static int put_number(kstring_t *to, const char *keyword, uint64_t number)
{
    return ksprintf(to, "%s %" PRIu64 "\n", keyword, number) < 0 ? -1 : 0;
}

static int put_place(kstring_t *to, const struct checkpoint_record *record)
{
    int r = ksprintf(to, "%s%d\n", first_word, CHECKPOINT_VERSION);
    if (r >= 0) r = put_line(to, "program", record->program);
    if (r >= 0) r = put_line(to, "id", record->id);
    if (r >= 0) r = put_line(to, "state", state_names[record->state]);
    if (r >= 0) r = ksprintf(to, "directory %u %zu\n", record->directory, record->n_directories);
    for (size_t i = 0; r >= 0 && i < record->n_directories; i++)
        r = put_line(to, "path", record->directories[i]);
    return r >= 0 ? put_number(to, "lanes", record->n_lanes) : r;
}

static int put_input(kstring_t *to, const char *keyword, const struct checkpoint_input *input)
{
    int r = ksprintf(to, "%s %" PRIu64 " %" PRId64 " ", keyword, input->n_bytes, input->mtime_ns);
    if (r >= 0) r = put_text(to, input->path);
    return r >= 0 ? kputc('\n', to) : r;
}

static int put_rules(kstring_t *to, const struct checkpoint_record *record)
{
    const struct sort_rules *rules = &record->rules;
    const struct minhash_settings *m = &rules->minhash;
    char tag[3] = {rules->tag[0], rules->tag[0] ? rules->tag[1] : '\0', '\0'};
    int r = put_line(to, "order", sort_order_word(rules->order));
    if (r >= 0) r = put_line(to, "below", sort_order_word(rules->below));
    if (r >= 0) r = put_optional(to, "tag", tag[0] ? tag : NULL);
    if (r >= 0) r = ksprintf(to, "minhash %d %d %d %d\n", m->k, m->forward_only, m->squeeze,
                             record->minhash_window);
    if (r >= 0) r = record->fasta.path ? put_input(to, "fasta", &record->fasta)
                                       : kputs("fasta none\n", to);
    return r >= 0 ? put_number(to, "seed", rules->seed) : r;
}

static int put_files(kstring_t *to, const struct checkpoint_record *record)
{
    const struct checkpoint_output *output = &record->output;
    int r = ksprintf(to, "inputs %zu %s\n", record->n_inputs,
                     record->can_read_again ? "again" : "once");
    for (size_t i = 0; r >= 0 && i < record->n_inputs; i++)
        r = put_input(to, "input", &record->inputs[i]);
    if (r >= 0) r = put_optional(to, "output", output->path);
    if (r >= 0) r = put_optional(to, "output-format", output->format);
    if (r >= 0) r = ksprintf(to, "output-level %d\n", output->level);
    if (r >= 0) r = put_number(to, "output-index", output->write_index);
    if (r >= 0) r = put_number(to, "output-options", output->n_options);
    for (size_t i = 0; r >= 0 && i < output->n_options; i++)
        r = put_line(to, "output-option", output->options[i]);
    if (r >= 0) r = put_optional(to, "temporary", output->temporary);
    return r >= 0 ? put_optional(to, "index-temporary", output->index_temporary) : r;
}

static int put_content(kstring_t *to, const struct checkpoint_record *record)
{
    int r = put_number(to, "runs", record->n_runs);
    if (r >= 0) r = put_number(to, "records", record->sum.n_records);
    if (r >= 0) r = put_number(to, "bytes", record->sum.n_bytes);
    if (r >= 0) r = put_number(to, "sum", record->sum.hash);
    if (r >= 0) r = put_number(to, "references", record->n_references);
    for (size_t i = 0; r >= 0 && i < record->n_references; i++) {
        r = ksprintf(to, "reference %" PRIu64 " ", record->reference_lengths[i]);
        if (r >= 0) r = put_text(to, record->reference_names[i]);
        if (r >= 0) r = kputc('\n', to);
    }
    if (r >= 0) r = put_number(to, "header", record->header_bytes);
    if (r >= 0) r = kputsn(record->header, record->header_bytes, to);
    return r >= 0 ? kputc('\n', to) : r;
}

int checkpoint_record_format(const struct checkpoint_record *record, kstring_t *text)
{
    size_t start = text->l;
    if (put_place(text, record) < 0 || put_rules(text, record) < 0 || put_files(text, record) < 0 ||
        put_content(text, record) < 0)
        return -1;
    uint64_t sum = XXH3_64bits(text->s + start, text->l - start);
    return ksprintf(text, "end %016" PRIx64 "\n", sum) < 0 ? -1 : 0;
}

/* ---- parsing ---- */

struct parser {
    char *at, *end;             /* what is left, without the line of the end */
};

/* Takes the next line, which must have this keyword; returns its values, or NULL. */
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

/* Replaces the escapes in place; NULL if there are wrong ones. */
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

/* Parses a whole number at *at up to `stop`, behind which *at is left. */
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

/* No line is shorter than a few bytes: what claims more items than bytes are left is refused before
   memory is taken for it. */
static void *make_array(const struct parser *from, uint64_t n, size_t item_bytes)
{
    if (n > (size_t)(from->end - from->at)) return NULL;
    return calloc((size_t)n + 1, item_bytes);
}

static bool parse_place(struct parser *from, struct checkpoint_record *record)
{
    uint64_t directory, n, lanes;
    char *at;
    if (!take_text(from, "program", &record->program) || !take_text(from, "id", &record->id) ||
        strlen(record->id) != CHECKPOINT_ID_BYTES ||
        strspn(record->id, "0123456789abcdef") != CHECKPOINT_ID_BYTES)
        return false;
    int state = take_word(from, "state", state_names, CHECKPOINT_PARTIAL + 1);
    if (state < 0) return false;
    record->state = (enum checkpoint_state)state;
    if (!(at = take_line(from, "directory")) ||
        !parse_number(&at, ' ', MAX_DIRECTORIES, &directory) ||
        !parse_number(&at, '\0', MAX_DIRECTORIES, &n) || directory >= n)
        return false;
    record->directory = (unsigned)directory;
    record->n_directories = (size_t)n;
    record->directories = make_array(from, n, sizeof *record->directories);
    if (!record->directories) return false;
    for (size_t i = 0; i < n; i++)
        if (!take_text(from, "path", &record->directories[i]) || !*record->directories[i])
            return false;
    if (!take_number(from, "lanes", MAX_LANES, &lanes) || lanes == 0) return false;
    record->n_lanes = (unsigned)lanes;
    return true;
}

static bool parse_minhash(struct parser *from, struct checkpoint_record *record)
{
    struct minhash_settings *m = &record->rules.minhash;
    char *at = take_line(from, "minhash");
    uint64_t k, forward_only, squeeze, window;
    if (!at || !parse_number(&at, ' ', MINHASH_K_MAX, &k) ||
        !parse_number(&at, ' ', 1, &forward_only) || !parse_number(&at, ' ', 1, &squeeze) ||
        !parse_number(&at, '\0', INT32_MAX, &window) || k < MINHASH_K_MIN || window == 0)
        return false;
    m->k = (int)k;
    m->forward_only = forward_only;
    m->squeeze = squeeze;
    record->minhash_window = (int)window;
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

static bool parse_rules(struct parser *from, struct checkpoint_record *record)
{
    struct sort_rules *rules = &record->rules;
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
    if (!parse_minhash(from, record)) return false;
    char *at = take_line(from, "fasta");
    if (!at || (strcmp(at, "none") != 0 && !parse_input(at, &record->fasta))) return false;
    return take_number(from, "seed", UINT64_MAX, &rules->seed);
}

static bool parse_inputs(struct parser *from, struct checkpoint_record *record)
{
    uint64_t n;
    char *at = take_line(from, "inputs");
    if (!at || !parse_number(&at, ' ', SIZE_MAX / 64, &n)) return false;
    record->can_read_again = strcmp(at, "again") == 0;
    if (!record->can_read_again && strcmp(at, "once") != 0) return false;
    record->n_inputs = (size_t)n;
    record->inputs = make_array(from, n, sizeof *record->inputs);
    if (!record->inputs) return false;
    for (size_t i = 0; i < n; i++) {
        at = take_line(from, "input");
        if (!at || !parse_input(at, &record->inputs[i])) return false;
    }
    return true;
}

static bool parse_output(struct parser *from, struct checkpoint_record *record)
{
    struct checkpoint_output *output = &record->output;
    uint64_t write_index, n;
    if (!take_optional(from, "output", &output->path) ||
        !take_optional(from, "output-format", &output->format))
        return false;
    const char *level = take_line(from, "output-level");
    if (!level) return false;
    if (strcmp(level, "-1") == 0)
        output->level = -1;
    else if (*level >= '0' && *level <= '9' && !level[1])
        output->level = *level - '0';
    else
        return false;
    if (!take_number(from, "output-index", 1, &write_index) ||
        !take_number(from, "output-options", MAX_OPTIONS, &n))
        return false;
    output->write_index = write_index;
    output->n_options = (size_t)n;
    output->options = make_array(from, n, sizeof *output->options);
    if (!output->options) return false;
    for (size_t i = 0; i < n; i++)
        if (!take_text(from, "output-option", &output->options[i])) return false;
    return take_optional(from, "temporary", &output->temporary) &&
           take_optional(from, "index-temporary", &output->index_temporary);
}

static bool parse_references(struct parser *from, struct checkpoint_record *record)
{
    uint64_t n;
    if (!take_number(from, "references", INT32_MAX, &n)) return false;
    record->n_references = (size_t)n;
    record->reference_names = make_array(from, n, sizeof *record->reference_names);
    record->reference_lengths = make_array(from, n, sizeof *record->reference_lengths);
    if (!record->reference_names || !record->reference_lengths) return false;
    for (size_t i = 0; i < n; i++) {
        char *at = take_line(from, "reference");
        if (!at || !parse_number(&at, ' ', INT64_MAX, &record->reference_lengths[i]) ||
            !unescape(at))
            return false;
        record->reference_names[i] = at;
    }
    return true;
}

static bool parse_content(struct parser *from, struct checkpoint_record *record)
{
    uint64_t n;
    if (!take_number(from, "runs", UINT32_MAX, &record->n_runs) ||
        !take_number(from, "records", UINT64_MAX, &record->sum.n_records) ||
        !take_number(from, "bytes", UINT64_MAX, &record->sum.n_bytes) ||
        !take_number(from, "sum", UINT64_MAX, &record->sum.hash) ||
        !parse_references(from, record) || !take_number(from, "header", SIZE_MAX / 2, &n) ||
        n != (size_t)(from->end - from->at) - 1 || from->at == from->end)
        return false;
    if (from->end[-1] != '\n' || memchr(from->at, '\0', (size_t)n)) return false;
    from->end[-1] = '\0';
    record->header = from->at;
    record->header_bytes = (size_t)n;
    return true;
}

/* Says what is wrong with the first line, or nothing. */
static const char *check_version(const char *text, size_t n_bytes)
{
    const size_t n = sizeof first_word - 1;
    if (n_bytes <= n || memcmp(text, first_word, n) != 0)
        return "has a STORE file that rocksort did not write; sort the input again";
    if (n_bytes > n + 1 && text[n] == '0' + CHECKPOINT_VERSION && text[n + 1] == '\n')
        return NULL;
    return "was written by another version of rocksort; resume it with that one";
}

/* True if the text ends with the checksum of what is before. */
static bool verify_end(const char *text, size_t n_bytes)
{
    char want[END_BYTES + 1];
    if (n_bytes < END_BYTES) return false;
    (void)snprintf(want, sizeof want, "end %016" PRIx64 "\n",
                   (uint64_t)XXH3_64bits(text, n_bytes - END_BYTES));
    return memcmp(text + n_bytes - END_BYTES, want, END_BYTES) == 0;
}

int checkpoint_record_parse(const char *text, size_t n_bytes, struct checkpoint_record *record,
                       const char **problem)
{
    *record = (struct checkpoint_record){0};
    *problem = check_version(text, n_bytes);
    if (*problem) return -1;
    *problem = "has a damaged STORE file; sort the input again";
    if (!verify_end(text, n_bytes)) return -1;
    record->memory = malloc(n_bytes);
    if (!record->memory) {
        *problem = "has a STORE file that does not fit into memory";
        return -1;
    }
    memcpy(record->memory, text, n_bytes);
    struct parser from = {record->memory, record->memory + n_bytes - END_BYTES};
    from.at += sizeof first_word + 1;           /* its version, checked, and the newline */
    if (parse_place(&from, record) && parse_rules(&from, record) && parse_inputs(&from, record) &&
        parse_output(&from, record) && parse_content(&from, record))
        return 0;
    checkpoint_record_release(record);
    return -1;
}

void checkpoint_record_release(struct checkpoint_record *record)
{
    free(record->directories);
    free(record->inputs);
    free(record->output.options);
    free(record->reference_names);
    free(record->reference_lengths);
    free(record->memory);
    *record = (struct checkpoint_record){0};
}
