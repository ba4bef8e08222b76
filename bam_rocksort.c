/*
 * bam_rocksort.c -- the command `samtools rocksort`: from options to the sort, to the closing line
 * and the exit status.
 */
#include "bam_rocksort.h"

#include "bgzf_block.h"
#include "diag.h"
#include "sort_options.h"
#include "version.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* See doc/samtools-rocksort.1, CHECKSUM, for what it means. */
static void print_checksum(FILE *to, const struct sort_report *r)
{
    (void)fprintf(to, "xxh3sum:%016" PRIx64 " records:%" PRIu64 " bytes:%" PRIu64 "\n", r->checksum,
                  r->n_records, r->raw_bytes);
}

static void print_details(const struct sort_report *r)
{
    const struct run_store_stats *store = &r->store;
    diag_note("%u batches merged from memory, reader waited %.2f s for memory",
              r->n_batches_kept, r->reader_wait_seconds);
    if (store->n_runs == 0) return;
    if (store->disk.seek_seconds > 0)
        diag_note("temporary disk (%s): a seek takes %.2f ms, %.1f at a time, reading in order "
                  "%.0f MB/s", store->disk.file_system, 1e3 * store->disk.seek_seconds,
                  store->disk.parallel, 1e-6 * store->disk.bytes_per_second);
    diag_note("codec: %u runs none, %u snappy, %u lz4, %u zstd; the last one because %s",
              r->runs_of_codec[TEMP_CODEC_NONE], r->runs_of_codec[TEMP_CODEC_SNAPPY],
              r->runs_of_codec[TEMP_CODEC_LZ4], r->runs_of_codec[TEMP_CODEC_ZSTD],
              codec_reason_text(r->codec_reason));
    diag_note("compaction %s, because %s", store->compacted ? "on" : "off",
              compaction_reason_text(store->reason));
    if (store->compacted)
        diag_note("compacted %u files at a time beyond %u, reading %zu KiB at a time",
                  store->width, store->max_files, store->compaction_read_bytes >> 10);
    diag_note("the merge read %u files, %zu KiB at a time (0: as the kernel does)%s, with about "
              "%" PRIu64 " seeks in all", store->n_files, store->scan_read_bytes >> 10,
              store->direct ? " past the page cache" : "", store->n_seeks);
}

static void print_closing_line(const struct sort_report *r)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    double wall = r->load_seconds + r->merge_seconds;
    diag_note("%" PRIu64 " records, %.1f MB; %u runs on disk, %.1f MB temporary, %.1f MB compacted"
              "; %.1f s wall (load %.1f, merge %.1f), %.1f s CPU, %.1f MiB peak memory",
              r->n_records, 1e-6 * (double)r->raw_bytes, r->store.n_runs,
              1e-6 * (double)r->store.run_bytes, 1e-6 * (double)r->store.compacted_bytes, wall,
              r->load_seconds, r->merge_seconds, cpu, peak_memory(&usage));
    if (hts_verbose >= 4) print_details(r);
    for (char **path = r->store_paths; path && *path; path++)
        diag_note("the temporary database is kept in '%s'", *path);
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
    struct sort_report report = {0};
    tune_allocator();
    int r = sort_run(&options->settings, &report);
    if (r == 0 && options->settings.sum_only) print_checksum(stdout, &report);
    if (r == 0 && options->print_checksum) print_checksum(stderr, &report);
    if (r == 0 && hts_verbose >= 2 && !options->settings.sum_only) print_closing_line(&report);
    sort_report_release(&report);
    if (r == 0 && options->settings.sum_only && fflush(stdout) != 0) {
        diag_error("cannot write standard output: %s", strerror(errno));
        r = -1;
    }
    return r;
}

int main_rocksort(int argc, char **argv)
{
    struct sort_options options;
    diag_guard_stderr();
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
