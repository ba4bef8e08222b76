/* resume.c -- see resume.h. */
#include "resume/resume.h"

#include "input/input_file.h"
#include "os/temp_dir.h"
#include "output/output_journal.h"
#include "resume/group_dir.h"
#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool resume_reads_input(const struct resume *resume)
{
    const struct checkpoint *checkpoint = resume->checkpoint;
    return !checkpoint || (checkpoint->file.state == CHECKPOINT_LOADING && !resume->partial);
}

static int refuse(const struct resume *resume, const char *problem)
{
    diag_error("cannot resume '%s': %s", resume->checkpoint->dirs[0].path, problem);
    return -1;
}

/* ---- the header ---- */

/* Makes the header from the checkpoint file; NULL if it is damaged. */
static sam_hdr_t *make_header(const struct checkpoint_file *file)
{
    size_t n = strlen(file->header);
    return n > 0 ? sam_hdr_parse(n, file->header) : sam_hdr_init();
}

/* ---- the runs ---- */

struct label_list {
    const struct resume *resume;
    struct run_label *labels;
    size_t n, room;
};

static int take_label(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct label_list *list = arg;
    xgrow(&list->labels, &list->room, list->n + 1, list->n + 63, sizeof *list->labels);
    if (run_label_decode(bytes, n_bytes, &list->labels[list->n++]) == 0) return 0;
    return refuse(list->resume, "the label of one of its runs is damaged; sort the input again");
}

/* Adopts the runs of the first n_chain labels; drops the other runs. */
static void take_runs(struct resume *resume, const struct run_label *labels, size_t n,
                      size_t n_chain, struct spill_totals *spilled, struct load_totals *totals)
{
    *spilled = (struct spill_totals){.n_runs = (unsigned)n_chain, .last_run = RUN_LABEL_NONE};
    resume->dropped_runs = xcalloc(n - n_chain, sizeof *resume->dropped_runs);
    thread_pool_lock(totals->threads);
    for (size_t i = 0; i < n; i++) {
        const struct run_label *label = &labels[i];
        if (label->run >= spilled->next_run) spilled->next_run = label->run + 1;
        if (i >= n_chain) {
            resume->dropped_runs[resume->n_dropped++] = label->run;
            continue;
        }
        load_totals_add(totals, &label->sum, label->any_placed);
        spilled->open_bytes += label->open_bytes;
        spilled->raw_bytes += label->sum.n_bytes;
        spilled->last_run = label->run;
        resume->start = label->end;
    }
    totals->counts.raw_bytes_before = spilled->raw_bytes;
    thread_pool_unlock(totals->threads);
}

/* Finds the valid runs: those in the chain of labels. */
static int follow_labels(struct resume *resume, struct run_store *store,
                         struct spill_totals *spilled, struct load_totals *totals)
{
    const struct checkpoint_file *file = &resume->checkpoint->file;
    struct label_list list = {.resume = resume};
    int r = run_store_labels(store, take_label, &list);
    ssize_t n_chain = r == 0 ? run_labels_chain(list.labels, list.n) : 0;
    if (n_chain < 0) r = refuse(resume, "its runs contradict each other; sort the input again");
    if (r == 0) {
        size_t n_used = (size_t)n_chain;
        if (resume_reads_input(resume)) n_used = run_labels_known(list.labels, n_used);
        take_runs(resume, list.labels, list.n, n_used, spilled, totals);
    }
    free(list.labels);
    if (r < 0) return -1;
    struct load_counts counts;
    load_totals_look(totals, &counts);
    bool whole = spilled->n_runs == file->n_runs && content_sum_equal(&counts.sum, &file->sum);
    if (file->state != CHECKPOINT_LOADING && !whole)
        return refuse(resume, "it lacks some of its runs; sort the input again");
    return 0;
}

/* ---- the inputs ---- */

/* Checks that a file has not changed since it was read. */
static int check_file(const struct resume *resume, const struct checkpoint_input *was)
{
    struct checkpoint_input is;
    bool is_there = checkpoint_describe_file(was->path, &is);
    if (is_there && is.n_bytes == was->n_bytes && is.mtime_ns == was->mtime_ns) return 0;
    diag_error("cannot resume '%s': its input '%s' %s; sort it again, or give --partial",
               resume->checkpoint->dirs[0].path, was->path,
               is_there ? "has changed since" : "is not there any more");
    return -1;
}

/* If the load must be finished: checks that reading can continue. */
static int check_inputs(const struct resume *resume)
{
    const struct checkpoint_file *file = &resume->checkpoint->file;
    if (!file->can_read_again)
        return refuse(resume, "its input was cut off and cannot be read on; --partial writes "
                              "what came");
    if (*file->fasta.path && check_file(resume, &file->fasta) < 0) return -1;
    for (size_t i = 0; i < file->n_inputs; i++)
        if (check_file(resume, &file->inputs[i]) < 0) return -1;
    return 0;
}

int resume_open_inputs(const struct resume *resume, struct bam_inputs *inputs,
                       struct load_totals *totals)
{
    if (check_inputs(resume) < 0) return -1;    /* again: a name may refer to another file now */
    /* Equal size and modification time do not prove that it is the same file. */
    if (!inputs->can_seek)
        return refuse(resume, "its inputs are not the BAM files that they were; sort them again");
    if (sam_hdr_nref(inputs->header) != sam_hdr_nref(resume->header))
        return refuse(resume, "its inputs have other references now; sort them again");
    uint64_t n_bytes = bam_inputs_start_at(inputs, &resume->start);
    thread_pool_lock(totals->threads);
    load_totals_locked(totals)->file_bytes_before = n_bytes;
    thread_pool_unlock(totals->threads);
    return 0;
}

/* ---- partial results ---- */

int resume_check_part(const struct resume *resume, const struct sort_settings *settings,
                      const struct output_path *output, uint64_t n_records)
{
    if (resume_reads_input(resume) || resume->checkpoint->file.state == CHECKPOINT_LOADED)
        return 0;
    if (n_records == 0)
        return refuse(resume, "none of its input has come to disk; sort the input again");
    if (!resume->partial)
        return refuse(resume, "its input was cut off; --partial writes what came");
    if (output->name && input_is_among(settings->inputs, settings->n_inputs, output->name)) {
        diag_error("a part of '%s' cannot take the place of all of it: name another output with -o",
                   output->name);
        return -1;
    }
    diag_warning("the output will have the first %" PRIu64 " records of the input and not the "
                 "rest", n_records);
    return 0;
}

/* ---- finishing a publish ---- */

/* Finishes the journal of the set whose first file has this temporary name, or removes its files if
   that is impossible. Returns like resume_publish. */
static int publish(const char *temporary)
{
    struct output_journal journal = {.can_be_finished = false};
    struct output_leftover left = {.fd = -1};
    struct checkpoint_dir dir = {.fd = -1, .lock_fd = -1};
    const char *problem;
    char *path = output_journal_path(temporary);
    bool of_groups = path && strcmp(path_name(path), OUTPUT_JOURNAL_OF_GROUPS) == 0;
    if (path &&
        (!of_groups || checkpoint_dir_open(temporary, &dir, &problem) == CHECKPOINT_OK))
        (void)output_leftover_open_of_dead(path, &left);
    int r = left.fd < 0 ? 0 : output_journal_settle(left.fd, true, &journal);
    if (left.fd >= 0 && r == 0 && !of_groups) (void)output_leftover_remove(path, &left);
    if (r == 0 && journal.can_be_finished) {
        r = 1;
        if (of_groups) (void)temp_dir_remove(temporary);
        diag_note("'%s' was complete but for names: %zu of %zu files got theirs now",
                  journal.output, journal.n_files - journal.n_named, journal.n_files);
    }
    output_leftover_close(&left);
    checkpoint_dir_close(&dir);
    free(journal.output);
    free(path);
    return r;
}

int resume_publish(const struct checkpoint *checkpoint)
{
    int r = 0;
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES && r == 0; i++) {
        const char *temporary = checkpoint->file.output.temporaries[i];
        if (temporary) r = publish(temporary);
    }
    return r;
}

/* ---- opening a checkpoint ---- */

int resume_open(struct resume *resume, struct checkpoint_writer *writer, struct temp_store *store,
                struct load_totals *totals, struct spill_totals *spilled)
{
    const struct checkpoint *checkpoint = resume->checkpoint;
    const struct checkpoint_file *file = &checkpoint->file;
    resume->header = make_header(file);
    checkpoint_writer_adopt(writer, resume->header);
    if (!resume->header)
        return refuse(resume, "its header is damaged, or memory is short; sort the input again");
    bool reads = resume_reads_input(resume);
    if (reads && check_inputs(resume) < 0) return -1;
    for (size_t i = 0; i < checkpoint->n_dirs; i++) temp_dir_tidy(checkpoint->dirs[i].path);
    if (temp_store_open(store) < 0 ||
        follow_labels(resume, temp_store_runs(store), spilled, totals) < 0)
        return -1;
    if (reads && resume->start.input >= file->n_inputs)
        return refuse(resume, "it lacks the position at which to continue reading; sort the input "
                              "again");
    for (size_t i = 0; i < checkpoint_n_temporaries(&file->output); i++)
        output_leftover_drop(checkpoint_temporary(&file->output, i));
    group_dir_drop_leftover(file->output.temporaries[CHECKPOINT_OF_OUTPUT]);
    thread_pool_lock(totals->threads);
    temp_store_totals(store)->n_durable = spilled->n_runs;
    temp_store_totals(store)->raw_bytes = spilled->raw_bytes;
    thread_pool_unlock(totals->threads);
    return 0;
}

void resume_release(struct resume *resume)
{
    free(resume->dropped_runs);
    sam_hdr_destroy(resume->header);
}
