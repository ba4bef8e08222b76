/*
 * resume.c -- the store as something that outlives the process: what must be in it,
 * whether it stays when the sort fails, and how another process goes on with it.
 *
 * Each run has a label (run_label.h) and becomes durable with it, in one step of RocksDB's. So a
 * load needs no syncs of its own: whoever comes later follows the chain of labels, and reads on
 * where the last of them ends, if the inputs can be read from there. The rest is in the record
 * (checkpoint_writer.c).
 *
 * What is not in a run when a file has been read need not be: it can be read again. Of a pipe all
 * must be on disk before the merge begins.
 */
#include "pipeline/pipeline_internal.h"

#include "input/input_file.h"
#include "store/checkpoint_dir.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/grow.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what must be in it ---- */

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
    resume_note_record(p, CHECKPOINT_LOADED, &p->is_loaded);
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
        resume_note_record(p, CHECKPOINT_PARTIAL, &p->is_loaded);
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

/* The directory by which the store is resumed: one that was full from the beginning has no record.
   NULL: there is no record any more. */
static const char *recorded_path(const struct pipeline *p)
{
    for (size_t i = 0; i < p->n_scratch_paths; i++) {
        char record[PATH_MAX];
        int n = snprintf(record, sizeof record, "%s/" SCRATCH_RECORD_NAME, p->scratch_paths[i]);
        if (n < (int)sizeof record && access(record, F_OK) == 0) return p->scratch_paths[i];
    }
    return NULL;
}

void resume_tell(const struct pipeline *p, bool kept)
{
    const struct sort_settings *s = p->settings;
    if (kept && !p->is_recorded) return;        /* refused: nothing has changed */
    if (kept) {
        bool partial = p->input_is_cut || (!p->is_loaded && !p->can_read_again);
        const char *path = recorded_path(p);
        if (!path) {
            diag_left("warning: '%s' cannot be resumed as it is: somebody has moved, closed or "
                      "removed it, or its STORE file", p->scratch_paths[0]);
            return;
        }
        char *real = realpath(path, NULL);
        /* Bytes may have changed on their way from the disk. */
        diag_left("what was sorted so far is kept; to %s: samtools rocksort --resume %s%s%s",
                  diag_is_damage() ? "try once more"
                  : partial        ? "write what there is"
                                   : "finish",
                  real ? real : path, partial ? " --partial" : "", s->output ? "" : " -o FILE");
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
static sam_hdr_t *make_header(const struct checkpoint_record *record)
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
    const struct checkpoint_record *record = &p->settings->resumed->record;
    struct label_list list = {.p = p};
    int r = run_store_labels(p->store, take_label, &list);
    ssize_t n_chain = r == 0 ? run_labels_chain(list.labels, list.n) : 0;
    if (n_chain < 0) r = refuse(p, "its runs contradict each other; sort the input again");
    if (r == 0) r = take_runs(p, list.labels, list.n, (size_t)n_chain);
    free(list.labels);
    if (r < 0) return -1;
    bool whole = p->n_runs == record->n_runs && content_sum_equal(&p->sum_in, &record->sum);
    if (record->state != CHECKPOINT_LOADING && !whole)
        return refuse(p, "it lacks some of its runs; sort the input again");
    return 0;
}

/* A file that was read must be as it was; `is`: NULL if there is none. */
static int compare_file(const struct pipeline *p, const struct checkpoint_input *was,
                        const struct checkpoint_input *is)
{
    if (is && is->n_bytes == was->n_bytes && is->mtime_ns == was->mtime_ns) return 0;
    diag_error("cannot resume '%s': its input '%s' %s; sort it again, or give --partial",
               p->scratch_paths[0], was->path,
               is ? "has changed since" : "is not there any more");
    return -1;
}

static int check_file(const struct pipeline *p, const struct checkpoint_input *was)
{
    struct checkpoint_input is;
    return compare_file(p, was, resume_describe_file(was->path, &is) ? &is : NULL);
}

/* The same of what has been opened, since names may have come to stand for others. The descriptions
   were made before that, and htslib does not tell what it has: so the names are looked at after it,
   too. */
static int check_opened(const struct pipeline *p)
{
    const struct checkpoint_record *record = &p->settings->resumed->record;
    for (size_t i = 0; i < record->n_inputs; i++) {
        struct checkpoint_input is;
        const struct stat *st = bam_inputs_file(p->inputs, i);
        if (st) resume_describe(st, &is);
        if (compare_file(p, &record->inputs[i], st ? &is : NULL) < 0 ||
            check_file(p, &record->inputs[i]) < 0)
            return -1;
    }
    return 0;
}

/* Of a store whose load was cut off: whether reading can go on. */
static int check_inputs(const struct pipeline *p)
{
    const struct checkpoint_record *record = &p->settings->resumed->record;
    if (!record->can_read_again)
        return refuse(p, "its input was cut off and cannot be read on; --partial writes what came");
    if (record->fasta.path && check_file(p, &record->fasta) < 0) return -1;
    for (size_t i = 0; i < record->n_inputs; i++)
        if (check_file(p, &record->inputs[i]) < 0) return -1;
    return 0;
}

static int take_directories(struct pipeline *p)
{
    const struct checkpoint *kept = p->settings->resumed;
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
    return !s->resumed || (s->resumed->record.state == CHECKPOINT_LOADING && !s->partial);
}

/* Says how much of the input a partial result has. */
static int accept_partial(const struct pipeline *p)
{
    enum checkpoint_state state = p->settings->resumed->record.state;
    if (state == CHECKPOINT_LOADED) return 0;
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
    const struct checkpoint_record *record = &p->settings->resumed->record;
    bool reads = resume_reads_input(p);
    if (take_directories(p) < 0) return -1;
    memcpy(p->store_id, record->id, sizeof p->store_id);
    p->own_header = p->header = make_header(record);
    if (!p->header)
        return refuse(p, "its header is damaged, or memory is short; sort the input again");
    p->n_refs = sam_hdr_nref(p->header);
    p->header_text = record->header;
    if (reads && check_inputs(p) < 0) return -1;
    for (size_t i = 0; i < p->n_scratch_paths; i++) temp_dir_tidy(p->scratch_paths[i]);
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
    p->is_loaded = record->state == CHECKPOINT_LOADED;
    p->can_read_again = record->can_read_again;
    pipeline_unlock(p);
    /* Names what this process will leave if it is killed. */
    (void)resume_write_record(p, record->state);
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
