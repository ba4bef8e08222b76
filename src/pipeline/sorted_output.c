/* sorted_output.c -- see sorted_output.h. */
#include "pipeline/sorted_output.h"

#include "output/stale_index.h"
#include "pipeline/thread.h"
#include "util/diag.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int sorted_output_create_index(struct sorted_output *out, sam_hdr_t *header)
{
    const char *name = out->settings.index_path->name;
    if (!name || !bam_writer_takes_bytes(&out->settings.format)) return 0;
    size_t n = strlen(name);
    bool bai = n >= 4 && strcmp(name + n - 4, ".bai") == 0;
    out->index = bam_index_create(bai ? BAM_INDEX_BAI : BAM_INDEX_CSI, header);
    return out->index ? 0 : -1;
}

static void *run_pump(void *writer)
{
    bam_writer_pump(writer);
    return NULL;
}

static int start_pump(struct sorted_output *out)
{
    if (!bam_writer_needs_pump(out->writer)) return 0;
    int error = thread_start(&out->pump_thread, "CRAM pump", run_pump, out->writer);
    if (error) diag_no_thread(error);
    out->pump_runs = error == 0;
    return error ? -1 : 0;
}

int sorted_output_open(struct sorted_output *out, sam_hdr_t *header, uint64_t raw_bytes)
{
    const struct output_settings *s = &out->settings;
    struct bam_writer_settings settings = {
        .path = s->path->name ? s->path : NULL,
        .index_path = s->index_path->name ? s->index_path : NULL,
        .pool = s->pool,
        .format = s->format,
        .method = s->method,
        .raw_bytes = raw_bytes,
    };
    out->writer = bam_writer_create(&settings);
    if (!out->writer) return -1;
    return start_pump(out) < 0 ? -1 : bam_writer_start(out->writer, header);
}

int sorted_output_write(struct sorted_output *out, const struct segment *segment)
{
    bam_writer_expect(out->writer, segment->raw_bytes);
    if (!bam_writer_takes_bytes(&out->settings.format))
        return bam_writer_write_records(out->writer, segment->out, segment->out_bytes);
    if (out->index &&
        bam_index_append(out->index, &segment->part, bam_writer_position(out->writer)) < 0)
        return -1;
    return bam_writer_write_bytes(out->writer, segment->out, segment->out_bytes);
}

int sorted_output_copy_index(struct sorted_output *out, const struct bam_index_part *part,
                             uint64_t begin)
{
    /* The difference may be below 0: offsets are added modulo 2^64. */
    return out->index ? bam_index_append(out->index, part, bam_writer_position(out->writer) - begin)
                      : 0;
}

int sorted_output_copy(struct sorted_output *out, const uint8_t *blocks, size_t n_bytes)
{
    return bam_writer_write_bytes(out->writer, blocks, n_bytes);
}

/* Writes the index. The sorted file is complete and stays if this fails. */
static int write_index(struct sorted_output *out)
{
    struct output_path *path = out->settings.index_path;
    int r = 0;
    if (out->index) {
        r = bam_index_write(out->index, path);
    } else if (path->temporary) {
        /* htslib closed the index of CRAM before the last bytes of the output were written: it
           must not look older. */
        (void)utimensat(AT_FDCWD, path->temporary, NULL, 0);
        r = output_path_commit(path, NULL);
    }
    /* An older index belongs to what the output was before. */
    if (r < 0 && path->final) (void)unlink(path->final);
    return r;
}

int sorted_output_close(struct sorted_output *out, bool complete, struct output_result *result)
{
    struct bam_writer_result written = {0};
    int r = -1;
    if (out->writer) {
        if (bam_writer_end(out->writer, complete) < 0) complete = false;
        if (out->pump_runs) (void)pthread_join(out->pump_thread, NULL);
        if (complete)
            r = bam_writer_close(out->writer, &written);
        else
            bam_writer_abort(out->writer, &written);
        out->writer = NULL;
    }
    if (r == 0) r = write_index(out);
    if (r == 0)
        stale_index_tell(out->settings.path, out->settings.index_path, &out->settings.format);
    if (r < 0) output_path_drop(out->settings.index_path);
    bam_index_destroy(out->index);
    out->index = NULL;
    *result = (struct output_result){written.n_bytes, written.lost_reader};
    return r;
}
