/*
 * sort_options_parse.c -- parses the options with a table, then combines them.
 */
#include "cli/sort_options.h"

#include "util/option_table.h"
#include "input/input_file.h"
#include "util/diag.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIN_MEMORY_BYTES ((uint64_t)1 << 20)

/* For tests only. */
#define TEST_PROGRESS_VARIABLE "ROCKSORT_TEST_PROGRESS" /* seconds between lines */
#define TEST_DURABLE_VARIABLE "ROCKSORT_TEST_DURABLE"   /* seconds before syncs */

enum { MAX_TEMP_DIRS = 32 };

/* Seconds without syncs of temporary data (delayed_fsync.h). A power failure then may damage the
   checkpoint, which loses less time than a reboot takes. */
enum { DURABLE_AFTER_SECONDS = 30 };

static const double progress_seconds = 10;      /* between lines of --progress */

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
            .fsync_after_seconds = DURABLE_AFTER_SECONDS,
            .minhash_window = MINHASH_WINDOW,
            .rules = {.minhash = {.k = MINHASH_K}},
        },
        .verbosity = hts_verbose,
    };
    options->settings.counts = options->reports;
    (void)size_parse(DEFAULT_MEMORY, &options->thread_memory_bytes);
}

void sort_options_release(struct sort_options *o)
{
    sort_options_release_markdup(&o->settings.markdup_rules);
    hts_opt_free(o->settings.input_format.specific);
    hts_opt_free(o->settings.output_format.hts.specific);
    hts_opt_free(o->settings.also_format.hts.specific);
    hts_opt_free(o->output_options);
    for (size_t i = 0; i < o->n_output_texts; i++) free(o->output_texts[i]);
    free(o->output_texts);
    option_list_release(&o->kept);
    for (char **name = o->input_names; name && *name; name++) free(*name);
    free(o->input_names);
    free(o->resumed_inputs);
    free(o->temp_prefixes);
    free(o->output_name);
    free(o->index_name);
    count_files_release(o->reports);
    for (int i = 0; i < COUNT_N_KINDS; i++) free(o->adopted_counts[i]);
    for (int i = 0; i < COUNT_N_KINDS; i++) free(o->qc_counts[i]);
    free(o->qc_metrics);
    free(o->count_temporaries);
}

/* ---- single options ---- */

static int parse_memory(const char *option, const char *text, uint64_t *n_bytes)
{
    if (size_parse(text, n_bytes) < 0) return OPTION_WRONG;
    if (*n_bytes >= MIN_MEMORY_BYTES) return 0;
    diag_error("option %s %s is too little memory: give at least 1M", option, text);
    return -1;
}

static int take_thread_memory(void *arg, const char *text)
{
    struct sort_options *o = arg;
    return parse_memory("-m", text, &o->thread_memory_bytes);
}

static int take_total_memory(void *arg, const char *text)
{
    struct sort_options *o = arg;
    o->auto_memory = strcmp(text, "auto") == 0;
    o->total_memory_bytes = 0;
    return o->auto_memory ? 0 : parse_memory("--max-memory", text, &o->total_memory_bytes);
}

static int take_threads(void *arg, const char *text)
{
    struct sort_options *o = arg;
    long value = 0;
    o->auto_threads = strcmp(text, "auto") == 0;
    if (o->auto_threads) return 0;
    if (option_number(text, &value) < 0 || value < 0 || value > MACHINE_MAX_THREADS)
        return OPTION_WRONG;
    o->settings.n_threads = value > 1 ? (unsigned)value : 1;
    return 0;
}

static int take_temp_prefix(void *arg, const char *prefix)
{
    struct sort_options *o = arg;
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

static int take_input_size(void *arg, const char *text)
{
    struct sort_options *o = arg;
    struct sort_settings *s = &o->settings;
    s->input_bytes = 0;
    s->compaction = COMPACTION_ON;
    if (strcmp(text, "auto") == 0)
        s->compaction = COMPACTION_AUTO;
    else if (strcmp(text, "off") == 0)
        s->compaction = COMPACTION_OFF;
    else if (size_parse(text, &s->input_bytes) < 0)
        return OPTION_WRONG;
    return 0;
}

static int take_codec(void *arg, const char *text)
{
    struct sort_options *o = arg;
    struct sort_settings *s = &o->settings;
    s->codec_auto = strcmp(text, "auto") == 0;
    return s->codec_auto || temp_codec_parse(text, &s->codec) == 0 ? 0 : OPTION_WRONG;
}

static int take_tag(void *arg, const char *text)
{
    struct sort_options *o = arg;
    o->tag = text;
    return strlen(text) == 2 ? 0 : OPTION_WRONG;
}

static int take_fasta(void *arg, const char *text)
{
    struct sort_options *o = arg;
    o->settings.minhash_fasta = text;
    o->settings.rules.order = SORT_MINHASH;
    return 0;
}

/* Clamps the length to the valid range, as in samtools. */
static int take_minimiser_length(void *arg, const char *text)
{
    struct sort_options *o = arg;
    long value;
    if (option_number(text, &value) < 0) return OPTION_WRONG;
    o->settings.rules.minhash.k = value < MINHASH_K_MIN   ? MINHASH_K_MIN
                                  : value > MINHASH_K_MAX ? MINHASH_K_MAX
                                                          : (int)value;
    return 0;
}

static int take_seed(void *arg, const char *text)
{
    struct sort_options *o = arg;
    char *end;
    o->settings.rules.order = SORT_SHUFFLE;
    if (!text) return 0;
    errno = 0;
    o->settings.rules.seed = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == 0 && errno == 0 ? 0 : OPTION_WRONG;
}

static int take_also(void *arg, const char *text)
{
    struct sort_options *o = arg;
    if (o->settings.also) {
        diag_error("--also can be given once: a sort writes at most two files");
        return -1;
    }
    o->settings.also = text;
    return 0;
}

static int take_verify(void *arg, const char *order)
{
    struct sort_options *o = arg;
    if (order && strcmp(order, "coordinate") != 0) {
        diag_error("option --verify takes nothing or =coordinate, not '%s'; for any other order "
                   "give its option too, such as -n", order);
        return -1;
    }
    if (order) o->order_given = true;
    o->settings.verify = o->settings.sum_only = true;
    return 0;
}

static int take_quiet(void *arg, const char *text)
{
    (void)arg;
    (void)text;
    diag_set_quiet();
    return 0;
}

static int take_help(void *arg, const char *text)
{
    struct sort_options *o = arg;
    o->help_all |= text != NULL;
    return !text || strcmp(text, "all") == 0 ? 0 : OPTION_WRONG;
}

#define AT(of) offsetof(struct sort_options, of)
#define FLAG(of) .kind = OPTION_FLAG, .member = AT(of)
#define TEXT(of) .kind = OPTION_TEXT, .member = AT(of)
#define VALUE(of, value) .kind = OPTION_VALUE, .member = AT(of), .low = (value)
#define NUMBER(of, least, most)                                                         \
    .kind = OPTION_NUMBER, .member = AT(of), .low = (least), .high = (most),            \
    .takes = "a number from " #least " to " #most
#define CALL(function, what) .kind = OPTION_CALL, .take = (function), .takes = (what)
#define A_SIZE "a size such as 768M or 1.5G (K, M, G or T)"
#define GIVEN(of) .given = AT(of)
/* What a checkpoint keeps. */
#define KEPT .kept = OPTION_KEPT
#define OUTPUT .kept = OPTION_OF_OUTPUT
#define RUNS .kept = OPTION_OF_RUNS
#define WHOLE(of) .whole = sort_options_whole_##of
/* If options give several orders, the last one applies, as in samtools. */
#define ORDER(value) VALUE(settings.rules.order, value), GIVEN(order_given), RUNS

static const struct option_row rows[] = {
    {NULL, 'n', NULL, ORDER(SORT_NAME_NATURAL)},
    {NULL, 'N', NULL, VALUE(settings.rules.order, SORT_NAME_NATURAL), GIVEN(lexical_names), RUNS},
    {NULL, 't', "TAG", CALL(take_tag, "a tag of two characters such as CB"), GIVEN(order_given),
     RUNS},
    {"template-coordinate", 0, NULL, ORDER(SORT_TEMPLATE)},
    {NULL, 'M', NULL, ORDER(SORT_MINHASH)},
    {NULL, 'K', "INT", CALL(take_minimiser_length, "a number from 1 to 31"), RUNS},
    {NULL, 'I', "FASTA", CALL(take_fasta, NULL), GIVEN(order_given), RUNS,
     .whole = option_whole_file},
    {NULL, 'w', "INT", NUMBER(settings.minhash_window, 1, 1048576), RUNS},
    {NULL, 'R', NULL, FLAG(settings.rules.minhash.forward_only), RUNS},
    {NULL, 'H', NULL, FLAG(settings.rules.minhash.squeeze), RUNS},
    {"shuffle", 0, "[SEED]", CALL(take_seed, "a whole number as its seed"), GIVEN(order_given),
     RUNS},
    {"merge", 0, NULL, FLAG(settings.merge)},
    {"fixmate", 0, "[OPTIONS]", TEXT(settings.fixmate), RUNS},
    {"markdup", 0, "[OPTIONS]", TEXT(settings.markdup), RUNS},
    {NULL, 'o', "FILE", TEXT(output)},
    {"output-fmt", 'O', "FORMAT", TEXT(format_option), OUTPUT, WHOLE(formats)},
    {NULL, 'l', "INT", NUMBER(settings.level, 0, 9), OUTPUT},
    {NULL, 'u', NULL, VALUE(settings.level, 0), OUTPUT},
    {"deflate", 0, "STR",
     CALL(sort_options_take_engine, "auto, libdeflate, igzip, rocksort or zlib"),
     GIVEN(engine_given), OUTPUT},
    {"write-index", 0, NULL, FLAG(write_index), OUTPUT},
    {"also", 0, "FILE", CALL(take_also, NULL)},
    {"columns", 0, "LIST", TEXT(settings.columns.list), OUTPUT},
    {"split-by", 0, "HOW", TEXT(settings.split_by), RUNS, WHOLE(split)},
    {NULL, 'f', NULL, FLAG(whole_name)},
    {"fsync", 0, NULL, FLAG(settings.durable), OUTPUT},
    {"no-PG", 0, NULL, .kind = OPTION_OFF, .member = AT(settings.add_pg)},
    {"reference", 0, "FASTA", CALL(sort_options_take_reference, NULL), OUTPUT,
     .whole = option_whole_file},
    {"input-fmt-option", 0, "OPT", CALL(sort_options_take_input_option, NULL), RUNS,
     WHOLE(formats)},
    {"output-fmt-option", 0, "OPT", CALL(sort_options_take_output_option, NULL), OUTPUT,
     WHOLE(formats)},
#define COUNT_ROW(kind, name, takes) {name, 0, takes, TEXT(counts[COUNT_##kind])},
    COUNT_KINDS(COUNT_ROW)
    {"qc", 0, "PREFIX", TEXT(qc)},
    {"plan", 0, NULL, FLAG(plan)},
    {"verify", 0, "[coordinate]", CALL(take_verify, NULL), GIVEN(verify)},
    {"checksum", 0, NULL, FLAG(print_checksum)},
    {"checksum-only", 0, NULL, FLAG(settings.sum_only)},
    {"threads", '@', "INT", CALL(take_threads, "a number from 0 to 1024, or auto"), KEPT},
    {NULL, 'm', "SIZE", CALL(take_thread_memory, A_SIZE), GIVEN(thread_memory_given), KEPT},
    {"max-memory", 0, "SIZE", CALL(take_total_memory, A_SIZE " or auto"), KEPT},
    {NULL, 'T', "PREFIX", CALL(take_temp_prefix, NULL)},
    {NULL, 's', "SIZE", CALL(take_input_size, "a size such as 512G (K, M, G or T), auto or off")},
    {"keep", 'k', NULL, FLAG(settings.keep_checkpoint)},
    {"temp-codec", 0, "STR", CALL(take_codec, "auto, none, snappy, lz4 or zstd"),
     KEPT},
    {"resume", 0, "DIR", TEXT(resume)},
    {"partial", 0, NULL, FLAG(settings.partial)},
    {"no-resume", 0, NULL, FLAG(settings.no_resume)},
    {"clean", 0, "[PLACE]", TEXT(clean_place), GIVEN(clean)},
    {"yes", 0, NULL, FLAG(yes)},
    {"progress", 0, NULL, FLAG(settings.progress)},
    {"quiet", 0, NULL, CALL(take_quiet, NULL), GIVEN(quiet)},
    {"report", 0, "FILE", TEXT(report), GIVEN(settings.sample)},
    {"verbosity", 0, "INT", NUMBER(verbosity, 0, 100)},
    {NULL, 'h', NULL, FLAG(help)},
    {"help", 0, "[all]", CALL(take_help, "nothing or =all"), GIVEN(help)},
    {"version", 0, NULL, FLAG(version)},
};

/* ---- combining options ---- */

/* Makes the order from all its options. */
static void finish_order(struct sort_options *o)
{
    struct sort_rules *rules = &o->settings.rules;
    bool by_name = rules->order == SORT_NAME_NATURAL;
    o->order_given |= o->lexical_names;
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
    diag_error("--verify cannot check the order of -I without -R, which reverses reads; without "
               "-M and -I it checks the reads that have a position");
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
    if (!is_name && output_format_is_named(prefix))
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

/* --quiet overrides --verbosity and --progress in any position. */
static void finish_messages(struct sort_options *o)
{
    const char *test_progress = getenv(TEST_PROGRESS_VARIABLE);
    double seconds = test_progress ? strtod(test_progress, NULL) : 0;
    if (seconds > 0) o->settings.progress_seconds = seconds;
    const char *test_durable = getenv(TEST_DURABLE_VARIABLE);
    if (test_durable)
        o->settings.fsync_after_seconds = (unsigned)strtoul(test_durable, NULL, 10);
    hts_verbose = o->verbosity;
    if (o->quiet && hts_verbose > 1) hts_verbose = 1;
    if (hts_verbose >= HTS_LOG_ERROR) return;
    /* Hide, but do not disable, htslib's errors: cram_writer.c needs them. */
    diag_hide_htslib();
    hts_verbose = HTS_LOG_ERROR;
}

/* Prints a line or two after the message of getopt_long; the usage text would hide it. */
static void print_how_to_call(const struct sort_options *o)
{
    const char *command = o->dialect == DIALECT_ROCKSORT ? "rocksort" : "sort";
    if (o->settings.fixmate || o->settings.markdup)
        (void)fputs("Options of samtools fixmate and markdup go into one word: --fixmate='-r', "
                    "--markdup='-S -d 2500'\n", stderr);
    (void)fprintf(stderr, "Usage: samtools %s [options] [in.bam]; --help lists the options\n",
                  command);
}

static const struct option_table table = {
    .rows = rows, .n_rows = sizeof rows / sizeof *rows, .list = AT(kept)};

/* Parses all options. Returns the index of the first other argument, or -1 after a message. */
static int take_options(struct sort_options *o, int argc, char **argv)
{
    static char said_by[] = "samtools rocksort";    /* getopt_long's messages begin with argv[0] */
    char *called = argv[0];
    argv[0] = said_by;
    int next = option_table_parse(&table, argc, argv, o);
    argv[0] = called;
    if (next < 0 && !diag_failed()) print_how_to_call(o);
    if (next < 0 || !o->whole_name || o->dialect != DIALECT_SAMTOOLS_SORT) return next;
    diag_error("samtools sort has no option -f: name the output with -o");
    return -1;
}

/* Makes the order and the changes to records from their options. n_args: number of arguments that
   are not options. */
static int finish_records(struct sort_options *o, int n_args)
{
    struct sort_settings *s = &o->settings;
    finish_order(o);
    if (s->fixmate && sort_options_parse_fixmate(s->fixmate, &s->fixmate_rules) < 0) return -1;
    if (s->markdup && sort_options_parse_markdup(s->markdup, &s->markdup_rules) < 0) return -1;
    if (o->qc) sort_options_expand_qc(o);
    if (sort_options_check_modes(o, n_args) < 0) return -1;
    return s->split_by && (!o->resume || o->n_adopted > 0) ? sort_options_choose_split(o) : 0;
}

/* Parses the options of the checkpoint: all, or those that its runs depend on. */
static int adopt(struct sort_options *o, const struct checkpoint_file *file, bool only_of_runs)
{
    static char name[] = "rocksort";
    char **argv = xcalloc(file->n_options + 2, sizeof *argv);
    int n = 0;
    argv[n++] = name;
    for (size_t i = 0; i < file->n_options; i++)
        if (!only_of_runs || o->kept.kinds[i] == OPTION_OF_RUNS)
            argv[n++] = (char *)(uintptr_t)file->options[i];
    o->is_adopting = true;
    int r = option_table_parse(&table, n, argv, o);
    o->is_adopting = false;
    free(argv);
    return r < 0 ? -1 : 0;
}

/* Parses the options of the checkpoint, then the command line, which may repeat options that the
   runs depend on, but not add any. Then parses those of the checkpoint again, so that they win. */
int sort_options_parse_again(struct sort_options *o, const struct checkpoint_file *file)
{
    struct option_list *kept = &o->kept;
    if (adopt(o, file, false) < 0) return -1;
    o->n_adopted = kept->n;
    if (take_options(o, o->argc, o->argv) < 0) return -1;
    size_t n = o->n_adopted;
    for (size_t i = n; i < kept->n; i++) {
        const char *word = kept->words[i];
        enum option_kept kind = kept->kinds[i];
        if (kind == OPTION_OF_RUNS && !option_list_has(kept, o->n_adopted, word)) {
            diag_error("cannot resume '%s' with %s: its runs were made without it; leave it out",
                       o->resume, word);
            return -1;
        }
        if (kind == OPTION_OF_RUNS) continue;
        kept->words[i] = kept->words[n];
        kept->kinds[i] = kept->kinds[n];
        kept->words[n] = word;
        kept->kinds[n++] = kind;
    }
    option_list_cut(kept, n);
    if (adopt(o, file, true) < 0) return -1;
    option_list_cut(kept, n);
    return finish_records(o, 0);
}

int sort_options_parse(struct sort_options *o, int argc, char **argv)
{
    o->argc = argc;
    o->argv = argv;
    const int n_options = take_options(o, argc, argv);
    if (n_options < 0) return -1;
    o->nothing_given = n_options == argc && !o->resume && !o->clean;
    if (o->help || o->version) return 0;
    finish_messages(o);
    if (finish_records(o, argc - n_options) < 0) return -1;
    if (o->clean && !*o->clean_place) o->clean_place = argv[n_options];
    if (o->clean) return 0;
    if (o->resume) return 0;
    if (finish_verify(o) < 0 || take_positionals(o, argc - n_options, argv + n_options) < 0)
        return -1;
    return sort_options_choose_output(o) < 0 || sort_options_finish_resources(o) < 0 ? -1 : 0;
}
