/*
 * spindle_control.c -- see spindle_control.h.
 */
#define _GNU_SOURCE
#include "spindle_control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LABEL_BYTES 256

enum { CONTROL_REPORT, CONTROL_RESET, CONTROL_ROTATIONAL, CONTROL_PID, N_CONTROLS };

static const char *const control_names[N_CONTROLS] = {"report.json", "reset", "rotational", "pid"};

bool control_is(fuse_ino_t ino)
{
    return ino >= CONTROL_DIR_INO && ino < CONTROL_FIRST_INO + N_CONTROLS;
}

int control_attr(fuse_ino_t ino, struct stat *attr)
{
    *attr = (struct stat){.st_ino = ino, .st_nlink = 1, .st_mode = S_IFREG | 0444};
    if (ino == CONTROL_DIR_INO) attr->st_mode = S_IFDIR | 0555;
    if (ino == CONTROL_FIRST_INO + CONTROL_RESET) attr->st_mode = S_IFREG | 0666;
    return 0;
}

int control_lookup(fuse_ino_t parent, const char *name, struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){.entry_timeout = CACHE_SECONDS};
    if (parent == FUSE_ROOT_ID) entry->ino = CONTROL_DIR_INO;
    for (unsigned i = 0; parent == CONTROL_DIR_INO && i < N_CONTROLS; i++)
        if (!strcmp(name, control_names[i])) entry->ino = CONTROL_FIRST_INO + i;
    if (!entry->ino) return ENOENT;
    return control_attr(entry->ino, &entry->attr);
}

int control_open(struct fs *fs, fuse_ino_t ino, struct fuse_file_info *info)
{
    char *text = NULL;
    int n = 0;

    switch (ino - CONTROL_FIRST_INO) {
    case CONTROL_REPORT: text = report_json(&fs->report); break;
    case CONTROL_RESET: text = strdup(""); break;
    case CONTROL_ROTATIONAL: n = asprintf(&text, "%d\n", fs->rotates); break;
    case CONTROL_PID: n = asprintf(&text, "%ld\n", (long)getpid()); break;
    default: return EPERM;
    }
    if (n < 0 || !text) return ENOMEM;
    info->fh = (uintptr_t)text;
    info->direct_io = 1;
    return 0;
}

void control_read(fuse_req_t req, size_t size, off_t offset, const struct fuse_file_info *info)
{
    const char *text = (const char *)(uintptr_t)info->fh;
    size_t len = strlen(text), from = (size_t)offset < len ? (size_t)offset : len;
    fuse_reply_buf(req, text + from, len - from < size ? len - from : size);
}

void control_write(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *data)
{
    char label[MAX_LABEL_BYTES] = "";
    size_t size = fuse_buf_size(data);
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(sizeof label - 1);

    to.buf[0].mem = label;
    if (ino != CONTROL_FIRST_INO + CONTROL_RESET || size >= sizeof label ||
        fuse_buf_copy(&to, data, 0) < 0) {
        fuse_reply_err(req, EINVAL);
    } else if (report_next(&fs_of(req)->report, label)) {
        fuse_reply_err(req, ENOMEM);
    } else {
        fuse_reply_write(req, size);
    }
}

struct drain {
    struct model_op op;
    fuse_req_t req;
};

static void drain_done(struct model_op *op)
{
    struct drain *drain = (struct drain *)op;
    fuse_reply_err(drain->req, 0);
    free(drain);
}

void control_drain(fuse_req_t req)
{
    struct drain *drain = calloc(1, sizeof *drain);
    if (!drain) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    drain->op.done = drain_done;
    drain->req = req;
    model_drain(fs_of(req)->model, &drain->op);
}

void control_release(const struct fuse_file_info *info)
{
    free((char *)(uintptr_t)info->fh);
}
