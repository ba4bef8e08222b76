/* sort_options.c -- see sort_options.h. */
#include "command/sort_options.h"

#include "command/machine_facts.h"
#include "command/sort_options_internal.h"
#include "input/input_file.h"
#include "util/diag.h"
#include "util/size.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIN_MEMORY_BYTES ((uint64_t)1 << 20)
#define TEST_BUDGET_VARIABLE "ROCKSORT_TEST_BUDGET"     /* whole budget in bytes; tests only */
#define TEST_PROGRESS_VARIABLE "ROCKSORT_TEST_PROGRESS" /* seconds between lines; tests only */
#define TEST_DURABLE_VARIABLE "ROCKSORT_TEST_DURABLE"   /* seconds before syncs; tests only */
#define TEST_BATCH_VARIABLE "ROCKSORT_TEST_BATCH"       /* small batches, each a run; tests only */

/* See durable.c. A machine needs longer than that to boot. */
enum { DURABLE_AFTER_SECONDS = 30 };

enum { MAX_WINDOW = 1 << 20, MAX_TEMP_DIRS = 32 };

enum long_option {                      /* beyond the characters of short options */
    OPTION_NO_PG = 256,
    OPTION_VERBOSITY,
    OPTION_MAX_MEMORY,
    OPTION_TEMP_CODEC,
    OPTION_TEMPLATE,
    OPTION_SHUFFLE,
    OPTION_INPUT_OPTION,
    OPTION_OUTPUT_OPTION,
    OPTION_REFERENCE,
    OPTION_WRITE_INDEX,
    OPTION_CHECKSUM,
    OPTION_CHECKSUM_ONLY,
    OPTION_RESUME,
    OPTION_NO_RESUME,
    OPTION_PARTIAL,
    OPTION_CLEAN,
    OPTION_YES,
    OPTION_VERIFY,
    OPTION_PLAN,
    OPTION_PROGRESS,
    OPTION_QUIET,
    OPTION_STATS,
    OPTION_FSYNC,
    OPTION_HELP,
    OPTION_VERSION,
};

static const double progress_seconds = 10;      /* between lines of --progress */

static const char short_options[] = "@:m:l:uo:O:T:nNt:MI:K:w:RHs:kfh";

static const struct option long_options[] = {
    {"threads", required_argument, NULL, '@'},
    {"output-fmt", required_argument, NULL, 'O'},
    {"template-coordinate", no_argument, NULL, OPTION_TEMPLATE},
    {"shuffle", optional_argument, NULL, OPTION_SHUFFLE},
    {"input-fmt-option", required_argument, NULL, OPTION_INPUT_OPTION},
    {"output-fmt-option", required_argument, NULL, OPTION_OUTPUT_OPTION},
    {"reference", required_argument, NULL, OPTION_REFERENCE},
    {"write-index", no_argument, NULL, OPTION_WRITE_INDEX},
    {"fsync", no_argument, NULL, OPTION_FSYNC},
    {"checksum", no_argument, NULL, OPTION_CHECKSUM},
    {"checksum-only", no_argument, NULL, OPTION_CHECKSUM_ONLY},
    {"keep", no_argument, NULL, 'k'},
    {"resume", required_argument, NULL, OPTION_RESUME},
    {"no-resume", no_argument, NULL, OPTION_NO_RESUME},
    {"partial", no_argument, NULL, OPTION_PARTIAL},
    {"clean", required_argument, NULL, OPTION_CLEAN},
    {"yes", no_argument, NULL, OPTION_YES},
    {"verify", optional_argument, NULL, OPTION_VERIFY},
    {"plan", no_argument, NULL, OPTION_PLAN},
    {"no-PG", no_argument, NULL, OPTION_NO_PG},
    {"verbosity", required_argument, NULL, OPTION_VERBOSITY},
    {"max-memory", required_argument, NULL, OPTION_MAX_MEMORY},
    {"temp-codec", required_argument, NULL, OPTION_TEMP_CODEC},
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"stats", required_argument, NULL, OPTION_STATS},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

void sort_options_init(struct sort_options *options, enum sort_dialect dialect)
{
    static const char *const no_prefix[] = {NULL};
    *options = (struct sort_options){
        .dialect = dialect,
        .settings = {
            .temp_prefixes = no_prefix,
            .n_temp_prefixes = 1,
            .level = -1,
            .codec_auto = true,
            .n_threads = 1,
            .add_pg = true,
            .progress_seconds = progress_seconds,
            .durable_after_seconds = DURABLE_AFTER_SECONDS,
            .minhash_window = MINHASH_WINDOW,
            .rules = {.minhash = {.k = MINHASH_K}},
        },
    };
    (void)size_parse(DEFAULT_MEMORY, &options->thread_memory_bytes);
}

/* Parses a whole decimal number; what does not fit a long is the nearest that does. */
static int parse_number(const char *text, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return isdigit((unsigned char)text[text[0] == '-']) && *end == 0 ? 0 : -1;
}

/* Parses a whole decimal number in [low, high]; returns -1 after a message naming the option. */
static int parse_int(const char *option, const char *text, long low, long high, long *value)
{
    if (parse_number(text, value) == 0 && *value >= low && *value <= high) return 0;
    diag_error("option %s takes a number from %ld to %ld, not '%s'", option, low, high, text);
    return -1;
}

static int parse_memory(const char *option, const char *text, uint64_t *n_bytes)
{
    if (size_parse(text, n_bytes) < 0) {
        diag_error("option %s takes a size such as 768M (K, M, G or T)%s, not '%s'", option,
                   strcmp(option, "--max-memory") == 0 ? " or auto" : "", text);
        return -1;
    }
    if (*n_bytes >= MIN_MEMORY_BYTES) return 0;
    diag_error("option %s %s is too little memory: give at least 1M", option, text);
    return -1;
}

static int parse_level(const char *text, int *level)
{
    long value;
    if (parse_number(text, &value) < 0) {
        diag_error("option -l takes a number from 0 to 9, not '%s'", text);
        return -1;
    }
    *level = value < 0 ? -1 : value > 9 ? 9 : (int)value;
    return 0;
}

static int parse_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == 0 && errno == 0) return 0;
    diag_error("option --shuffle takes a whole number as its seed, not '%s'", text);
    return -1;
}

static int take_tag(struct sort_options *o, const char *text)
{
    if (strlen(text) != 2) {
        diag_error("option -t takes a tag of two characters such as CB, not '%s'", text);
        return -1;
    }
    o->tag = text;
    return 0;
}

/* Options of the order. Of those that contradict each other the last counts, as in samtools. */
static int take_order_option(struct sort_options *o, int c, const char *text)
{
    struct sort_rules *rules = &o->settings.rules;
    long value;
    if (strchr("KwRH", c))
        o->minimiser_given = true;
    else
        o->order_given = true;
    switch (c) {
    case 'N': o->lexical_names = true; rules->order = SORT_NAME_NATURAL; return 0;
    case 'n': rules->order = SORT_NAME_NATURAL; return 0;
    case 't': return take_tag(o, text);
    case OPTION_TEMPLATE: rules->order = SORT_TEMPLATE; return 0;
    case 'I': o->settings.minhash_fasta = text; rules->order = SORT_MINHASH; return 0;
    case 'M': rules->order = SORT_MINHASH; return 0;
    case 'K':
        if (parse_number(text, &value) < 0) {
            diag_error("option -K takes a number from %d to %d, not '%s'", MINHASH_K_MIN,
                       MINHASH_K_MAX, text);
            return -1;
        }
        /* As samtools does. */
        rules->minhash.k = value < MINHASH_K_MIN   ? MINHASH_K_MIN
                           : value > MINHASH_K_MAX ? MINHASH_K_MAX
                                                   : (int)value;
        return 0;
    case 'w':
        if (parse_int("-w", text, 1, MAX_WINDOW, &value) < 0) return -1;
        o->settings.minhash_window = (int)value;
        return 0;
    case 'R': rules->minhash.forward_only = true; return 0;
    case 'H': rules->minhash.squeeze = true; return 0;
    default:
        rules->order = SORT_SHUFFLE;
        return text ? parse_seed(text, &rules->seed) : 0;
    }
}

static int add_temp_prefix(struct sort_options *o, const char *prefix)
{
    struct sort_settings *s = &o->settings;
    size_t n = o->temp_prefixes ? s->n_temp_prefixes : 0;
    if (n == MAX_TEMP_DIRS) {
        diag_error("option -T can be given %d times at most", MAX_TEMP_DIRS);
        return -1;
    }
    const char **grown = realloc(o->temp_prefixes, (n + 1) * sizeof *grown);
    if (!grown) {
        diag_no_memory();
        return -1;
    }
    grown[n] = prefix;
    o->temp_prefixes = grown;
    s->temp_prefixes = grown;
    s->n_temp_prefixes = n + 1;
    return 0;
}

static int parse_input_size(const char *text, struct sort_settings *s)
{
    s->input_bytes = 0;
    s->compaction = COMPACTION_ON;
    if (strcmp(text, "auto") == 0)
        s->compaction = COMPACTION_AUTO;
    else if (strcmp(text, "off") == 0)
        s->compaction = COMPACTION_OFF;
    else if (size_parse(text, &s->input_bytes) < 0) {
        diag_error("option -s takes a size such as 512G (K, M, G or T), auto or off, not '%s'",
                   text);
        return -1;
    }
    return 0;
}

static int take_verify(struct sort_options *o, const char *order)
{
    if (order && strcmp(order, "coordinate") != 0) {
        diag_error("option --verify takes nothing or =coordinate, not '%s'; other orders are named "
                   "by their options", order);
        return -1;
    }
    if (order) o->order_given = true;
    o->verify = o->settings.verify = o->settings.sum_only = true;
    return 0;
}

static int take_threads(struct sort_options *o, const char *text)
{
    long value = 0;
    o->auto_threads = strcmp(text, "auto") == 0;
    if (o->auto_threads) return 0;
    if (parse_number(text, &value) < 0 || value < 0 || value > MACHINE_MAX_THREADS) {
        diag_error("option -@ takes a number from 0 to %d, or auto, not '%s'",
                   MACHINE_MAX_THREADS, text);
        return -1;
    }
    o->settings.n_threads = value > 1 ? (unsigned)value : 1;
    return 0;
}

static int take_total_memory(struct sort_options *o, const char *text)
{
    o->auto_memory = strcmp(text, "auto") == 0;
    o->total_memory_bytes = 0;
    return o->auto_memory ? 0 : parse_memory("--max-memory", text, &o->total_memory_bytes);
}

/* Takes one option. Returns 0, or -1 after a message. */
static int take_option(struct sort_options *o, int c, const char *text)
{
    struct sort_settings *s = &o->settings;
    long value;
    switch (c) {
    case '@': return take_threads(o, text);
    case 'm':
        o->thread_memory_given = true;
        return parse_memory("-m", text, &o->thread_memory_bytes);
    case OPTION_MAX_MEMORY: return take_total_memory(o, text);
    case 'l': return parse_level(text, &s->level);
    case 'u': s->level = 0; return 0;
    case 'o': o->output = text; return 0;
    case 'O': o->format_option = text; return 0;
    case 'T': return add_temp_prefix(o, text);
    case 's': return parse_input_size(text, s);
    case 'k': s->keep_store = true; return 0;
    case 'f':
        if (o->dialect == DIALECT_SAMTOOLS_SORT) {
            diag_error("samtools sort has no option -f: name the output with -o");
            return -1;
        }
        o->whole_name = true;
        return 0;
    case OPTION_INPUT_OPTION:
        o->input_option_given = true;
        return sort_options_add_format("--input-fmt-option", text,
                                 (hts_opt **)&s->input_format.specific);
    case OPTION_OUTPUT_OPTION:
        return sort_options_add_output_format(o, "--output-fmt-option", text);
    case OPTION_REFERENCE: return sort_options_add_reference(o, text);
    case OPTION_WRITE_INDEX: o->write_index = true; return 0;
    case OPTION_RESUME: o->resume = text; return 0;
    case OPTION_NO_RESUME: s->no_resume = true; return 0;
    case OPTION_PARTIAL: s->partial = true; return 0;
    case OPTION_CLEAN: o->clean = text; return 0;
    case OPTION_YES: o->yes = true; return 0;
    case OPTION_FSYNC: s->durable = true; return 0;
    case OPTION_CHECKSUM: o->print_checksum = true; return 0;
    case OPTION_CHECKSUM_ONLY: s->sum_only = true; return 0;
    case OPTION_VERIFY: return take_verify(o, text);
    case OPTION_PLAN: o->plan = true; return 0;
    case OPTION_NO_PG: s->add_pg = false; return 0;
    case OPTION_VERBOSITY:
        if (parse_int("--verbosity", text, 0, 100, &value) < 0) return -1;
        hts_verbose = (int)value;
        return 0;
    case OPTION_TEMP_CODEC:
        s->codec_auto = strcmp(text, "auto") == 0;
        if (s->codec_auto || temp_codec_parse(text, &s->codec) == 0) return 0;
        diag_error("option --temp-codec takes auto, none, snappy, lz4 or zstd, not '%s'", text);
        return -1;
    case OPTION_PROGRESS: s->progress = true; return 0;
    case OPTION_QUIET:
        o->quiet = true;
        diag_set_quiet();
        return 0;
    case OPTION_STATS:
        o->stats = text;
        s->sample = true;
        return 0;
    case 'h':
    case OPTION_HELP: o->help = true; return 0;
    case OPTION_VERSION: o->version = true; return 0;
    case '?':
    case ':': return -1;        /* getopt_long has said why */
    default: return take_order_option(o, c, text);
    }
}

/* The order from all options that have a say in it. */
static void finish_order(struct sort_options *o)
{
    struct sort_rules *rules = &o->settings.rules;
    bool by_name = rules->order == SORT_NAME_NATURAL;
    if (by_name && o->lexical_names) rules->order = SORT_NAME_LEXICAL;
    if (!o->tag) return;
    rules->below = by_name ? rules->order : SORT_COORDINATE;
    rules->order = SORT_TAG;
    memcpy(rules->tag, o->tag, 2);
}

/* What --verify checks, and that it can. */
static int finish_verify(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    s->verify_claim = !o->order_given;
    if (!o->verify || !s->minhash_fasta || s->rules.order != SORT_MINHASH ||
        s->rules.minhash.forward_only)
        return 0;
    diag_error("--verify cannot check the order of -I without -R, as it turns reads around; "
               "without -M and -I it checks the reads that have a place");
    return -1;
}

/* The output name of the classic form, from its second argument. */
static int take_output_prefix(struct sort_options *o, const char *prefix)
{
    struct stat st;
    bool is_name = o->whole_name || strcmp(prefix, "-") == 0;
    if (!is_name && stat(prefix, &st) == 0 && !S_ISDIR(st.st_mode)) {
        diag_error("'%s' exists, and a second argument is the output's prefix: to sort both give "
                   "-o FILE, to overwrite it give -f", prefix);
        return -1;
    }
    size_t room = strlen(prefix) + sizeof ".bam";
    o->output_name = malloc(room);
    if (!o->output_name) {
        diag_no_memory();
        return -1;
    }
    (void)snprintf(o->output_name, room, "%s%s", prefix, is_name ? "" : ".bam");
    o->output = o->output_name;
    return 0;
}

static int take_inputs(struct sort_options *o, size_t n, char **args)
{
    o->input_names = calloc(n + 1, sizeof *o->input_names);
    bool whole = o->input_names != NULL;
    for (size_t i = 0; whole && i < n; i++)
        whole = (o->input_names[i] = input_plain_name(args[i])) != NULL;
    o->settings.inputs = (const char *const *)o->input_names;
    o->settings.n_inputs = n;
    if (!whole) diag_no_memory();
    return whole ? 0 : -1;
}

/* Inputs and output from the arguments that are not options. */
static int take_positionals(struct sort_options *o, int n, char **args)
{
    static char standard_input[] = "-";
    char *standard[] = {standard_input};
    struct sort_settings *s = &o->settings;
    if (take_inputs(o, n > 0 ? (size_t)n : 1, n > 0 ? args : standard) < 0) return -1;
    if (n > 1 && !o->output && !s->sum_only) {
        if (o->dialect == DIALECT_SAMTOOLS_SORT || n > 2) {
            diag_error("%d input files and no -o: name the output with -o", n);
            return -1;
        }
        s->n_inputs = 1;
        if (take_output_prefix(o, args[1]) < 0) return -1;
    }
    size_t n_standard = 0;
    for (size_t i = 0; i < s->n_inputs; i++) n_standard += strcmp(s->inputs[i], "-") == 0;
    if (n_standard > 1) {
        diag_error("standard input (-) can be an input only once");
        return -1;
    }
    return 0;
}

/* Settles what auto stands for. */
static void fit_machine(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (!o->auto_threads && !o->auto_memory) return;
    struct machine_facts facts;
    machine_facts_gather(&facts);       /* without has_feeder */
    for (size_t i = 0; i < s->n_inputs; i++)
        if (input_is_pipe(s->inputs[i])) facts.has_feeder = true;
    machine_fit_choose(&facts, &o->fit);
    if (o->auto_threads) s->n_threads = o->fit.n_threads;
    if (o->auto_memory) {
        o->total_memory_bytes = o->fit.memory_bytes;
    } else if (!o->total_memory_bytes && !o->thread_memory_given &&
               o->fit.memory_bytes < o->thread_memory_bytes * s->n_threads) {
        /* Nobody gave memory for so many threads: what there is must do. */
        o->total_memory_bytes = o->fit.memory_bytes;
    }
}

/* --quiet counts wherever it stands: over --verbosity and --progress, too. */
static void finish_messages(struct sort_options *o)
{
    const char *test_progress = getenv(TEST_PROGRESS_VARIABLE);
    double seconds = test_progress ? strtod(test_progress, NULL) : 0;
    if (seconds > 0) o->settings.progress_seconds = seconds;
    const char *test_durable = getenv(TEST_DURABLE_VARIABLE);
    if (test_durable)
        o->settings.durable_after_seconds = (unsigned)strtoul(test_durable, NULL, 10);
    if (o->quiet && hts_verbose > 1) hts_verbose = 1;
}

static int finish_memory(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    fit_machine(o);
    uint64_t total = o->total_memory_bytes ? o->total_memory_bytes
                                           : o->thread_memory_bytes * s->n_threads;
    const char *test_budget = getenv(TEST_BUDGET_VARIABLE);
    if (test_budget && size_parse(test_budget, &total) < 0) {
        diag_error(TEST_BUDGET_VARIABLE " takes a size such as 1M, not '%s'", test_budget);
        return -1;
    }
    const char *test_batch = getenv(TEST_BATCH_VARIABLE);
    if (test_batch && size_parse(test_batch, &s->test_batch_bytes) < 0) {
        diag_error(TEST_BATCH_VARIABLE " takes a size such as 1M, not '%s'", test_batch);
        return -1;
    }
    if (total > SIZE_MAX / 2 || o->thread_memory_bytes > SIZE_MAX / 2 / s->n_threads) {
        diag_error("so much memory cannot be addressed; give less with -m");
        return -1;
    }
    s->memory_bytes = (size_t)total;
    return 0;
}

/* Behind what getopt_long has said: one line, for the whole usage text would push that away. */
static void print_how_to_call(const struct sort_options *o)
{
    const char *command = o->dialect == DIALECT_ROCKSORT ? "rocksort" : "sort";
    (void)fprintf(stderr, "Usage: samtools %s [options] [in.bam]; --help lists all options\n",
                  command);
}

/* Takes all options. Returns 0, or -1 after a message. */
static int take_options(struct sort_options *o, int argc, char **argv)
{
    static char said_by[] = "samtools rocksort";    /* getopt_long's messages begin with argv[0] */
    char *called = argv[0];
    int c, r = 0;
    argv[0] = said_by;
    optind = 1;
    while (r == 0 && (c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1)
        r = take_option(o, c, optarg);
    argv[0] = called;
    if (r < 0 && !diag_failed()) print_how_to_call(o);
    return r;
}

int sort_options_parse(struct sort_options *o, int argc, char **argv)
{
    if (take_options(o, argc, argv) < 0) return -1;
    o->nothing_given = optind == argc && !o->resume && !o->clean;
    if (o->help || o->version) return 0;
    finish_order(o);
    finish_messages(o);
    if (sort_options_check_modes(o, argc - optind) < 0) return -1;
    if (o->clean) return 0;
    if (o->resume) return finish_memory(o);
    if (finish_verify(o) < 0 || take_positionals(o, argc - optind, argv + optind) < 0) return -1;
    return sort_options_choose_output(o) < 0 || finish_memory(o) < 0 ? -1 : 0;
}

void sort_options_release(struct sort_options *o)
{
    hts_opt_free(o->settings.input_format.specific);
    hts_opt_free(o->settings.output_format.specific);
    hts_opt_free(o->output_options);
    for (size_t i = 0; i < o->n_output_texts; i++) free(o->output_texts[i]);
    free(o->output_texts);
    free(o->format_text);
    for (size_t i = 0; o->input_names && o->input_names[i]; i++) free(o->input_names[i]);
    free(o->input_names);
    free(o->resumed_inputs);
    free(o->temp_prefixes);
    free(o->output_name);
    free(o->index_name);
}
