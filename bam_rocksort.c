/*
 * bam_rocksort.c -- the command `samtools rocksort`: from options to the sort, to the closing line
 * and the exit status.
 */
#include "bam_rocksort.h"

#include "bgzf_block.h"
#include "diag.h"
#include "sort_options.h"
#include "sort_stats.h"
#include "version.h"

#include <ctype.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_version(void)
{
    (void)printf("samtools rocksort %s\nUsing htslib %s, %s\n", ROCKSORT_VERSION, hts_version(),
                 bgzf_deflate_library());
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

static int run(struct sort_options *options)
{
    const struct sort_settings *settings = &options->settings;
    const char *stats = options->stats;
    struct sort_report report = {0};
    struct output_path stats_path = {0};
    if (stats && sort_stats_choose(&stats_path, stats, settings) < 0) return -1;
    tune_allocator();
    int r = sort_run(settings, &report);
    if (r == 0 && settings->sum_only) sort_report_print_checksum(&report, stdout);
    if (r == 0 && options->print_checksum) sort_report_print_checksum(&report, stderr);
    if (r == 0 && hts_verbose >= 2 && !settings->sum_only)
        sort_report_print(&report, hts_verbose >= 4);
    if (r == 0 && settings->sum_only && fflush(stdout) != 0) {
        diag_error("cannot write standard output: %s", strerror(errno));
        r = -1;
    }
    if (stats && sort_stats_write(&stats_path, settings, &report, r < 0) < 0) r = -1;
    output_path_release(&stats_path);
    sort_report_release(&report);
    return r;
}

int main_rocksort(int argc, char **argv)
{
    struct sort_options options;
    sort_options_init(&options, strcmp(argv[0], "sort") == 0 ? DIALECT_SAMTOOLS_SORT
                                                             : DIALECT_ROCKSORT);
    int r = sort_options_parse(&options, argc, argv);
    if (r == 0 && options.version) {
        print_version();
    } else if (r == 0 && (options.help || (options.nothing_given && isatty(STDIN_FILENO)))) {
        sort_options_print_usage(&options, stdout);
    } else if (r == 0) {
        char *command_line = make_command_line(argc, argv);
        options.settings.command_line = command_line;
        r = command_line ? run(&options) : -1;
        free(command_line);
    }
    sort_options_release(&options);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
