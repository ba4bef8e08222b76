/*
 * checkpoint_writer.c -- the record of a store (checkpoint_record.h), by which another process can
 * go on: written when the store is made, and once more when all records are in runs.
 */
#include "pipeline/pipeline_internal.h"

#include "bam/header_text.h"
#include "machine/disk_space.h"
#include "store/checkpoint_dir.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

void resume_describe(const struct stat *st, struct checkpoint_input *input)
{
    int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    input->n_bytes = (uint64_t)st->st_size;
    input->mtime_ns = ns < 0 ? 0 : ns;
}

bool resume_describe_file(const char *path, struct checkpoint_input *input)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    resume_describe(&st, input);
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
        struct checkpoint_input *input = &p->input_files[i];
        /* Not what its name stands for now: reading its header took a moment. */
        const struct stat *st = bam_inputs_file(p->inputs, i);
        if (st && strcmp(s->inputs[i], "-") != 0) {
            resume_describe(st, input);
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
static struct checkpoint_input describe_fasta(const struct pipeline *p)
{
    struct checkpoint_input fasta = {0};
    const char *path = p->settings->minhash_fasta;
    if (path && resume_describe_file(path, &fasta)) fasta.path = realpath(path, NULL);
    if (path && !fasta.path) fasta.path = strdup(path);
    return fasta;
}

static int make_id(char id[CHECKPOINT_ID_BYTES + 1])
{
    uint8_t bytes[CHECKPOINT_ID_BYTES / 2];
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
static int list_references(struct pipeline *p, struct checkpoint_record *record)
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
static size_t write_to_all(struct pipeline *p, struct checkpoint_record *record)
{
    size_t n_written = 0;
    int error = 0;
    for (size_t i = 0; i < p->n_scratch_paths; i++) {
        record->directory = (unsigned)i;
        if (checkpoint_dir_write(p->scratch_paths[i], record) == 0)
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

int resume_write_record(struct pipeline *p, enum checkpoint_state state)
{
    const struct sort_settings *s = p->settings;
    char *output = s->output ? resume_output_name(p) : NULL, **paths = resume_absolute_paths(p);
    struct checkpoint_record record = {
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
        .header = state == CHECKPOINT_LOADING ? p->header_text : header_text(p),
    };
    record.output.path = output;
    record.output.write_index = s->index_path != NULL;
    /* What goes to standard output once does not change where the sort was to go. */
    if (s->resumed && !s->output) record.output = s->resumed->record.output;
    record.output.temporary = p->output.temporary;
    record.output.index_temporary = p->index_output.temporary;
    if (state != CHECKPOINT_LOADING) {
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
                         : state == CHECKPOINT_LOADING ? "if this sort fails it cannot be resumed"
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

void resume_note_record(struct pipeline *p, enum checkpoint_state state, bool *written)
{
    int r = resume_write_record(p, state);
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
    resume_note_record(p, CHECKPOINT_LOADING, &p->is_recorded);
    return pipeline_failed(p) ? -1 : 0;
}
