/* checkpoint_writer.c -- see checkpoint_writer.h. */
#include "resume/checkpoint_writer.h"

#include "bam/header_text.h"
#include "input/input_file.h"
#include "os/disk_space.h"
#include "os/temp_dir.h"
#include "resume/checkpoint_dir.h"
#include "resume/resume_advice.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How complete the checkpoint is. Each state includes the ones before it. */
enum progress {
    NOT_RECORDED,
    RECORDED,                   /* the checkpoint file was written */
    HAS_ALL_RUNS,               /* also, all records are in runs */
    LOADED,                     /* also, the checkpoint file says so */
};

struct checkpoint_writer {
    const struct sort_settings *settings;
    struct checkpoint_sort_parts parts;
    /* constant after loading has begun */
    bool overwrites_input;      /* the output overwrites an input in place */
    char *output_name, *also_name;      /* absolute */
    struct checkpoint_file file;        /* constant until the sort is loaded; borrowed from
                                           settings->resumed, if that is set */
    char *own_header_text;      /* a copy, made before the sort order was set */
    sam_hdr_t *header;
    /* constant after the store is open */
    struct delayed_fsync *delayed_fsync;

    /* under the lock of the thread pool */
    char **paths;               /* of all directories, absolute, NULL-terminated */
    size_t n_paths;
    size_t n_adopted;           /* the first n_adopted are those of settings->resumed */
    size_t n_listed;            /* how many the checkpoint file of the first one lists */
    int *lock_fds;              /* for directories that this process made; else -1 */
    enum progress progress;
};

struct checkpoint_writer *checkpoint_writer_create(const struct sort_settings *settings,
                                                   const struct checkpoint_sort_parts *parts)
{
    struct checkpoint_writer *w = xcalloc(1, sizeof *w);
    w->settings = settings;
    w->parts = *parts;
    return w;
}

static void free_path(const char *path)
{
    free((char *)(uintptr_t)path);
}

static void free_file(const struct checkpoint_file *file)
{
    for (size_t i = 0; i < file->n_inputs; i++) free_path(file->inputs[i].path);
    free(file->inputs);
    free_path(file->fasta.path);
}

void checkpoint_writer_destroy(struct checkpoint_writer *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->n_paths; i++) {
        if (w->lock_fds[i] >= 0) (void)close(w->lock_fds[i]);
        free(w->paths[i]);
    }
    free(w->lock_fds);
    free(w->paths);
    if (!w->settings->resumed) free_file(&w->file);
    free(w->own_header_text);
    free(w->output_name);
    free(w->also_name);
    free(w);
}

/* ---- before loading ---- */

static void describe(const struct stat *st, struct checkpoint_input *input)
{
    int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    input->n_bytes = (uint64_t)st->st_size;
    input->mtime_ns = ns < 0 ? 0 : ns;
}

bool checkpoint_describe_file(const char *path, struct checkpoint_input *input)
{
    struct stat st;
    if (!input_is_regular(path, &st)) return false;
    describe(&st, input);
    return true;
}

/* The absolute path of an output. NULL: no name. */
static char *absolute_name(const struct output_path *path)
{
    if (!path->name) return NULL;
    char *real = path->final || path->is_url ? NULL : realpath(path->name, NULL);
    return real ? real : xstrdup(path->final ? path->final : path->name);
}

void checkpoint_writer_look_at_output(struct checkpoint_writer *w)
{
    const struct sort_settings *s = w->settings;
    w->output_name = absolute_name(w->parts.output_path);
    w->also_name = absolute_name(w->parts.also_path);
    if (s->output && !w->parts.output_path->final && !s->no_resume)
        w->overwrites_input =
            input_is_among(s->inputs, s->n_inputs, w->parts.output_path->name);
}

/* Describes the FASTA file of -I; the caller frees its path. */
static struct checkpoint_input describe_fasta(const char *path)
{
    struct checkpoint_input fasta = {0};
    if (path && checkpoint_describe_file(path, &fasta)) fasta.path = realpath(path, NULL);
    if (!fasta.path) fasta.path = xstrdup(path ? path : "");
    return fasta;
}

/* Describes options and output of this process. */
static void describe_output(struct checkpoint_writer *w)
{
    const struct sort_settings *s = w->settings;
    w->file.options = s->options;
    w->file.n_options = s->n_options;
    w->file.output = s->asked_output;
    const char *index = w->parts.index_path->final;
    w->file.output.path = w->output_name;
    w->file.output.index = index ? index : s->index_path;
    w->file.output.also = w->also_name;
}

void checkpoint_writer_remember_inputs(struct checkpoint_writer *w, struct bam_inputs *inputs,
                                       sam_hdr_t *header)
{
    const struct sort_settings *s = w->settings;
    w->header = header;
    describe_output(w);
    if (s->no_resume || s->sum_only) return;
    w->file.fasta = describe_fasta(s->minhash_fasta);
    w->file.can_read_again = inputs->can_seek;
    w->file.n_inputs = s->n_inputs;
    w->file.inputs = xcalloc(s->n_inputs, sizeof *w->file.inputs);
    for (size_t i = 0; i < s->n_inputs; i++) {
        struct checkpoint_input *input = &w->file.inputs[i];
        /* Describe the open file: the name may refer to another one now. */
        const struct stat *st = bam_inputs_file(inputs, i);
        if (st && strcmp(s->inputs[i], "-") != 0) {
            describe(st, input);
            input->path = realpath(s->inputs[i], NULL);
        }
        if (input->path) continue;
        /* A pipe, or an unnamed file, which /dev/stdin may be. */
        w->file.can_read_again = false;
        input->path = xstrdup(s->inputs[i]);
    }
    /* Copy the text, because htslib frees it when a line changes. Do it now, before other threads
       use the header. */
    w->file.header = w->own_header_text = xstrdup(header_whole_text(w->header));
}

/* ---- the directories ---- */

/* Makes a directory with the lock held: the signal thread must know of every directory. */
static int make_directory(struct checkpoint_writer *w, const char *prefix)
{
    const struct sort_settings *s = w->settings;
    /* Without -T: beside the output, if that is a file. */
    const char *beside = w->parts.output_path->final ? s->output : NULL;
    thread_pool_lock(w->parts.threads);
    char *path = temp_dir_create(prefix, beside), *real = path ? realpath(path, NULL) : NULL;
    if (real) {
        free(path);
        path = real;
    }
    int fd = path ? checkpoint_dir_claim(path) : -1, error = errno;
    if (path) {
        w->lock_fds[w->n_paths] = fd;
        w->paths[w->n_paths++] = path;
    }
    thread_pool_unlock(w->parts.threads);
    if (path && fd < 0)
        diag_error("cannot make files in the temporary directory '%s': %s; %s", path,
                   strerror(error),
                   error == EMFILE || error == ENFILE ? "raise 'ulimit -n'"
                                                      : "choose another place with -T");
    return fd < 0 ? -1 : 0;
}

/* Makes room for n directories. */
static void make_room(struct checkpoint_writer *w, size_t n)
{
    w->paths = xcalloc(n + 1, sizeof *w->paths);
    w->lock_fds = xcalloc(n, sizeof *w->lock_fds);
    for (size_t i = 0; i < n; i++) w->lock_fds[i] = -1;
}

struct temp_dirs checkpoint_writer_directories(const struct checkpoint_writer *w)
{
    return (struct temp_dirs){(const char *const *)w->paths, w->n_paths,
                              w->n_paths > w->n_adopted ? w->n_adopted : 0};
}

/* The first prefix whose disk has room for two checkpoint files; if there is none, the one with the
   most room. */
static size_t roomy_prefix(const struct checkpoint_writer *w)
{
    enum { MOST_OTHER_BYTES = 64 << 10 };       /* of the file, beside the header */
    const struct sort_settings *s = w->settings;
    size_t header_bytes = w->file.header ? strlen(w->file.header) : 0, best = 0;
    uint64_t most = 0;
    for (size_t i = 0; i < s->n_temp_prefixes && s->n_temp_prefixes > 1; i++) {
        struct disk_space space;
        (void)disk_space_look(s->temp_prefixes[i], &space);
        if (space.free_bytes >= 2 * (header_bytes + MOST_OTHER_BYTES)) return i;
        if (space.free_bytes <= most) continue;
        most = space.free_bytes;
        best = i;
    }
    return best;
}

int checkpoint_writer_make_directories(struct checkpoint_writer *w, struct temp_dirs *dirs)
{
    const struct sort_settings *s = w->settings;
    if (w->n_paths + s->n_temp_prefixes > CHECKPOINT_MOST_DIRECTORIES) {
        diag_error("a sort can have %d temporary directories at most: give fewer -T",
                   CHECKPOINT_MOST_DIRECTORIES);
        return -1;
    }
    if (!w->paths) make_room(w, s->n_temp_prefixes);
    size_t n = s->n_temp_prefixes, first = roomy_prefix(w);
    for (size_t i = 0; i < n; i++)
        if (make_directory(w, s->temp_prefixes[(first + i) % n]) < 0) return -1;
    *dirs = checkpoint_writer_directories(w);
    return 0;
}

char **checkpoint_writer_copy_paths(const struct checkpoint_writer *w)
{
    size_t n_bytes = (w->n_paths + 1) * sizeof *w->paths;
    for (size_t i = 0; i < w->n_paths; i++) n_bytes += strlen(w->paths[i]) + 1;
    char **paths = xmalloc(n_bytes), *at = (char *)(paths + w->n_paths + 1);
    for (size_t i = 0; i < w->n_paths; i++) {
        paths[i] = at;
        at = stpcpy(at, w->paths[i]) + 1;
    }
    paths[w->n_paths] = NULL;
    return paths;
}

/* Removes a directory, then its lock. */
static void remove_directory(struct checkpoint_writer *w, size_t i)
{
    const char *path = w->paths[i];
    bool removed = temp_dir_remove(path) == 0;
    if (w->lock_fds[i] >= 0) {
        (void)close(w->lock_fds[i]);
        w->lock_fds[i] = -1;
    }
    /* With few open files (ulimit -n 6), removal may need the lock's descriptor. */
    if (!removed && temp_dir_remove(path) < 0)
        diag_left("warning: cannot remove the temporary directory '%s': %s", path,
                  strerror(errno));
}

void checkpoint_writer_remove_directories(struct checkpoint_writer *w, bool only_unlisted)
{
    size_t first = 0;
    if (only_unlisted) first = w->settings->resumed ? w->n_listed : w->n_paths;
    /* Without the file of the first directory, none is a checkpoint. */
    else if (w->n_paths > 0) temp_dir_remove_checkpoint(w->paths[0]);
    for (size_t i = first; i < w->n_paths; i++) remove_directory(w, i);
}

/* ---- the checkpoint file ---- */

/* Writes the checkpoint file into the first directory; if it lists new directories, into these
   before. A resumed sort then holds the lock: new directories are removed if a signal comes before
   that, and stay if it comes after. Returns 0, or -1 with errno set. */
static int write_file(struct checkpoint_writer *w, struct checkpoint_file *file)
{
    bool lists_new = w->settings->resumed && w->n_listed < w->n_paths;
    for (size_t i = w->n_paths - 1; i > 0 && i >= w->n_listed; i--) {
        file->directory = (unsigned)i;
        if (checkpoint_dir_write(w->paths[i], file) < 0)
            diag_warning("cannot write '%s/" TEMP_DIR_CHECKPOINT_NAME "': %s", w->paths[i],
                         strerror(errno));
    }
    file->directory = 0;
    if (lists_new) thread_pool_lock(w->parts.threads);
    int r = checkpoint_dir_write(w->paths[0], file), error = errno;
    if (r == 0) w->n_listed = w->n_paths;
    if (lists_new) thread_pool_unlock(w->parts.threads);
    /* If its disk is full, a later state may stand in any other directory. */
    bool is_later = file->state != CHECKPOINT_LOADING && w->n_listed == w->n_paths;
    for (size_t i = 1; i < w->n_paths && r < 0 && is_later && disk_space_is_short(error); i++) {
        file->directory = (unsigned)i;
        r = checkpoint_dir_write(w->paths[i], file);
    }
    errno = error;
    return r;
}

/* The description of the sort, with all directories. */
static struct checkpoint_file file_of(const struct checkpoint_writer *w)
{
    struct checkpoint_file file = w->file;
    file.n_directories = w->n_paths;
    file.directories = (const char **)w->paths;
    return file;
}

/* Writes the checkpoint file. Returns 0, or -1 with errno set, after a warning unless the sort was
   resumed and so has a file already. */
static int write_checkpoint(struct checkpoint_writer *w, enum checkpoint_state state,
                            unsigned n_runs)
{
    const struct sort_settings *s = w->settings;
    const struct checkpoint_sort_parts *parts = &w->parts;
    struct checkpoint_file file = file_of(w);
    file.state = state;
    const char **temporaries = file.output.temporaries;
    temporaries[CHECKPOINT_OF_OUTPUT] =
        parts->groups->path ? parts->groups->path : parts->output_path->temporary;
    temporaries[CHECKPOINT_OF_INDEX] = parts->index_path->temporary;
    temporaries[CHECKPOINT_OF_ALSO] = parts->also_path->temporary;
    if (state != CHECKPOINT_LOADING) {
        struct load_counts counts;
        load_totals_look(w->parts.totals, &counts);
        file.n_runs = n_runs;
        file.sum = counts.sum;
        file.header = header_whole_text(w->header);
    }
    int r = write_file(w, &file), error = errno;
    if (r < 0 && !s->resumed && !thread_pool_failed(parts->threads))
        diag_warning("cannot write '%s/" TEMP_DIR_CHECKPOINT_NAME "': %s; if this sort fails it %s",
                     w->paths[0], strerror(error),
                     state == CHECKPOINT_LOADING ? "cannot be resumed" : "is tried again");
    errno = error;
    return r;
}

static void set_progress(struct checkpoint_writer *w, enum progress progress)
{
    thread_pool_lock(w->parts.threads);
    w->progress = progress;
    thread_pool_unlock(w->parts.threads);
}

int checkpoint_writer_begin(struct checkpoint_writer *w, unsigned n_lanes)
{
    struct threads *threads = w->parts.threads;
    w->file.n_lanes = n_lanes;
    /* If the output overwrites an input, its records will exist only here. */
    w->delayed_fsync = delayed_fsync_begin(w->settings, threads, checkpoint_writer_copy_paths(w),
                                           w->overwrites_input);
    if (!w->delayed_fsync) return -1;
    if (w->settings->resumed) return 0;
    const struct checkpoint_file own = file_of(w);
    orphan_checkpoints_tell(&own);
    if (w->settings->no_resume) return 0;
    if (write_checkpoint(w, CHECKPOINT_LOADING, 0) == 0) set_progress(w, RECORDED);
    return thread_pool_failed(threads) ? -1 : 0;
}

void checkpoint_writer_adopt(struct checkpoint_writer *w, sam_hdr_t *header)
{
    const struct checkpoint *resumed = w->settings->resumed;
    w->file = resumed->file;
    /* A sort that writes to standard output keeps the output of the first one. */
    if (w->settings->output) describe_output(w);
    w->header = header;
    thread_pool_lock(w->parts.threads);
    make_room(w, resumed->n_dirs + w->settings->n_temp_prefixes);
    for (size_t i = 0; i < resumed->n_dirs; i++) w->paths[i] = xstrdup(resumed->dirs[i].path);
    w->n_paths = w->n_adopted = w->n_listed = resumed->n_dirs;
    thread_pool_unlock(w->parts.threads);
}

int checkpoint_writer_adopted(struct checkpoint_writer *w, unsigned n_runs)
{
    set_progress(w, w->file.state == CHECKPOINT_LOADED ? LOADED : RECORDED);
    int r = write_checkpoint(w, w->file.state, n_runs), error = errno;
    if (r < 0 && w->n_paths > w->n_adopted) {
        diag_error("cannot write '%s/" TEMP_DIR_CHECKPOINT_NAME "', which must name the new "
                   "temporary directory: %s; free a little space there", w->paths[0],
                   strerror(error));
        return -1;
    }
    return thread_pool_failed(w->parts.threads) ? -1 : 0;
}

bool checkpoint_writer_needs_all_runs(const struct checkpoint_writer *w)
{
    const struct sort_settings *s = w->settings;
    struct load_counts counts;
    load_totals_look(w->parts.totals, &counts);
    if (w->overwrites_input || counts.input_is_cut || w->parts.totals->stop_signal)
        return true;
    return w->progress >= RECORDED && (!w->file.can_read_again || s->keep_checkpoint);
}

bool checkpoint_writer_saves_part(const struct checkpoint_writer *w)
{
    const struct sort_settings *s = w->settings;
    return s->keep_checkpoint && !s->no_resume && !s->sum_only && !w->file.can_read_again;
}

int checkpoint_writer_end_load(struct checkpoint_writer *w, unsigned n_runs)
{
    if (w->progress < RECORDED || w->progress == LOADED) return 0;
    /* With --partial, the checkpoint file must not say that all records are loaded. */
    if (!w->parts.reads_input) return 0;
    bool written = write_checkpoint(w, CHECKPOINT_LOADED, n_runs) == 0;
    set_progress(w, written ? LOADED : HAS_ALL_RUNS);
    return thread_pool_failed(w->parts.threads) ? -1 : 0;
}

void checkpoint_writer_save_part(struct checkpoint_writer *w, unsigned n_runs)
{
    if (w->progress < RECORDED) return;
    if (write_checkpoint(w, CHECKPOINT_PARTIAL, n_runs) == 0) set_progress(w, LOADED);
}

void checkpoint_writer_try_again(struct checkpoint_writer *w, unsigned n_runs)
{
    thread_pool_fail(w->parts.threads); /* so that write_checkpoint prints no more warnings */
    if (w->progress == HAS_ALL_RUNS) (void)checkpoint_writer_end_load(w, n_runs);
}

bool checkpoint_writer_may_write(const struct checkpoint_writer *w)
{
    const struct sort_settings *s = w->settings;
    struct load_counts counts;
    load_totals_look(w->parts.totals, &counts);
    if (!w->overwrites_input || w->progress == LOADED || counts.sum.n_records == 0) return true;
    diag_error("'%s' is an input, and there is no place for its records while it is written: name "
               "another output", s->output);
    return false;
}

void checkpoint_writer_tell_failed_sync(struct checkpoint_writer *w, int result)
{
    delayed_fsync_tell(w->delayed_fsync, result);
}

void checkpoint_writer_end_syncs(struct checkpoint_writer *w, bool directories_stay)
{
    delayed_fsync_end(w->delayed_fsync, directories_stay);
    w->delayed_fsync = NULL;
}

/* ---- whether it stays ---- */

bool checkpoint_writer_is_loaded(const struct checkpoint_writer *w)
{
    thread_pool_assert_locked(w->parts.threads);
    return w->progress == LOADED;
}

bool checkpoint_writer_is_wish(int signal_number)
{
    return signal_number == SIGINT || signal_number == SIGQUIT || signal_number == SIGPIPE;
}

bool checkpoint_writer_keeps(const struct checkpoint_writer *w, int signal_number,
                             unsigned n_durable)
{
    const struct sort_settings *s = w->settings;
    const struct load_counts *counts = load_totals_locked(w->parts.totals);
    bool is_wish = checkpoint_writer_is_wish(signal_number);
    if (diag_cause() == DIAG_HOPELESS && !s->resumed && !s->keep_checkpoint) return false;
    if (s->resumed || (w->overwrites_input && w->progress == LOADED)) return true;
    if (w->progress == NOT_RECORDED || (is_wish && !s->keep_checkpoint)) return false;
    if (w->progress >= HAS_ALL_RUNS) return true;
    bool can_go_on = w->file.can_read_again && !counts->input_is_bad;
    return n_durable > 0 && (can_go_on || s->keep_checkpoint);
}

/* Prints the command that resumes the sort. */
static void tell_how(const struct checkpoint_writer *w)
{
    const struct sort_settings *s = w->settings;
    const struct load_counts *counts = load_totals_locked(w->parts.totals);
    bool partial = counts->input_is_cut || (w->progress != LOADED && !w->file.can_read_again);
    const char *path = w->paths[0];
    if (!checkpoint_dir_has_file(path)) {
        diag_left("warning: '%s' cannot be resumed: the directory or its STORE file was moved or "
                  "deleted", path);
        return;
    }
    if (diag_cause() == DIAG_HOPELESS) {
        diag_left("'%s' is kept, but --resume would fail again", path);
        return;
    }
    char command[CHECKPOINT_COMMAND_BYTES];
    struct checkpoint_file file = file_of(w);
    file.output.path = w->output_name;
    struct other_disk other = other_disk_choose(&file, !partial && w->progress != LOADED);
    /* Bytes may have been corrupted while they were read: a second attempt may work. */
    diag_left("temporary files kept; to %s%s: %s",
              diag_cause() == DIAG_DAMAGE ? "try once more"
              : partial                   ? "write what there is"
                                          : "finish",
              other.note,
              checkpoint_command(path, partial, s->output != NULL, &other.places, command));
    other_disk_release(&other);
}

void checkpoint_writer_tell(const struct checkpoint_writer *w, bool kept, unsigned n_durable)
{
    thread_pool_assert_locked(w->parts.threads);
    if (w->progress == NOT_RECORDED) return;    /* no file was written, or resuming was refused */
    if (kept)
        tell_how(w);
    else if (n_durable > 0 && !w->file.can_read_again && w->progress == LOADED)
        diag_warning("temporary files removed: the reader of the output has gone (-k keeps partial "
                     "results)");
    else if (n_durable > 0 && !w->file.can_read_again)
        diag_warning("temporary files removed: only BAM input can be resumed (-k keeps partial "
                     "results)");
}
