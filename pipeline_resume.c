/*
 * pipeline_resume.c -- the store as something that outlives the process: what is written down while
 * it is filled, whether it stays when the sort fails, and how another process goes on with it.
 *
 * Each run has a label (run_label.h) and becomes durable with it, in one step of RocksDB's. So a
 * load needs no syncs of its own: whoever comes later follows the chain of labels, and reads on
 * where the last of them ends, if the inputs can be read from there. The record (store_record.h) is
 * written when the store is made and once more when all records are in runs.
 *
 * What is not in a run when a file has been read need not be: it can be read again. Of a pipe all
 * must be on disk before the merge begins.
 */
#include "pipeline_internal.h"

#include "diag.h"
#include "disk_space.h"
#include "grow.h"
#include "header_text.h"
#include "input_file.h"
#include "scratch_dir.h"
#include "store_dir.h"
#include "version.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is written down ---- */

/* Size and time of change. */
static void describe(const struct stat *st, struct store_input *input)
{
    int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    input->n_bytes = (uint64_t)st->st_size;
    input->mtime_ns = ns < 0 ? 0 : ns;
}

/* False: it is no regular file. */
static bool describe_file(const char *path, struct store_input *input)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    describe(&st, input);
    return true;
}

/* NULL after a message. */
static const char *header_text(const struct pipeline *p)
{
    const char *text = header_whole_text(p->header);
    if (!text)
        diag_error("the header of '%s' is damaged, or memory is short", p->settings->inputs[0]);
    return text;
}

int resume_remember_inputs(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    if (s->no_resume || s->sum_only) return 0;
    p->n_input_files = s->n_inputs;
    p->input_files = calloc(s->n_inputs, sizeof *p->input_files);
    if (!p->input_files) return pipeline_no_memory(p);
    p->can_read_again = bam_inputs_can_seek(p->inputs);
    for (size_t i = 0; i < s->n_inputs; i++) {
        struct store_input *input = &p->input_files[i];
        /* Not what its name stands for now: reading its header took a moment. */
        const struct stat *st = bam_inputs_file(p->inputs, i);
        if (st && strcmp(s->inputs[i], "-") != 0) {
            describe(st, input);
            input->path = realpath(s->inputs[i], NULL);
        }
        if (input->path) continue;
        /* A pipe; or a file that has lost its name, and is /dev/stdin. */
        p->can_read_again = false;
        input->path = strdup(s->inputs[i]);
        if (!input->path) return pipeline_no_memory(p);
    }
    /* As it is before threads look at it, in a copy: htslib frees its text when a line changes. */
    const char *text = header_text(p);
    if (!text) return -1;
    p->header_text = strdup(text);
    return p->header_text ? 0 : pipeline_no_memory(p);
}

/* Describes the FASTA file of -I; its path is to be freed. */
static struct store_input describe_fasta(const struct pipeline *p)
{
    struct store_input fasta = {0};
    const char *path = p->settings->minhash_fasta;
    if (path && describe_file(path, &fasta)) fasta.path = realpath(path, NULL);
    if (path && !fasta.path) fasta.path = strdup(path);
    return fasta;
}

static int make_id(char id[STORE_ID_BYTES + 1])
{
    uint8_t bytes[STORE_ID_BYTES / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return -1;
    for (size_t i = 0; i < sizeof bytes; i++) (void)sprintf(id + 2 * i, "%02x", bytes[i]);
    return 0;
}

char *resume_output_name(const struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    const char *file = p->output.final ? p->output.final : s->output;
    const char *index = p->index_output.final ? p->index_output.final : s->index_path;
    char *real = p->output.final || strstr(file, "://") ? NULL : realpath(file, NULL);
    if (real) file = real;
    size_t room = strlen(file) + (index ? strlen(index) : 0) + sizeof HTS_IDX_DELIM;
    char *name = malloc(room);
    if (name)
        (void)snprintf(name, room, "%s%s%s", file, index ? HTS_IDX_DELIM : "", index ? index : "");
    free(real);
    return name;
}

/* True if the header's text has the references as the records number them. */
static bool text_has_references(const char *text, sam_hdr_t *header)
{
    int32_t n = sam_hdr_nref(header), tid = 0;
    struct text line;
    while (header_next_line(&text, &line)) {
        if (!header_line_is(line, "@SQ")) continue;
        struct text rest = header_line_rest(line), field, name = {NULL, 0};
        while (!name.at && header_next_field(&rest, &field)) name = header_field_value(field, "SN");
        const char *want = tid < n ? sam_hdr_tid2name(header, tid++) : NULL;
        if (!want || !name.at || !text_equal(name, (struct text){want, strlen(want)})) return false;
    }
    return tid == n;
}

/* Adds to a record what the text lacks. */
static int list_references(struct pipeline *p, struct store_record *record)
{
    if (text_has_references(record->header, p->header)) return 0;
    size_t n = (size_t)p->n_refs;
    record->reference_names = calloc(n + 1, sizeof *record->reference_names);
    record->reference_lengths = calloc(n + 1, sizeof *record->reference_lengths);
    if (!record->reference_names || !record->reference_lengths) return -1;
    record->n_references = n;
    for (size_t i = 0; i < n; i++) {
        record->reference_names[i] = sam_hdr_tid2name(p->header, (int)i);
        record->reference_lengths[i] = (uint64_t)sam_hdr_tid2len(p->header, (int)i);
    }
    return 0;
}

/* Writes the record into all directories. One that has no space is left without. Returns how many
   have it; errno is set unless all do. */
static size_t write_to_all(struct pipeline *p, struct store_record *record)
{
    size_t n_written = 0;
    int error = 0;
    for (size_t i = 0; i < p->n_scratch_paths; i++) {
        record->directory = (unsigned)i;
        if (store_dir_write(p->scratch_paths[i], record) == 0)
            n_written++;
        else
            error = errno;
    }
    errno = error;
    return n_written;
}

char **resume_absolute_paths(const struct pipeline *p)
{
    char **paths = calloc(p->n_scratch_paths + 1, sizeof *paths);
    for (size_t i = 0; paths && i < p->n_scratch_paths; i++) {
        paths[i] = realpath(p->scratch_paths[i], NULL);
        if (!paths[i]) paths[i] = strdup(p->scratch_paths[i]);
    }
    return paths;
}

static int write_record(struct pipeline *p, enum store_state state)
{
    const struct sort_settings *s = p->settings;
    char *output = s->output ? resume_output_name(p) : NULL, **paths = resume_absolute_paths(p);
    struct store_record record = {
        .program = ROCKSORT_VERSION,
        .id = p->store_id,
        .state = state,
        .n_directories = p->n_scratch_paths,
        .directories = (const char **)paths,
        .n_lanes = run_store_n_lanes(p->store),
        .rules = s->rules,
        .fasta = describe_fasta(p),
        .minhash_window = s->minhash_window,
        .can_read_again = p->can_read_again,
        .n_inputs = p->n_input_files,
        .inputs = p->input_files,
        .output = s->asked_output,
        .header = state == STORE_LOADING ? p->header_text : header_text(p),
    };
    record.output.path = output;
    record.output.write_index = s->index_path != NULL;
    /* What goes to standard output once does not change where the sort was to go. */
    if (s->resumed && !s->output) record.output = s->resumed->record.output;
    record.output.temporary = p->output.temporary;
    record.output.index_temporary = p->index_output.temporary;
    if (state != STORE_LOADING) {
        record.n_runs = p->n_runs;
        record.sum = p->sum_in;
    }
    if (record.header) record.header_bytes = strlen(record.header);
    int r = -1;
    if (paths && record.header && (output || !s->output) && list_references(p, &record) == 0) {
        size_t n_written = write_to_all(p, &record);
        r = n_written > 0 ? 0 : -1;
        /* There was one before if the store is resumed: this one is for the leftovers' names. */
        if (n_written < p->n_scratch_paths && !s->resumed && !pipeline_failed(p) &&
            (r < 0 || !disk_space_is_short(errno)))
            diag_warning("cannot write '%s/" SCRATCH_RECORD_NAME "': %s; %s", p->scratch_paths[0],
                         strerror(errno),
                         r == 0                   ? "it is in the other directories"
                         : state == STORE_LOADING ? "if this sort fails it cannot be resumed"
                                                  : "if this sort fails it is tried again");
    } else {
        (void)pipeline_no_memory(p);
    }
    free(record.reference_names);
    free(record.reference_lengths);
    free_paths(paths);
    free(output);
    free((char *)(uintptr_t)record.fasta.path);
    return r;
}

/* Writes the record; *written, which other threads look at, tells whether that worked. */
static void note_record(struct pipeline *p, enum store_state state, bool *written)
{
    int r = write_record(p, state);
    pipeline_lock(p);
    *written = r == 0;
    pipeline_unlock(p);
}

int resume_begin_store(struct pipeline *p)
{
    if (p->settings->no_resume) return 0;
    if (make_id(p->store_id) < 0) {
        diag_warning("the system has no random numbers: if this sort fails it cannot be resumed");
        return 0;
    }
    note_record(p, STORE_LOADING, &p->is_recorded);
    return pipeline_failed(p) ? -1 : 0;
}

bool resume_is_an_input(const struct pipeline *p, const char *file)
{
    const struct sort_settings *s = p->settings;
    struct stat st, in;
    if (stat(file, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (input_stat(s->inputs[i], &in) == 0 && in.st_dev == st.st_dev && in.st_ino == st.st_ino)
            return true;
    }
    return false;
}

void resume_look_at_output(struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    if (s->output && !p->output.final && !s->no_resume)
        p->overwrites_input = resume_is_an_input(p, p->output.name);
}

bool resume_may_write(const struct pipeline *p)
{
    if (!p->overwrites_input || p->is_loaded || p->sum_in.n_records == 0) return true;
    diag_error("'%s' is an input, and there is no place for its records while it is written: name "
               "another output", p->settings->output);
    return false;
}

bool resume_needs_all_runs(const struct pipeline *p)
{
    if (p->overwrites_input) return true;
    return p->input_is_cut || atomic_load(&p->stop_signal) ||
           (p->store && p->is_recorded && (!p->can_read_again || p->settings->keep_store));
}

int resume_end_load(struct pipeline *p)
{
    if (!p->store || !p->is_recorded || p->sealed.n > p->sealed.n_spilled || p->is_loaded) return 0;
    /* Of a part that is written the store must not say that it is all. */
    if (!resume_reads_input(p)) return 0;
    note_record(p, STORE_LOADED, &p->is_loaded);
    pipeline_lock(p);
    p->has_all_runs = true;
    pipeline_unlock(p);
    return pipeline_failed(p) ? -1 : 0;
}

void resume_try_record_again(struct pipeline *p)
{
    pipeline_fail(p);           /* there is news enough */
    if (p->has_all_runs && !p->is_loaded) (void)resume_end_load(p);
}

bool resume_saves_part(const struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    return s->keep_store && !s->no_resume && !s->sum_only && !p->can_read_again;
}

int resume_save_part(struct pipeline *p)
{
    if (spill_to_fit(p) < 0 || !p->store || !p->is_recorded) return -1;
    if (p->input_is_cut)
        note_record(p, STORE_PARTIAL, &p->is_loaded);
    else
        (void)resume_end_load(p);
    return -1;
}

/* ---- whether it stays ---- */

bool resume_keeps_store(const struct pipeline *p, int signal_number)
{
    const struct sort_settings *s = p->settings;
    bool is_wish = signal_number == SIGINT || signal_number == SIGQUIT;
    if (s->resumed || (p->overwrites_input && p->is_loaded)) return true;
    if (!p->is_recorded || (is_wish && !s->keep_store)) return false;
    if (p->is_loaded || p->has_all_runs) return true;
    return p->n_durable > 0 && ((p->can_read_again && !p->input_is_bad) || s->keep_store);
}

/* The directory by which the store is resumed: one that was full from the beginning has no
   record. */
static const char *recorded_path(const struct pipeline *p)
{
    for (size_t i = 0; i < p->n_scratch_paths; i++) {
        char record[PATH_MAX];
        int n = snprintf(record, sizeof record, "%s/" SCRATCH_RECORD_NAME, p->scratch_paths[i]);
        if (n < (int)sizeof record && access(record, F_OK) == 0) return p->scratch_paths[i];
    }
    return p->scratch_paths[0];
}

void resume_tell(const struct pipeline *p, bool kept)
{
    const struct sort_settings *s = p->settings;
    if (kept && !p->is_recorded) return;        /* refused: nothing has changed */
    if (kept) {
        bool partial = p->input_is_cut || (!p->is_loaded && !p->can_read_again);
        const char *path = recorded_path(p);
        char *real = realpath(path, NULL);
        diag_left("what was sorted so far is kept; to %s: samtools rocksort --resume %s%s%s",
                  partial ? "write what there is" : "finish", real ? real : path,
                  partial ? " --partial" : "", s->output ? "" : " -o FILE");
        free(real);
    } else if (p->is_recorded && p->n_durable > 0 && !p->can_read_again) {
        diag_warning("what was sorted so far is removed: only a BAM file can be read on from "
                     "where it stopped; -k would have kept it");
    }
}

/* ---- going on ---- */

static int refuse(const struct pipeline *p, const char *problem)
{
    diag_error("cannot resume '%s': %s", p->scratch_paths[0], problem);
    return -1;
}

/* The header as the record has it. */
static sam_hdr_t *make_header(const struct store_record *record)
{
    if (record->n_references == 0)
        return record->header_bytes > 0 ? sam_hdr_parse(record->header_bytes, record->header)
                                        : sam_hdr_init();
    /* As it comes from a BAM file. */
    sam_hdr_t *header = sam_hdr_init();
    if (!header) return NULL;
    size_t n = record->n_references;
    header->text = strdup(record->header);
    header->l_text = record->header_bytes;
    header->target_name = calloc(n, sizeof *header->target_name);
    header->target_len = calloc(n, sizeof *header->target_len);
    bool whole = header->text && header->target_name && header->target_len;
    for (size_t i = 0; whole && i < n; i++) {
        header->target_name[i] = strdup(record->reference_names[i]);
        header->target_len[i] = (uint32_t)record->reference_lengths[i];
        whole = header->target_name[i] && record->reference_lengths[i] <= INT32_MAX;
        header->n_targets++;
    }
    if (whole) return header;
    sam_hdr_destroy(header);
    return NULL;
}

struct label_list {
    const struct pipeline *p;
    struct run_label *labels;
    size_t n, room;
};

static int take_label(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct label_list *list = arg;
    if (grow_array(&list->labels, &list->room, list->n + 1, list->n + 63,
                   sizeof *list->labels) < 0) {
        diag_no_memory();
        return -1;
    }
    if (run_label_decode(bytes, n_bytes, &list->labels[list->n++]) == 0) return 0;
    return refuse(list->p, "the label of one of its runs is damaged; sort the input again");
}

/* Lets the runs of the chain count and the others be dropped. */
static int take_runs(struct pipeline *p, const struct run_label *labels, size_t n, size_t n_chain)
{
    p->dropped_runs = calloc(n - n_chain + 1, sizeof *p->dropped_runs);
    if (!p->dropped_runs) return pipeline_no_memory(p);
    pipeline_lock(p);           /* progress looks already */
    for (size_t i = 0; i < n; i++) {
        const struct run_label *label = &labels[i];
        if (label->run >= p->next_run) p->next_run = label->run + 1;
        if (i >= n_chain) {
            p->dropped_runs[p->n_dropped_runs++] = label->run;
            continue;
        }
        content_sum_join(&p->sum_in, &label->sum);
        p->any_placed |= label->any_placed;
        p->open_bytes += label->max_block_bytes;
        p->spilled_bytes += label->sum.n_bytes;
        p->last_run = label->run;
        p->start = label->end;
    }
    p->n_runs = (unsigned)n_chain;
    p->n_durable = (unsigned)n_chain;
    p->raw_bytes_before = p->sum_in.n_bytes;
    pipeline_unlock(p);
    return 0;
}

/* Finds the runs that count. */
static int follow_labels(struct pipeline *p)
{
    const struct store_record *record = &p->settings->resumed->record;
    struct label_list list = {.p = p};
    int r = run_store_labels(p->store, take_label, &list);
    ssize_t n_chain = r == 0 ? run_labels_chain(list.labels, list.n) : 0;
    if (n_chain < 0) r = refuse(p, "its runs contradict each other; sort the input again");
    if (r == 0) r = take_runs(p, list.labels, list.n, (size_t)n_chain);
    free(list.labels);
    if (r < 0) return -1;
    bool whole = p->n_runs == record->n_runs && content_sum_equal(&p->sum_in, &record->sum);
    if (record->state != STORE_LOADING && !whole)
        return refuse(p, "it lacks some of its runs; sort the input again");
    return 0;
}

/* A file that was read must be as it was; `is`: NULL if there is none. */
static int compare_file(const struct pipeline *p, const struct store_input *was,
                        const struct store_input *is)
{
    if (is && is->n_bytes == was->n_bytes && is->mtime_ns == was->mtime_ns) return 0;
    diag_error("cannot resume '%s': its input '%s' %s; sort it again, or give --partial",
               p->scratch_paths[0], was->path,
               is ? "has changed since" : "is not there any more");
    return -1;
}

static int check_file(const struct pipeline *p, const struct store_input *was)
{
    struct store_input is;
    return compare_file(p, was, describe_file(was->path, &is) ? &is : NULL);
}

/* The same of what has been opened, since names may have come to stand for others. */
static int check_opened(const struct pipeline *p)
{
    const struct store_record *record = &p->settings->resumed->record;
    for (size_t i = 0; i < record->n_inputs; i++) {
        struct store_input is;
        const struct stat *st = bam_inputs_file(p->inputs, i);
        if (st) describe(st, &is);
        if (compare_file(p, &record->inputs[i], st ? &is : NULL) < 0) return -1;
    }
    return 0;
}

/* Of a store whose load was cut off: whether reading can go on. */
static int check_inputs(const struct pipeline *p)
{
    const struct store_record *record = &p->settings->resumed->record;
    if (!record->can_read_again)
        return refuse(p, "its input was cut off and cannot be read on; --partial writes what came");
    if (record->fasta.path && check_file(p, &record->fasta) < 0) return -1;
    for (size_t i = 0; i < record->n_inputs; i++)
        if (check_file(p, &record->inputs[i]) < 0) return -1;
    return 0;
}

static int take_directories(struct pipeline *p)
{
    const struct kept_store *kept = p->settings->resumed;
    char **paths = calloc(kept->n_dirs + 1, sizeof *paths);
    if (!paths) return pipeline_no_memory(p);
    for (size_t i = 0; i < kept->n_dirs; i++) {
        paths[i] = strdup(kept->dirs[i].path);
        if (!paths[i]) {
            free_paths(paths);
            return pipeline_no_memory(p);
        }
    }
    pipeline_lock(p);
    p->scratch_paths = paths;
    p->n_scratch_paths = kept->n_dirs;
    pipeline_unlock(p);
    return 0;
}

bool resume_reads_input(const struct pipeline *p)
{
    const struct sort_settings *s = p->settings;
    return !s->resumed || (s->resumed->record.state == STORE_LOADING && !s->partial);
}

/* Says how much of the input a partial result has. */
static int accept_partial(const struct pipeline *p)
{
    enum store_state state = p->settings->resumed->record.state;
    if (state == STORE_LOADED) return 0;
    if (p->sum_in.n_records == 0)
        return refuse(p, "none of its input has come to disk; sort the input again");
    if (!p->settings->partial)
        return refuse(p, "its input was cut off; --partial writes what came");
    if (p->settings->output && resume_is_an_input(p, p->output.name)) {
        diag_error("a part of '%s' cannot take the place of all of it: name another output with -o",
                   p->output.name);
        return -1;
    }
    diag_warning("the output will have the first %" PRIu64 " records of the input and not the "
                 "rest", p->sum_in.n_records);
    return 0;
}

int resume_store(struct pipeline *p)
{
    const struct store_record *record = &p->settings->resumed->record;
    bool reads = resume_reads_input(p);
    if (take_directories(p) < 0) return -1;
    memcpy(p->store_id, record->id, sizeof p->store_id);
    p->own_header = p->header = make_header(record);
    if (!p->header)
        return refuse(p, "its header is damaged, or memory is short; sort the input again");
    p->n_refs = sam_hdr_nref(p->header);
    p->header_text = record->header;
    if (reads && check_inputs(p) < 0) return -1;
    for (size_t i = 0; i < p->n_scratch_paths; i++) scratch_dir_tidy(p->scratch_paths[i]);
    if (store_open(p) < 0 || follow_labels(p) < 0) return -1;
    if (reads && (p->start.offset == INPUT_OFFSET_UNKNOWN || p->start.input >= record->n_inputs))
        return refuse(p, "it does not say where reading is to go on; sort the input again");
    output_path_remove_leftover(record->output.temporary);
    output_path_remove_leftover(record->output.index_temporary);
    p->input_files = record->inputs;
    p->n_input_files = record->n_inputs;
    if (!reads && accept_partial(p) < 0) return -1;
    pipeline_lock(p);
    p->is_recorded = true;
    p->is_loaded = record->state == STORE_LOADED;
    p->can_read_again = record->can_read_again;
    pipeline_unlock(p);
    /* Names what this process will leave if it is killed. */
    (void)write_record(p, record->state);
    return pipeline_failed(p) ? -1 : 0;
}

int resume_inputs(struct pipeline *p)
{
    sam_hdr_t *header = bam_inputs_header(p->inputs);
    if (check_opened(p) < 0) return -1;
    /* Size and time of change do not tell everything. */
    if (!bam_inputs_can_seek(p->inputs))
        return refuse(p, "its inputs are not the BAM files that they were; sort them again");
    if (sam_hdr_nref(header) != p->n_refs)
        return refuse(p, "its inputs have other references now; sort them again");
    uint64_t n_bytes = bam_inputs_start_at(p->inputs, &p->start);
    pipeline_lock(p);
    p->input_bytes_before = n_bytes;
    pipeline_unlock(p);
    return 0;
}

void resume_release(struct pipeline *p)
{
    if (!p->settings->resumed) {
        for (size_t i = 0; p->input_files && i < p->n_input_files; i++)
            free((char *)(uintptr_t)p->input_files[i].path);
        free(p->input_files);
        free((char *)(uintptr_t)p->header_text);
    }
    free(p->dropped_runs);
    sam_hdr_destroy(p->own_header);
}
