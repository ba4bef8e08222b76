/* output_file.c -- see output_file.h. */
#include "pipeline/output_file.h"

#include "pipeline/crew.h"
#include "util/diag.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool output_index_is_bai(const char *name)
{
    size_t n = strlen(name);
    return n >= 4 && strcmp(name + n - 4, ".bai") == 0;
}

int output_file_create_index(struct output_file *file, sam_hdr_t *header)
{
    const char *name = file->settings.index_path->name;
    if (!name || !output_format_has_bytes(&file->settings.format)) return 0;
    file->index = bam_index_create(file->settings.index_is_bai ? BAM_INDEX_BAI : BAM_INDEX_CSI,
                                   header);
    return file->index ? 0 : -1;
}

static void *run_pump(void *writer)
{
    bam_writer_pump(writer);
    return NULL;
}

static int start_pump(struct output_file *file)
{
    if (!bam_writer_needs_pump(file->writer)) return 0;
    int error = thread_start(&file->pump_thread, "CRAM pump", run_pump, file->writer);
    if (error) diag_no_thread(error);
    file->pump_runs = error == 0;
    return error ? -1 : 0;
}

int output_file_open(struct output_file *file, sam_hdr_t *header, uint64_t raw_bytes)
{
    const struct column_notes *notes = NULL;
    if (file->settings.columns) {
        output_notes_begin(&file->notes, file->notes_bytes, file->places);
        notes = &file->notes.notes;
    }
    file->writer = bam_writer_create(&file->settings, raw_bytes, notes);
    if (!file->writer) return -1;
    return start_pump(file) < 0 ? -1 : bam_writer_start(file->writer, header);
}

int output_file_write(struct output_file *file, const uint8_t *bytes, size_t n_bytes,
                      uint64_t raw_bytes, const struct bam_index_part *part)
{
    bam_writer_expect(file->writer, raw_bytes);
    if (!output_format_has_bytes(&file->settings.format))
        return bam_writer_write_records(file->writer, bytes, n_bytes);
    if (file->index &&
        bam_index_append(file->index, part, bam_writer_position(file->writer)) < 0)
        return -1;
    return bam_writer_write_bytes(file->writer, bytes, n_bytes);
}

int output_file_note_batches(struct output_file *file, struct column_bytes *notes)
{
    return bam_writer_note_batches(file->writer, notes);
}

int output_file_copy_index(struct output_file *file, const struct bam_index_part *part,
                           uint64_t begin)
{
    /* The difference may be below 0: offsets are added modulo 2^64. */
    uint64_t shift = bam_writer_position(file->writer) - begin;
    return file->index ? bam_index_append(file->index, part, shift) : 0;
}

int output_file_copy(struct output_file *file, const uint8_t *blocks, size_t n_bytes)
{
    return bam_writer_write_bytes(file->writer, blocks, n_bytes);
}

/* Writes the index. The sorted file is complete and stays if this fails. */
static int write_index(struct output_file *file)
{
    struct output_path *path = file->settings.index_path;
    int r = 0;
    if (file->index) {
        r = bam_index_write(file->index, path);
    } else if (path->temporary) {
        /* htslib closed the index of CRAM before the last bytes of the output were written: it
           must not look older. */
        (void)utimensat(AT_FDCWD, path->temporary, NULL, 0);
        r = output_path_commit(path);
    }
    return r;
}

/* Ends writing, also if the file is not complete. Returns 0, or -1 after a message. */
static int end_writing(struct output_file *file, bool complete)
{
    int r = bam_writer_end(file->writer, complete);
    if (file->pump_runs) (void)pthread_join(file->pump_thread, NULL);
    file->pump_runs = false;
    file->is_ended = true;
    return r;
}

int output_file_end(struct output_file *file)
{
    return end_writing(file, true) < 0 ? -1 : bam_writer_close(file->writer);
}

bool output_file_can_be_dropped(const struct output_file *file)
{
    return file->settings.path->temporary != NULL;
}

int output_file_close(struct output_file *file, bool complete, struct output_result *result)
{
    int r = -1;
    *result = (struct output_result){0};
    if (file->writer && complete) {
        r = bam_writer_commit(file->writer, result);
    } else if (file->writer) {
        if (!file->is_ended) (void)end_writing(file, false);
        bam_writer_abort(file->writer, result);
    }
    file->writer = NULL;
    output_notes_release(&file->notes);
    if (r == 0) r = write_index(file);
    if (r < 0) output_path_drop(file->settings.index_path);
    bam_index_destroy(file->index);
    file->index = NULL;
    return r;
}
