/*
 * fuzz_options.c -- command lines. The input is a list of arguments, each ended by a newline. The
 * first byte of each says which option comes before it, or that none does. If the arguments are
 * accepted the program can work with the settings; if not there is a message or the usage text.
 * Sizes are compared with a plain calculation.
 */
#include "fuzz_input.h"

#include "cli/sort_options.h"
#include "util/size.h"

#include <getopt.h>
#include <string.h>
#include <strings.h>

enum { MAX_ARGUMENTS = 24 };

/* Options that take an argument, then others. */
static const char *const words[] = {
    "-@", "-m", "-l", "-o", "-O", "-T", "-t", "-I", "-K", "-w", "-s", "--max-memory",
    "--temp-codec", "--input-fmt-option", "--output-fmt-option", "--reference", "--verbosity",
    "--shuffle=", "--help=", "-u", "-n", "-N", "-M", "-R", "-H", "-k", "-f", "--write-index",
    "--no-PG", "--template-coordinate", "--checksum", "--checksum-only", "--shuffle", "--help",
    "--version", "--", "-", "", "--deflate=",
};
enum { N_WORDS = sizeof words / sizeof *words, N_WITH_ARGUMENT = 19 };

void fuzz_begin(void)
{
    opterr = 0;
}

/* Digits, a point and digits, a unit; nothing, B or iB. The point needs a unit. */
static void check_size(const char *text)
{
    enum { MOST_DIGITS = 30 };
    uint64_t value = 0;
    int r = size_parse(text, &value);
    size_t n_whole = strspn(text, "0123456789");
    const char *at = text + n_whole;
    size_t n_fraction = *at == '.' ? strspn(at + 1, "0123456789") : 0;
    bool has_point = *at == '.';
    if (has_point) at += 1 + n_fraction;
    const char *known = *at ? strchr("KkMmGgTt", *at) : NULL;
    bool well_formed = n_whole > 0 && (!has_point || (n_fraction > 0 && known)) &&
                       (!*at || (known && (!at[1] || strcasecmp(at + 1, "B") == 0 ||
                                           strcasecmp(at + 1, "iB") == 0)));
    FUZZ_CHECK(r == 0 ? well_formed : r == -1);
    if (!well_formed || n_whole > MOST_DIGITS) return;
    size_t shift = known ? 10 * ((size_t)(known - "KkMmGgTt") / 2 + 1) : 0;
    unsigned __int128 wanted = 0, fraction = 0, scale = 1;
    for (size_t i = 0; i < n_whole; i++) wanted = wanted * 10 + (unsigned)(text[i] - '0');
    bool fits = wanted <= (unsigned __int128)INT64_MAX >> shift;
    FUZZ_CHECK(fits == (r == 0));
    if (!fits) return;
    for (size_t i = 0; i < n_fraction && i < 20; i++, scale *= 10)
        fraction = fraction * 10 + (unsigned)(text[n_whole + 1 + i] - '0');
    wanted = (wanted << shift) + (fraction << shift) / scale;
    /* A double has 53 bits of the fraction. */
    FUZZ_CHECK(has_point ? value <= wanted + 2 && wanted <= value + 2 : value == wanted);
}

static void check_settings(const struct sort_options *o)
{
    const struct sort_settings *s = &o->settings;
    FUZZ_CHECK(s->n_inputs >= 1 && s->inputs && s->n_temp_prefixes >= 1 && s->temp_prefixes);
    for (size_t i = 0; i < s->n_inputs; i++) FUZZ_CHECK(s->inputs[i]);
    FUZZ_CHECK(s->n_threads >= 1 && s->n_threads <= 1024);
    FUZZ_CHECK(s->level >= -1 && s->level <= 9);
    FUZZ_CHECK(bgzf_engine_is_built_in(s->engine));
    bool is_bgzf = output_format_is_bgzf(&s->output_format);
    FUZZ_CHECK(!is_bgzf || s->sum_only || bgzf_engine_has_level(s->engine, s->level));
    FUZZ_CHECK(s->memory_bytes >= 1 << 20 && s->memory_bytes <= SIZE_MAX / 2);
    FUZZ_CHECK(s->rules.minhash.k >= MINHASH_K_MIN && s->rules.minhash.k <= MINHASH_K_MAX);
    FUZZ_CHECK(s->minhash_window >= 1);
    FUZZ_CHECK(s->output_format.kind <= OUTPUT_PARQUET);
    FUZZ_CHECK(!s->index_path || s->output);
    FUZZ_CHECK(s->rules.order != SORT_TAG || (s->rules.tag[0] && s->rules.tag[1]));
    for (const hts_opt *opt = s->output_format.hts.specific; opt; opt = opt->next)
        FUZZ_CHECK(opt->opt != HTS_OPT_NTHREADS);
    for (const hts_opt *opt = s->input_format.specific; opt; opt = opt->next)
        FUZZ_CHECK(opt->opt != HTS_OPT_NTHREADS);
}

/* getopt keeps a pointer into the arguments of the call before. */
static void forget_arguments(void)
{
    char name[] = "x";
    char *argv[] = {name, NULL};
    optind = 0;
    (void)getopt(1, argv, "");
}

static void parse(int argc, char **argv, enum sort_dialect dialect)
{
    struct sort_options options;
    diag_renew();
    forget_arguments();
    sort_options_init(&options, dialect);
    if (sort_options_parse(&options, argc, argv) == 0 && !options.help && !options.version) {
        FUZZ_CHECK(!diag_failed());
        check_settings(&options);
    }
    sort_options_release(&options);
}

/* The arguments of one option: its word and its text, in one where the word ends so. */
static int put_option(char **argv, int argc, unsigned which, const char *text)
{
    const char *word = words[which];
    size_t word_bytes = strlen(word), text_bytes = strlen(text);
    bool joined = word_bytes > 0 && word[word_bytes - 1] == '=';
    if (joined) {
        argv[argc] = fuzz_alloc(word_bytes + text_bytes + 1);
        memcpy(argv[argc], word, word_bytes);
        memcpy(argv[argc++] + word_bytes, text, text_bytes + 1);
        return argc;
    }
    if (word_bytes > 0) argv[argc++] = fuzz_copy(word, word_bytes + 1);
    if (which < N_WITH_ARGUMENT || word_bytes == 0) argv[argc++] = fuzz_copy(text, text_bytes + 1);
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    char *argv[2 * MAX_ARGUMENTS + 2] = {NULL}, *all[2 * MAX_ARGUMENTS + 2];
    int argc = 0;
    enum sort_dialect dialect = fuzz_one_in(&in, 4) ? DIALECT_SAMTOOLS_SORT : DIALECT_ROCKSORT;
    argv[argc++] = fuzz_copy("rocksort", sizeof "rocksort");
    for (int i = 0; i < MAX_ARGUMENTS && fuzz_left(&in) > 0; i++) {
        unsigned which = fuzz_below(&in, N_WORDS);
        const uint8_t *newline = fuzz_left(&in) ? memchr(in.at, '\n', fuzz_left(&in)) : NULL;
        size_t n = newline ? (size_t)(newline - in.at) : fuzz_left(&in);
        OWNED char *text = fuzz_alloc(n + 1);
        fuzz_fill(&in, (uint8_t *)text, n);
        text[n] = '\0';
        if (newline) in.at++;
        check_size(text);
        argc = put_option(argv, argc, which, text);
    }
    memcpy(all, argv, sizeof all);      /* getopt changes their order */
    parse(argc, argv, dialect);
    for (int i = 0; i < argc; i++) free(all[i]);
    return 0;
}
