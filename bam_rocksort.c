/*
 * bam_rocksort.c -- command line of `samtools rocksort`: options, usage text, exit status, closing
 * line. What the options mean for the sort is decided elsewhere.
 */
#include "bam_rocksort.h"

#include "bam_writer.h"
#include "bgzf_block.h"
#include "diag.h"
#include "pipeline.h"
#include "size_option.h"
#include "version.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEFAULT_MEMORY "768M"           /* a thread, as samtools sort */
#define MIN_MEMORY_BYTES ((uint64_t)1 << 20)
#define TEST_BUDGET_VARIABLE "ROCKSORT_TEST_BUDGET"     /* whole budget in bytes; tests only */

enum { MAX_THREADS = 1024 };

enum long_option {                      /* beyond the characters of short options */
    OPTION_NO_PG = 256,
    OPTION_VERBOSITY,
    OPTION_MAX_MEMORY,
    OPTION_TEMP_CODEC,
    OPTION_HELP,
    OPTION_VERSION,
};

static const char short_options[] = "@:m:l:uo:O:T:nNs:kfh";

static const struct option long_options[] = {
    {"threads", required_argument, NULL, '@'},
    {"output-fmt", required_argument, NULL, 'O'},
    {"no-PG", no_argument, NULL, OPTION_NO_PG},
    {"verbosity", required_argument, NULL, OPTION_VERBOSITY},
    {"max-memory", required_argument, NULL, OPTION_MAX_MEMORY},
    {"temp-codec", required_argument, NULL, OPTION_TEMP_CODEC},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

/* What the command line says, before it becomes settings. */
struct arguments {
    struct sort_settings settings;
    uint64_t thread_memory_bytes;
    uint64_t total_memory_bytes;        /* 0: not given */
    const char *format_option;
    const char *output;                 /* -o, or the second argument */
    bool whole_name;                    /* -f */
    bool help, version;
};

static void print_usage(FILE *to)
{
    (void)fprintf(to,
"Usage: samtools rocksort [options] [in.bam]\n"
"       samtools rocksort [options] in.bam out.prefix\n"
"\n"
"Sorts alignments (SAM, BAM, CRAM; - or nothing: standard input) in bounded memory.\n"
"\n"
"Order:\n"
"  (none)               by reference and position\n"
"  -n                   by read name, numbers in it by value\n"
"  -N                   by read name, character by character\n"
"Output:\n"
"  -o FILE              write to FILE, not to standard output\n"
"  -O, --output-fmt FORMAT   bam, sam or cram; else by the extension of FILE, else bam\n"
"  -l INT               compression level, 0 to 9 [6]\n"
"  -u                   uncompressed, the same as -l 0\n"
"  -f                   the second argument is the whole output name, not a prefix\n"
"      --no-PG          add no @PG line to the header\n"
"Resources:\n"
"  -@, --threads INT    worker threads; 0 and 1 mean one [0]\n"
"  -m SIZE              memory a thread, with K, M, G or T [" DEFAULT_MEMORY "]\n"
"      --max-memory SIZE   memory in all, whatever the number of threads\n"
"  -T PREFIX            temporary data go into directory PREFIX, or beside it\n"
"  -s SIZE              estimated uncompressed size of the input\n"
"  -k                   keep the temporary database\n"
"      --temp-codec STR    compression of temporary data: none, snappy, lz4, zstd [lz4]\n"
"Other:\n"
"      --verbosity INT  1 errors, 2 and more also the closing line, 4 and more details [3]\n"
"  -h, --help           this text\n"
"      --version        versions of rocksort and of its libraries\n");
}

static void print_version(void)
{
    (void)printf("samtools rocksort %s\nUsing htslib %s, %s\n", ROCKSORT_VERSION, hts_version(),
                 bgzf_deflate_library());
}

/* Parses a whole decimal number in [low, high]; returns -1 after a message naming the option. */
static int parse_int(const char *option, const char *text, long low, long high, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == 0 && *value >= low && *value <= high) return 0;
    diag_error("option %s takes a number from %ld to %ld, not '%s'", option, low, high, text);
    return -1;
}

static int parse_memory(const char *option, const char *text, uint64_t *n_bytes)
{
    if (size_option_parse(text, n_bytes) < 0) {
        diag_error("option %s takes a size such as 768M (K, M, G or T), not '%s'", option, text);
        return -1;
    }
    if (*n_bytes >= MIN_MEMORY_BYTES) return 0;
    diag_error("option %s %s is too little memory: give at least 1M", option, text);
    return -1;
}

static int parse_level(const char *text, int *level)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[text[0] == '-']) || *end != 0) {
        diag_error("option -l takes a number from 0 to 9, not '%s'", text);
        return -1;
    }
    *level = value < 0 ? -1 : value > 9 ? 9 : (int)value;
    return 0;
}

/* Takes one option. Returns 0, or -1 after a message. */
static int take_option(struct arguments *a, int c, const char *text)
{
    struct sort_settings *s = &a->settings;
    long value;
    switch (c) {
    case '@':
        if (parse_int("-@", text, 0, MAX_THREADS, &value) < 0) return -1;
        s->n_threads = value > 1 ? (unsigned)value : 1;
        return 0;
    case 'm': return parse_memory("-m", text, &a->thread_memory_bytes);
    case OPTION_MAX_MEMORY: return parse_memory("--max-memory", text, &a->total_memory_bytes);
    case 'l': return parse_level(text, &s->level);
    case 'u': s->level = 0; return 0;
    case 'o': a->output = text; return 0;
    case 'O': a->format_option = text; return 0;
    case 'T': s->temp_prefix = text; return 0;
    case 'n': s->order = SORT_NAME_NATURAL; return 0;
    case 'N': s->order = SORT_NAME_LEXICAL; return 0;
    case 's':
        if (size_option_parse(text, &s->input_bytes) == 0) return 0;
        diag_error("option -s takes a size such as 512G (K, M, G or T), not '%s'", text);
        return -1;
    case 'k': s->keep_store = true; return 0;
    case 'f': a->whole_name = true; return 0;
    case OPTION_NO_PG: s->add_pg = false; return 0;
    case OPTION_VERBOSITY:
        if (parse_int("--verbosity", text, 0, 100, &value) < 0) return -1;
        hts_verbose = (int)value;
        return 0;
    case OPTION_TEMP_CODEC:
        if (temp_codec_parse(text, &s->codec) == 0) return 0;
        diag_error("unknown codec '%s' for --temp-codec: it takes none, snappy, lz4 or zstd", text);
        return -1;
    case 'h':
    case OPTION_HELP: a->help = true; return 0;
    case OPTION_VERSION: a->version = true; return 0;
    default: return -1;         /* getopt_long has said why */
    }
}

static int parse_options(struct arguments *a, int argc, char **argv)
{
    int c;
    optind = 1;
    while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (take_option(a, c, optarg) < 0) {
            if (!diag_failed()) print_usage(stderr);
            return -1;
        }
    }
    return 0;
}

/* Input and output from the arguments that are not options. *name is freed by the caller. */
static int take_positionals(struct arguments *a, int n, char **args, char **name)
{
    a->settings.input = n > 0 ? args[0] : "-";
    if (n == 2 && !a->output) {
        size_t room = strlen(args[1]) + sizeof ".bam";
        *name = malloc(room);
        if (!*name) {
            diag_error("out of memory");
            return -1;
        }
        bool add = !a->whole_name && strcmp(args[1], "-") != 0;
        (void)snprintf(*name, room, "%s%s", args[1], add ? ".bam" : "");
        a->output = *name;
    } else if (n > 1) {
        diag_error("%s: give one input%s", n == 2 ? "two files and -o" : "more than two files",
                   n == 2 ? " and -o, or an input and an output prefix" : "");
        return -1;
    }
    a->settings.output = a->output && strcmp(a->output, "-") != 0 ? a->output : NULL;
    return 0;
}

static int finish_settings(struct arguments *a)
{
    struct sort_settings *s = &a->settings;
    uint64_t total = a->total_memory_bytes ? a->total_memory_bytes
                                           : a->thread_memory_bytes * s->n_threads;
    const char *test_budget = getenv(TEST_BUDGET_VARIABLE);
    if (test_budget && size_option_parse(test_budget, &total) < 0) {
        diag_error(TEST_BUDGET_VARIABLE " is not a size: '%s'", test_budget);
        return -1;
    }
    if (total > SIZE_MAX / 2 || a->thread_memory_bytes > SIZE_MAX / 2 / s->n_threads) {
        diag_error("so much memory cannot be addressed: %" PRIu64 " GiB", total >> 30);
        return -1;
    }
    s->memory_bytes = (size_t)total;
    if (bam_writer_choose_format(a->format_option, s->output, &s->output_format) < 0) return -1;
    /* For CRAM htslib applies the options itself. */
    for (const hts_opt *option = s->output_format.specific; option; option = option->next)
        if (option->opt == HTS_OPT_COMPRESSION_LEVEL) s->level = option->val.i;
    return 0;
}

/* "samtools rocksort ..." for the @PG line; NULL after a message. */
static char *make_command_line(int argc, char **argv)
{
    char *args = stringify_argv(argc, argv);
    size_t room = args ? strlen(args) + sizeof "samtools " : 0;
    char *line = args ? malloc(room) : NULL;
    if (line) {
        (void)snprintf(line, room, "samtools %s", args);
        /* A newline or tab in a file name would end the header line or its field. */
        for (char *at = line; *at; at++)
            if (iscntrl((unsigned char)*at)) *at = ' ';
    } else {
        diag_error("out of memory");
    }
    free(args);
    return line;
}

/*
 * Peak resident memory of this process in MiB. getrusage would also count what a large parent had
 * when it forked, so the kernel's own counter is asked first.
 */
static double peak_memory(const struct rusage *usage)
{
    double peak_kib = (double)usage->ru_maxrss;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) return peak_kib / 1024;
    char line[256];
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lf", &peak_kib) == 1) break;
    (void)fclose(status);
    return peak_kib / 1024;
}

static void print_closing_line(const struct sort_report *r)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    double wall = r->load_seconds + r->merge_seconds;
    diag_note("%" PRIu64 " records, %.1f MB; %u runs on disk, %.1f MB temporary; %.1f s wall "
              "(load %.1f, merge %.1f), %.1f s CPU, %.1f MiB peak memory",
              r->n_records, 1e-6 * (double)r->raw_bytes, r->n_runs, 1e-6 * (double)r->temp_bytes,
              wall, r->load_seconds, r->merge_seconds, cpu, peak_memory(&usage));
    if (hts_verbose >= 4)
        diag_note("%u batches merged from memory, reader waited %.2f s for memory",
                  r->n_batches_kept, r->reader_wait_seconds);
    if (r->store_path) diag_note("the temporary database is kept in '%s'", r->store_path);
}

/*
 * The allocator must not spoil the memory promise: few arenas, since buffers wander between
 * threads, and large buffers in the heap, where they are reused without page faults.
 */
static void tune_allocator(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, 16 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
    (void)mallopt(M_TOP_PAD, 1 << 20);
#endif
}

static int run(struct arguments *a, int n_args, char **args)
{
    struct sort_report report = {0};
    char *name = NULL;
    int r = take_positionals(a, n_args, args, &name);
    if (r == 0) r = finish_settings(a);
    if (r == 0) {
        tune_allocator();
        r = sort_run(&a->settings, &report);
    }
    if (r == 0 && hts_verbose >= 2) print_closing_line(&report);
    sort_report_release(&report);
    hts_opt_free(a->settings.output_format.specific);
    free(name);
    return r;
}

int main_rocksort(int argc, char **argv)
{
    struct arguments a = {
        .settings = {.level = -1, .codec = TEMP_CODEC_LZ4, .n_threads = 1, .add_pg = true},
    };
    if (size_option_parse(DEFAULT_MEMORY, &a.thread_memory_bytes) < 0) return EXIT_FAILURE;
    if (parse_options(&a, argc, argv) < 0) return EXIT_FAILURE;
    if (a.version) {
        print_version();
        return EXIT_SUCCESS;
    }
    if (a.help || (optind == argc && isatty(STDIN_FILENO))) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    char *command_line = make_command_line(argc, argv);
    if (!command_line) return EXIT_FAILURE;
    a.settings.command_line = command_line;
    int r = run(&a, argc - optind, argv + optind);
    free(command_line);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
