/*
 * load_large.c -- see load_large.h.
 *
 * The file has the parts one after another: a head and the records. Only this process reads it.
 */
#include "pipeline/load_large.h"

#include "machine/disk_space.h"
#include "store/temp_dir.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct part_head {
    size_t n_bytes;
    uint64_t first_record;
    struct large_place place;
};

struct load_large {
    const struct load_large_settings *settings;
    struct large_template *template;
    int fd;
    char *dir;                  /* where the file is */
    off_t at;                   /* where the next part is written, or read */
    uint64_t n_records;         /* of the input, up to the last one that was added */
    struct part_head head;      /* of the part that is being made */
    struct record_bytes made;
};

static void begin_part(struct load_large *large)
{
    large->made.n_bytes = 0;
    large->head = (struct part_head){.first_record = large->n_records,
                                     .place = large_template_place(large->template)};
}

struct load_large *load_large_create(const struct load_large_settings *settings,
                                     uint64_t first_record)
{
    struct load_large *large = xcalloc(1, sizeof *large);
    large->settings = settings;
    large->n_records = first_record;
    large->template = large_template_create(settings->rules);
    large->fd = temp_dir_open_file(settings->temp_prefix, settings->output, &large->dir);
    begin_part(large);
    if (large->fd >= 0) return large;
    load_large_destroy(large);
    return NULL;
}

void load_large_destroy(struct load_large *large)
{
    if (!large) return;
    large_template_destroy(large->template);
    if (large->fd >= 0) (void)close(large->fd);         /* nothing of it is needed any more */
    free(large->dir);
    free(large->made.at);
    free(large);
}

/* ---- the file ---- */

static int write_all(struct load_large *large, const void *bytes, size_t n_bytes)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pwrite(large->fd, (const char *)bytes + done, n_bytes - done, large->at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            disk_space_print_full(large->dir, strerror(n < 0 ? errno : ENOSPC), n_bytes - done);
            return -1;
        }
        done += (size_t)n;
        large->at += n;
    }
    return 0;
}

/* Returns 1, 0 at the end of the file, or -1. */
static int read_all(struct load_large *large, void *bytes, size_t n_bytes)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = pread(large->fd, (char *)bytes + done, n_bytes - done, large->at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0 && done == 0) return 0;
        if (n <= 0) {
            diag_error("cannot read temporary data in '%s': %s", large->dir,
                       strerror(n < 0 ? errno : EIO));
            return -1;
        }
        done += (size_t)n;
        large->at += n;
    }
    return 1;
}

static int write_part(struct load_large *large)
{
    large->head.n_bytes = large->made.n_bytes;
    if (large->made.n_bytes == 0) return 0;
    if (write_all(large, &large->head, sizeof large->head) < 0 ||
        write_all(large, large->made.at, large->made.n_bytes) < 0)
        return -1;
    begin_part(large);
    return 0;
}

/* ---- records ---- */

int load_large_add(struct load_large *large, const uint8_t *records, size_t n_bytes)
{
    struct record_bytes *made = &large->made;
    size_t rec_bytes;
    for (size_t at = 0; at < n_bytes; at += rec_bytes) {
        const uint8_t *rec = records + at;
        rec_bytes = bam_record_bytes(rec);
        large_template_look(large->template, rec);
        xgrow(&made->at, &made->room, made->n_bytes + rec_bytes, made->n_bytes / 2, 1);
        memcpy(made->at + made->n_bytes, rec, rec_bytes);
        made->n_bytes += rec_bytes;
        large->n_records++;
        if (made->n_bytes >= large->settings->part_bytes && write_part(large) < 0) return -1;
    }
    return 0;
}

int load_large_end(struct load_large *large)
{
    if (write_part(large) < 0) return -1;
    large_template_end(large->template);
    free(large->made.at);
    large->made = (struct record_bytes){NULL, 0, 0};
    large->at = 0;
    return 0;
}

int load_large_next(struct load_large *large, struct record_bytes *buffer, struct fixed_part *part,
                    uint64_t *first_record)
{
    struct part_head head;
    int r = read_all(large, &head, sizeof head);
    if (r <= 0) return r;
    xgrow(&buffer->at, &buffer->room, head.n_bytes, 0, 1);
    r = read_all(large, buffer->at, head.n_bytes);
    buffer->n_bytes = head.n_bytes;
    *first_record = head.first_record;
    *part = (struct fixed_part){.template = large->template, .place = head.place,
                                .records = buffer->at, .n_bytes = head.n_bytes,
                                .max_bytes = 4 * large->settings->part_bytes};
    return r;
}
