/* count_files.c -- see count_files.h. */
#include "output/count_files.h"

#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- choosing ---- */

/* The suffix of file i, or NULL. */
static const char *suffix_of(const struct count_kind *is, const void *options, unsigned i)
{
    if (is->suffix) return is->suffix(options, i);
    return i == 0 ? "" : NULL;
}

static int choose_files(int kind, struct count_report *report)
{
    const struct count_kind *is = count_kinds[kind];
    const char *option = count_kind_option(kind), *name = report->request.name, *suffix;
    const void *options = report->request.options;
    report->files = xcalloc(MOST_COUNT_FILES, sizeof *report->files);
    while (report->n_files < MOST_COUNT_FILES &&
           (suffix = suffix_of(is, options, report->n_files))) {
        unsigned i = report->n_files++;
        struct count_file *file = &report->files[i];
        file->name = xasprintf("%s%s", name, suffix);
        file->is_streamed = is->is_streamed && is->is_streamed(options, i);
        if (strcmp(name, "-") == 0 && i == 0 && !*suffix) continue;
        if (path_is_url(name) || strcmp(name, "-") == 0) {
            diag_error("option %s takes the name of a file%s, not '%s'", option,
                       *suffix ? " without its ending" : "", name);
            return -1;
        }
        if (output_path_choose(&file->path, file->name) < 0) return -1;
    }
    return 0;
}

/* Returns the absolute name of the files, or NULL. */
static char *whole_name(const struct count_report *report)
{
    const struct count_file *first = &report->files[0];
    if (!first->path.final) return NULL;
    if (strcmp(first->name, report->request.name) == 0) return xstrdup(first->path.final);
    char *dir = path_parent(report->request.name), *real = realpath(dir, NULL);
    char *name = xasprintf("%s/%s", real ? real : dir, path_name(report->request.name));
    free(real);
    free(dir);
    return name;
}

int count_files_choose(int kind, const char *text, struct count_report *report)
{
    *report = (struct count_report){0};
    if (!text) return 0;
    if (count_request_parse(kind, text, &report->request) < 0 || choose_files(kind, report) < 0)
        return -1;
    report->final = whole_name(report);
    return 0;
}

void count_files_guard(struct count_report *reports, pthread_mutex_t *lock, bool durable,
                       struct output_set *set)
{
    for (int kind = 0; reports && kind < COUNT_N_KINDS; kind++) {
        for (unsigned i = 0; i < reports[kind].n_files; i++) {
            struct output_path *path = &reports[kind].files[i].path;
            path->lock = lock;
            path->durable = durable;
            output_set_add(set, path, OUTPUT_EXTRA);
        }
    }
}

/* ---- streamed files ---- */

static struct count_file *file_of(struct count_sink *sink)
{
    return (struct count_file *)sink;
}

static int fail(struct count_file *file)
{
    return output_path_fail(&file->path, "a report", errno ? errno : EIO);
}

static int write_stream(struct count_sink *sink, const void *bytes, size_t n_bytes)
{
    errno = 0;
    if (hwrite(file_of(sink)->stream, bytes, n_bytes) != (ssize_t)n_bytes)
        return fail(file_of(sink));
    sink->n_bytes += n_bytes;
    return 0;
}

static int rewrite_stream(struct count_sink *sink, uint64_t offset, const void *bytes,
                          size_t n_bytes)
{
    struct count_file *file = file_of(sink);
    int fd = output_path_descriptor(&file->path);
    if (fd < 0) {
        diag_error("'%s' must be a file on a disk: its beginning is written last",
                   file->path.name ? file->path.name : "standard output");
        return -1;
    }
    errno = 0;
    if (hflush(file->stream) < 0) return fail(file);
    for (size_t at = 0; at < n_bytes;) {
        ssize_t n = pwrite(fd, (const char *)bytes + at, n_bytes - at, (off_t)(offset + at));
        if (n < 0 && errno != EINTR) return fail(file);
        if (n > 0) at += (size_t)n;
    }
    return 0;
}

static int open_stream(struct count_file *file)
{
    errno = 0;
    if (file->path.name) {
        file->stream = output_path_open(&file->path);
    } else {
        int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        file->stream = fd >= 0 ? hdopen(fd, "w") : NULL;
    }
    file->sink = (struct count_sink){.write = write_stream, .rewrite = rewrite_stream};
    return file->stream ? 0 : fail(file);
}

static int close_stream(struct count_file *file)
{
    hFILE *stream = file->stream;
    file->stream = NULL;
    if (output_path_close(&file->path, stream) < 0) return fail(file);
    return output_path_commit(&file->path);
}

void count_files_close(struct count_report *reports)
{
    for (int kind = 0; reports && kind < COUNT_N_KINDS; kind++) {
        for (unsigned i = 0; i < reports[kind].n_files; i++) {
            struct count_file *file = &reports[kind].files[i];
            if (file->stream) output_path_close_incomplete(&file->path, file->stream);
            file->stream = NULL;
        }
    }
}

/* ---- observers ---- */

size_t count_files_memory(const struct count_report *reports, size_t total_bytes)
{
    size_t sum = 0;
    for (int kind = 0; reports && kind < COUNT_N_KINDS; kind++)
        if (reports[kind].request.name && count_kinds[kind]->memory_share > 0)
            sum += total_bytes / count_kinds[kind]->memory_share;
    return sum;
}

static int observe(const struct count_kind *is, struct count_report *report,
                   const struct count_setup *setup)
{
    report->setup = *setup;
    report->setup.options = report->request.options;
    report->setup.name = report->request.name;
    report->setup.memory_bytes /= is->memory_share ? is->memory_share : COUNT_LITTLE_MEMORY;
    report->sinks = xcalloc(report->n_files, sizeof *report->sinks);
    report->setup.sinks = report->sinks;
    for (unsigned i = 0; i < report->n_files; i++) {
        if (!report->files[i].is_streamed) continue;
        if (open_stream(&report->files[i]) < 0) return -1;
        report->sinks[i] = &report->files[i].sink;
    }
    report->counts = is->observe(&report->setup);
    return report->counts ? 0 : -1;
}

int count_files_observe(struct count_report *reports, const struct count_setup *setup,
                        struct record_observers *observers)
{
    for (int kind = 0; reports && kind < COUNT_N_KINDS; kind++) {
        if (!reports[kind].request.name) continue;
        if (observe(count_kinds[kind], &reports[kind], setup) < 0) return -1;
        record_observers_add(observers, reports[kind].counts);
    }
    return 0;
}

/* ---- writing ---- */

struct printing {               /* file `file` of an observer */
    const struct record_observer *counts;
    unsigned file;
};

static int print(FILE *to, const void *arg)
{
    const struct printing *printing = arg;
    return printing->counts->kind->print(printing->counts, printing->file, to);
}

int count_files_write(struct count_report *reports, bool in_place)
{
    for (int kind = 0; reports && kind < COUNT_N_KINDS; kind++) {
        struct count_report *report = &reports[kind];
        struct record_observer *counts = report->counts;
        if (!report->request.name) continue;
        if (!in_place && counts->kind->finish && counts->kind->finish(counts) < 0) return -1;
        for (unsigned i = 0; i < report->n_files; i++) {
            struct count_file *file = &report->files[i];
            bool is_later = !file->is_streamed && !file->path.temporary;
            if (is_later != in_place) continue;
            const struct printing printing = {counts, i};
            int r = file->is_streamed ? close_stream(file)
                                      : output_path_print(&file->path, count_kind_option(kind),
                                                          print, &printing);
            if (r < 0) return -1;
        }
    }
    return 0;
}

void count_files_release(struct count_report *reports)
{
    count_files_close(reports);
    for (int kind = 0; kind < COUNT_N_KINDS; kind++) {
        struct count_report *report = &reports[kind];
        count_request_release(kind, &report->request);
        for (unsigned i = 0; i < report->n_files; i++) {
            output_path_release(&report->files[i].path);
            free(report->files[i].name);
        }
        free(report->files);
        free(report->sinks);
        free(report->final);
        *report = (struct count_report){0};
    }
}
