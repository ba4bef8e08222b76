/*
 * bam_rocksort.c -- the command `samtools rocksort`: parses the options, prints help or version,
 * cleans up (--clean), plans (--plan), verifies (--verify), or sorts (bam_sort.c); then prints the
 * closing line and returns the exit status.
 */
#define _GNU_SOURCE             /* O_PATH */
#include "cli/bam_rocksort.h"

#include "cli/library_versions.h"
#include "cli/report_file.h"
#include "cli/sort_options.h"
#include "cli/temp_clean.h"
#include "resume/resume.h"
#include "sort/planner.h"
#include "util/diag.h"
#include "util/version.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Gives each closed standard stream a descriptor that can be neither read nor written, nor opened
 * again as /dev/stdout. Otherwise, if standard output is closed (>&-), the next opened file would
 * get its number, and text for standard output would go into that file.
 */
static int hold_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/", O_PATH) == fd) continue;
        diag_error("standard input, output or error is closed, and '/' cannot be opened");
        return -1;
    }
    return 0;
}

static void print_version(void)
{
    struct library_version libraries[LIBRARY_COUNT];
    library_versions(libraries);
    (void)printf("samtools rocksort %s\nUsing ", ROCKSORT_VERSION);
    for (int i = 0; i < LIBRARY_COUNT; i++)
        if (libraries[i].name)
            (void)printf("%s%s %s", i > 0 ? ", " : "", libraries[i].name, libraries[i].version);
    const char *at_1 = bgzf_engine_name(bgzf_engine_choose((struct bgzf_method){.level = 1}));
    const char *usual = bgzf_engine_name(bgzf_engine_choose((struct bgzf_method){.level = -1}));
    const char *at_6 = bgzf_engine_name(bgzf_engine_choose((struct bgzf_method){.level = 6}));
    (void)printf("\nDeflates BAM by ");
    if (at_1 != usual) (void)printf("%s at level 1, by ", at_1);
    (void)printf("%s up to level 5 and by default, by %s from level 6 on\n", usual, at_6);
}

/* Returns "samtools rocksort ..." for the @PG line. */
static char *make_command_line(int argc, char **argv)
{
    char *args = stringify_argv(argc, argv);
    xalloc_require(args != NULL);
    char *line = xasprintf("samtools %s", args);
    /* A newline or tab in a file name would end the header line or its field. */
    for (char *at = line; *at; at++)
        if (iscntrl((unsigned char)*at)) *at = ' ';
    free(args);
    return line;
}

/* Prints the values that -@ auto and --max-memory auto chose. */
static void print_fit(const struct sort_options *options)
{
    if (options->auto_threads)
        diag_note("%u thread%s: %s", options->settings.n_threads,
                  options->settings.n_threads == 1 ? "" : "s", options->fit.threads_reason);
    if (options->settings.memory_bytes == options->fit.memory_bytes)
        diag_note("%zu MiB of memory: %s", options->settings.memory_bytes >> 20,
                  options->fit.memory_reason);
}

/*
 * Keeps glibc's allocator within the memory limit. Uses only two arenas: threads pass buffers to
 * each other, so with one arena a thread, freed memory would stay unused in many of them. Takes
 * large buffers from the heap, which reuses them without page faults, but uses mmap for those that
 * are large for the limit, because they often do not fit into a gap.
 */
static void tune_allocator(size_t memory_bytes)
{
#ifdef __GLIBC__
    enum { LEAST_BYTES = 1 << 20, MOST_BYTES = 16 << 20 };
    size_t n_bytes = memory_bytes / 32;
    if (n_bytes < LEAST_BYTES) n_bytes = LEAST_BYTES;
    if (n_bytes > MOST_BYTES) n_bytes = MOST_BYTES;
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, (int)n_bytes);
    (void)mallopt(M_TRIM_THRESHOLD, MOST_BYTES);
    (void)mallopt(M_TOP_PAD, 1 << 20);
#else
    (void)memory_bytes;
#endif
}

/* Checks `ulimit -s`, which sets the stack size of all threads. A sort works with 80 KiB and
   crashes with 72. */
static int check_stack(void)
{
    enum { LEAST_KIB = 128 };
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= (rlim_t)LEAST_KIB << 10) return 0;
    diag_error("a stack of %llu KiB is too small; raise 'ulimit -s' to %d KiB or more",
               (unsigned long long)stack.rlim_cur >> 10, LEAST_KIB);
    return -1;
}

/* Flushes standard output. Returns 0, or -1 after a message. */
static int flush_output(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    diag_error("cannot write 'standard output': %s", strerror(errno ? errno : EIO));
    return -1;
}

/*
 * Verifies each input by itself. If an input is in order, prints a line with its checksum on
 * standard output; otherwise a message with the first violation, or why it cannot be read. Returns
 * 0 if all are in order, else -1.
 */
static int verify_inputs(const struct sort_settings *settings)
{
    int r = 0;
    for (size_t i = 0; i < settings->n_inputs; i++) {
        struct sort_settings one = *settings;
        struct sort_report report;
        one.inputs = settings->inputs + i;
        one.n_inputs = 1;
        if (i > 0) diag_renew();
        int ended = sort_run(&one, &report);
        if (ended == 0 && report.verified) {
            (void)printf("%s: %s, ", one.inputs[0], report.order_words);
            sort_report_print_checksum(&report, stdout);
        }
        if (ended < 0 || !report.verified) r = -1;
        sort_report_release(&report);
    }
    return r;
}

/* The reports of a sort. */
struct reports {
    const struct sort_options *options;
    struct output_path json;
    struct markdup_report duplicates;
    bool has_json;             /* it is written */
    int result;                 /* -1: a report could not be written */
};

/* Writes the reports that are renamed together with the output. */
static void write_reports(void *arg, const struct sort_report *report, struct output_set *set)
{
    struct reports *reports = arg;
    const struct sort_settings *settings = &reports->options->settings;
    reports->has_json = reports->json.temporary != NULL;
    if (reports->has_json) output_set_add(set, &reports->json, OUTPUT_EXTRA);
    if ((reports->has_json &&
         sort_report_write_json(&reports->json, settings, report, false) < 0) ||
        markdup_report_write(&reports->duplicates, settings, report, set) < 0)
        reports->result = -1;
}

/* Sorts, or only computes the checksum; then prints and writes the other reports. */
static int sort_and_report(struct sort_options *options)
{
    struct sort_settings *settings = &options->settings;
    struct sort_report report = {0};
    struct reports reports = {.options = options};
    if (report_file_choose_counts(options) < 0 ||
        report_file_choose(&reports.json, "--report", options->report) < 0 ||
        markdup_report_choose(&reports.duplicates, settings) < 0 ||
        report_files_check(options, &reports.json, &reports.duplicates) < 0)
        return -1;
    settings->write_reports = write_reports;
    settings->reports_arg = &reports;
    int r = sort_run(settings, &report);
    if (r == 0 && settings->sum_only) sort_report_print_checksum(&report, stdout);
    if (r == 0 && options->print_checksum) sort_report_print_checksum(&report, stderr);
    if (r == 0 && hts_verbose >= 2 && !settings->sum_only)
        sort_report_print(&report, hts_verbose >= 4);
    if (!diag_failed() && settings->sum_only && flush_output() < 0) r = -1;
    /* After a failure the statistics may be held back together with the output. */
    if (options->report && (r < 0 ? !reports.json.is_held : !reports.has_json) &&
        sort_report_write_json(&reports.json, settings, &report, r < 0) < 0)
        r = -1;
    if (r == 0 && reports.result == 0 &&
        markdup_report_write(&reports.duplicates, settings, &report, NULL) < 0)
        r = -1;
    markdup_report_release(&reports.duplicates);
    output_path_release(&reports.json);
    sort_report_release(&report);
    return reports.result < 0 ? -1 : r;
}

/* Runs --plan, which also prints the values that -@ auto and --max-memory auto chose. */
static int print_plan(const struct sort_options *options)
{
    const struct sort_settings *settings = &options->settings;
    const struct machine_fit *fit = &options->fit;
    struct machine_facts machine;
    char threads[MACHINE_REASON_BYTES + 16] = "", memory[MACHINE_REASON_BYTES + 16] = "";
    machine_facts_gather(&machine);
    if (options->auto_threads)
        (void)snprintf(threads, sizeof threads, " (auto: %s)", fit->threads_reason);
    if (fit->n_threads > 0 && settings->memory_bytes == fit->memory_bytes)
        (void)snprintf(memory, sizeof memory, " (auto: %s)", fit->memory_reason);
    if (planner_print(settings, machine_fit_cpus(&machine), threads, memory) < 0) return -1;
    return flush_output();
}

static int run(struct sort_options *options)
{
    tune_allocator(options->settings.memory_bytes);
    if (options->fit.n_threads > 0 && hts_verbose >= 4) print_fit(options);
    if (options->plan) return print_plan(options);
    if (sort_options_check_terminal(options) < 0) return -1;
    if (!options->verify) return sort_and_report(options);
    int r = verify_inputs(&options->settings);
    if (!diag_failed() && flush_output() < 0) r = -1;
    return r;
}

/* With --resume, locks the checkpoint and resumes it: renames complete files, and sorts unless
   these are all files that are needed. */
static int run_or_resume(struct sort_options *options)
{
    if (check_stack() < 0) return -1;
    if (!options->resume) return run(options);
    struct checkpoint *checkpoint = checkpoint_open(options->resume);
    int named = checkpoint ? resume_publish(checkpoint) : -1;
    int r = named < 0 ? -1 : sort_options_adopt(options, checkpoint);
    bool is_done = r == 0 && named > 0 && !sort_options_ask_for_more(options, checkpoint);
    if (is_done && !options->settings.keep_checkpoint) checkpoint_remove(checkpoint);
    if (r == 0 && !is_done) r = run(options);
    checkpoint_close(checkpoint);
    return r;
}

int main_rocksort(int argc, char **argv)
{
    struct sort_options options;
    if (hold_closed_streams() < 0) return EXIT_FAILURE;
    diag_guard_stderr();
    sort_options_init(&options, strcmp(argv[0], "sort") == 0 ? DIALECT_SAMTOOLS_SORT
                                                             : DIALECT_ROCKSORT);
    int r = sort_options_parse(&options, argc, argv);
    if (r == 0 && options.version) {
        print_version();
        r = flush_output();
    } else if (r == 0 && (options.help || (options.nothing_given && isatty(STDIN_FILENO)))) {
        sort_options_print_usage(&options, stdout);
        r = flush_output();
    } else if (r == 0 && options.clean) {
        r = temp_clean(options.clean_place, options.yes);
        if (flush_output() < 0) r = -1;
    } else if (r == 0) {
        char *command_line = make_command_line(argc, argv);
        options.settings.command_line = command_line;
        r = run_or_resume(&options);
        free(command_line);
    }
    sort_options_release(&options);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
