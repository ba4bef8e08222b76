/* sort_options_parse.c -- see sort_options_parse.h. */
#include "command/sort_options_parse.h"

#include "command/sort_options_fixmate.h"
#include "command/sort_options_format.h"
#include "command/sort_options_markdup.h"
#include "command/sort_options_output.h"
#include "command/sort_options_resources.h"
#include "command/sort_options_resume.h"
#include "command/sort_options_split.h"
#include "input/input_file.h"
#include "util/diag.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIN_MEMORY_BYTES ((uint64_t)1 << 20)

/* For tests only. */
#define TEST_PROGRESS_VARIABLE "ROCKSORT_TEST_PROGRESS" /* seconds between lines */
#define TEST_DURABLE_VARIABLE "ROCKSORT_TEST_DURABLE"   /* seconds before syncs */

enum { MAX_WINDOW = 1 << 20, MAX_TEMP_DIRS = 32 };

/* Options that set a bool, and those whose argument is taken as it is: their numbers say which
   member of the options they set. */
enum { FLAGS = 1 << 16, TEXTS = 1 << 17 };
_Static_assert(sizeof(struct sort_options) < FLAGS, "these numbers are all different");
#define FLAG(member) (FLAGS + (int)offsetof(struct sort_options, member))
#define TEXT(member) (TEXTS + (int)offsetof(struct sort_options, member))

/* Other long options without a short one; numbers that are no character. */
enum long_option {
    OPTION_NO_PG = 256,
    OPTION_VERBOSITY,
    OPTION_MAX_MEMORY,
    OPTION_TEMP_CODEC,
    OPTION_DEFLATE,
    OPTION_TEMPLATE,
    OPTION_SHUFFLE,
    OPTION_FIXMATE,
    OPTION_MARKDUP,
    OPTION_INPUT_OPTION,
    OPTION_OUTPUT_OPTION,
    OPTION_REFERENCE,
    OPTION_CLEAN,
    OPTION_VERIFY,
    OPTION_QUIET,
    OPTION_STATS,
    OPTION_HELP,
};

static const char short_options[] = "@:m:l:uo:O:T:nNt:MI:K:w:RHs:kfh";

static const struct option long_options[] = {
    {"threads", required_argument, NULL, '@'},
    {"output-fmt", required_argument, NULL, 'O'},
    {"template-coordinate", no_argument, NULL, OPTION_TEMPLATE},
    {"shuffle", optional_argument, NULL, OPTION_SHUFFLE},
    {"fixmate", optional_argument, NULL, OPTION_FIXMATE},
    {"markdup", optional_argument, NULL, OPTION_MARKDUP},
    {"merge", no_argument, NULL, FLAG(settings.merge)},
    {"also", required_argument, NULL, TEXT(settings.also)},
    {"columns", required_argument, NULL, TEXT(settings.columns.list)},
    {"split-by", required_argument, NULL, TEXT(settings.split_by)},
    {"input-fmt-option", required_argument, NULL, OPTION_INPUT_OPTION},
    {"output-fmt-option", required_argument, NULL, OPTION_OUTPUT_OPTION},
    {"reference", required_argument, NULL, OPTION_REFERENCE},
    {"write-index", no_argument, NULL, FLAG(write_index)},
    {"fsync", no_argument, NULL, FLAG(settings.durable)},
    {"checksum", no_argument, NULL, FLAG(print_checksum)},
    {"checksum-only", no_argument, NULL, FLAG(settings.sum_only)},
    {"keep", no_argument, NULL, 'k'},
    {"resume", required_argument, NULL, TEXT(resume)},
    {"no-resume", no_argument, NULL, FLAG(settings.no_resume)},
    {"partial", no_argument, NULL, FLAG(settings.partial)},
    {"clean", optional_argument, NULL, OPTION_CLEAN},
    {"yes", no_argument, NULL, FLAG(yes)},
    {"verify", optional_argument, NULL, OPTION_VERIFY},
    {"plan", no_argument, NULL, FLAG(plan)},
    {"no-PG", no_argument, NULL, OPTION_NO_PG},
    {"verbosity", required_argument, NULL, OPTION_VERBOSITY},
    {"max-memory", required_argument, NULL, OPTION_MAX_MEMORY},
    {"temp-codec", required_argument, NULL, OPTION_TEMP_CODEC},
    {"deflate", required_argument, NULL, OPTION_DEFLATE},
    {"progress", no_argument, NULL, FLAG(settings.progress)},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"stats", required_argument, NULL, OPTION_STATS},
    {"flagstat", required_argument, NULL, TEXT(counts[COUNT_FLAGSTAT])},
    {"idxstats", required_argument, NULL, TEXT(counts[COUNT_IDXSTATS])},
    {"coverage", required_argument, NULL, TEXT(counts[COUNT_COVERAGE])},
    {"help", optional_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, FLAG(version)},
    {NULL, 0, NULL, 0},
};

/* Takes a FLAG or a TEXT. Returns false if it is neither. */
static bool take_simple_option(struct sort_options *o, int c, const char *text)
{
    if (c >= TEXTS)
        *(const char **)((char *)o + (c - TEXTS)) = text;
    else if (c >= FLAGS)
        *(bool *)((char *)o + (c - FLAGS)) = true;
    return c >= FLAGS;
}

/* Parses a whole decimal number. One that does not fit a long becomes the nearest that does. */
static int parse_number(const char *text, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return isdigit((unsigned char)text[text[0] == '-']) && *end == 0 ? 0 : -1;
}

/* Parses a whole decimal number in [low, high]. Returns 0, or -1 after a message. */
static int parse_int(const char *option, const char *text, long low, long high, long *value)
{
    if (parse_number(text, value) == 0 && *value >= low && *value <= high) return 0;
    diag_error("option %s takes a number from %ld to %ld, not '%s'", option, low, high, text);
    return -1;
}

static int parse_memory(const char *option, const char *text, uint64_t *n_bytes)
{
    if (size_parse(text, n_bytes) < 0) {
        diag_error("option %s takes a size such as 768M or 1.5G (K, M, G or T)%s, not '%s'",
                   option, strcmp(option, "--max-memory") == 0 ? " or auto" : "", text);
        return -1;
    }
    if (*n_bytes >= MIN_MEMORY_BYTES) return 0;
    diag_error("option %s %s is too little memory: give at least 1M", option, text);
    return -1;
}

static int parse_level(const char *text, int *level)
{
    long value;
    if (parse_int("-l", text, 0, 9, &value) < 0) return -1;
    *level = (int)value;
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

/* Takes an option of the order. If two contradict each other the last counts, as in samtools. */
static int take_order_option(struct sort_options *o, int c, const char *text)
{
    struct sort_rules *rules = &o->settings.rules;
    long value;
    if (c == 'K' || c == 'w' || c == 'R' || c == 'H')
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
    o->temp_prefixes = xrealloc(o->temp_prefixes, (n + 1) * sizeof *o->temp_prefixes);
    o->temp_prefixes[n] = prefix;
    s->temp_prefixes = o->temp_prefixes;
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
    o->threads_given = true;
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

static int take_codec(struct sort_options *o, const char *text)
{
    struct sort_settings *s = &o->settings;
    o->codec_given = true;
    s->codec_auto = strcmp(text, "auto") == 0;
    if (s->codec_auto || temp_codec_parse(text, &s->codec) == 0) return 0;
    diag_error("option --temp-codec takes auto, none, snappy, lz4 or zstd, not '%s'", text);
    return -1;
}

static int take_verbosity(const char *text)
{
    long value;
    if (parse_int("--verbosity", text, 0, 100, &value) < 0) return -1;
    hts_verbose = (int)value;
    return 0;
}

static int take_help(struct sort_options *o, const char *text)
{
    if (text && strcmp(text, "all") != 0) {
        diag_error("option --help takes nothing or =all, not '%s'", text);
        return -1;
    }
    o->help = true;
    if (text) o->help_all = true;
    return 0;
}

/* Takes one option. Returns 0, or -1 after a message. */
static int take_option(struct sort_options *o, int c, const char *text)
{
    struct sort_settings *s = &o->settings;
    if (c == 'f' && o->dialect == DIALECT_SAMTOOLS_SORT) {
        diag_error("samtools sort has no option -f: name the output with -o");
        return -1;
    }
    if (c == TEXT(settings.also) && s->also) {
        diag_error("--also can be given once: a sort writes at most two files");
        return -1;
    }
    if (take_simple_option(o, c, text)) return 0;
    switch (c) {
    case '@': return take_threads(o, text);
    case 'f': o->whole_name = true; return 0;
    case 'h': o->help = true; return 0;
    case 'k': s->keep_checkpoint = true; return 0;
    case 'o': o->output = text; return 0;
    case 'O': o->format_option = text; return 0;
    case 'm':
        o->thread_memory_given = true;
        return parse_memory("-m", text, &o->thread_memory_bytes);
    case OPTION_MAX_MEMORY: return take_total_memory(o, text);
    case 'l': return parse_level(text, &s->level);
    case 'u': s->level = 0; return 0;
    case 'T': return add_temp_prefix(o, text);
    case 's': return parse_input_size(text, s);
    case OPTION_FIXMATE: s->fixmate = text ? text : ""; return 0;
    case OPTION_MARKDUP: s->markdup = text ? text : ""; return 0;
    case OPTION_INPUT_OPTION:
        o->input_option_given = true;
        return sort_options_add_format("--input-fmt-option", text,
                                       (hts_opt **)&s->input_format.specific);
    case OPTION_OUTPUT_OPTION:
        return sort_options_add_output_format(o, "--output-fmt-option", text);
    case OPTION_REFERENCE: return sort_options_add_reference(o, text);
    case OPTION_CLEAN:
        o->clean = true;
        if (text) o->clean_place = text;
        return 0;
    case OPTION_VERIFY: return take_verify(o, text);
    case OPTION_NO_PG: s->add_pg = false; return 0;
    case OPTION_VERBOSITY: return take_verbosity(text);
    case OPTION_TEMP_CODEC: return take_codec(o, text);
    case OPTION_DEFLATE:
        o->engine_given = true;
        return sort_options_take_engine(o, text);
    case OPTION_QUIET:
        o->quiet = true;
        diag_set_quiet();
        return 0;
    case OPTION_STATS:
        o->stats = text;
        s->sample = true;
        return 0;
    case OPTION_HELP: return take_help(o, text);
    case '?':
    case ':': return -1;        /* getopt_long has said why */
    default: return take_order_option(o, c, text);
    }
}

/* Makes the order of all options that concern it. */
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

/* Decides what --verify checks, and refuses what it cannot check. */
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

/* Takes the second argument of the syntax of 2014, which names the output. */
static int take_output_prefix(struct sort_options *o, const char *prefix)
{
    struct stat st;
    bool is_name = o->whole_name || strcmp(prefix, "-") == 0;
    if (!is_name && stat(prefix, &st) == 0 && !S_ISDIR(st.st_mode)) {
        diag_error("'%s' exists, and a second argument is the output's prefix: to sort both give "
                   "-o FILE, to overwrite it give -f", prefix);
        return -1;
    }
    o->output = o->output_name = xasprintf("%s%s", prefix, is_name ? "" : ".bam");
    /* In a whole name something stands before the extension: '.bam' is none. */
    const char *slash = strrchr(prefix, '/'), *file = slash ? slash + 1 : prefix;
    if (!is_name && file[0] && output_format_is_named(file + 1))
        diag_warning("the output is '%s', as a second argument is its name without .bam: give -o "
                     "to name it in full", o->output);
    return 0;
}

static void take_inputs(struct sort_options *o, size_t n, char **args)
{
    o->input_names = xcalloc(n + 1, sizeof *o->input_names);
    for (size_t i = 0; i < n; i++) o->input_names[i] = input_plain_name(args[i]);
    o->settings.inputs = (const char *const *)o->input_names;
    o->settings.n_inputs = n;
}

/* Takes inputs and output from the arguments that are not options. */
static int take_positionals(struct sort_options *o, int n, char **args)
{
    static char standard_input[] = "-";
    char *standard[] = {standard_input};
    struct sort_settings *s = &o->settings;
    take_inputs(o, n > 0 ? (size_t)n : 1, n > 0 ? args : standard);
    if (n > 1 && !o->output && !s->sum_only) {
        if (o->dialect == DIALECT_SAMTOOLS_SORT || n > 2 || s->merge) {
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

/* --quiet overrides --verbosity and --progress, wherever it stands. */
static void finish_messages(struct sort_options *o)
{
    const char *test_progress = getenv(TEST_PROGRESS_VARIABLE);
    double seconds = test_progress ? strtod(test_progress, NULL) : 0;
    if (seconds > 0) o->settings.progress_seconds = seconds;
    const char *test_durable = getenv(TEST_DURABLE_VARIABLE);
    if (test_durable)
        o->settings.durable_after_seconds = (unsigned)strtoul(test_durable, NULL, 10);
    if (o->quiet && hts_verbose > 1) hts_verbose = 1;
    if (hts_verbose >= HTS_LOG_ERROR) return;
    /* htslib's errors are needed, also if they are not shown (cram_writer.c). */
    diag_hide_htslib();
    hts_verbose = HTS_LOG_ERROR;
}

/* Prints a line or two after the message of getopt_long; the usage text would push it away. */
static void print_how_to_call(const struct sort_options *o)
{
    const char *command = o->dialect == DIALECT_ROCKSORT ? "rocksort" : "sort";
    if (o->settings.fixmate || o->settings.markdup)
        (void)fputs("Options of samtools fixmate and markdup go into one word: --fixmate='-r', "
                    "--markdup='-S -d 2500'\n", stderr);
    (void)fprintf(stderr, "Usage: samtools %s [options] [in.bam]; --help lists the options\n",
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
    const int n_options = optind;       /* arguments that are none follow */
    o->nothing_given = n_options == argc && !o->resume && !o->clean;
    if (o->help || o->version) return 0;
    finish_order(o);
    struct sort_settings *s = &o->settings;
    if (s->fixmate && sort_options_parse_fixmate(s->fixmate, &s->fixmate_rules) < 0) return -1;
    if (s->markdup && sort_options_parse_markdup(s->markdup, &s->duplicate_rules) < 0) return -1;
    finish_messages(o);
    if (sort_options_check_modes(o, argc - n_options) < 0 ||
        (s->split_by && !o->resume && sort_options_choose_split(o) < 0))
        return -1;
    if (o->clean && !o->clean_place) o->clean_place = argv[n_options];
    if (o->clean) return 0;
    if (o->resume) return 0;
    if (finish_verify(o) < 0 || take_positionals(o, argc - n_options, argv + n_options) < 0)
        return -1;
    return sort_options_choose_output(o) < 0 || sort_options_finish_resources(o) < 0 ? -1 : 0;
}
