/*
 * cram_writer.c -- see cram_writer.h.
 *
 * Records are unpacked and given to sam_write1, which encodes them in the pool.
 *
 * When htslib cannot encode a container, it frees the next one while another thread is encoding it
 * (1.16, cram_put_bam_seq and cram_flush_result), and crashes. Before that, the failed thread logs
 * an error, and waits until it is printed. This file watches for that error, and ends the sort.
 * With --split-by or --also several writers may be open, and the error does not name one.
 * cram_check.h refuses records that cannot be encoded, so this handles only failures that cannot be
 * predicted, such as a missing reference. If the error is not seen, the file is never closed,
 * because closing would encode the same container again.
 */
#define _GNU_SOURCE             /* memfd_create */
#include "output/cram_writer.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "os/disk_space.h"
#include "os/exception_guard.h"
#include "os/transfers.h"
#include "output/cram_pump.h"
#include "output/cram_reference.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct cram_writer {
    struct cram_writer_settings settings;
    struct cram_pump pump;
    hFILE *pump_in;             /* the pump's writing end, until `file` owns it */
    samFile *file;
    bool encoder_failed;        /* `file` must not be closed */
    int index_fd;               /* memfd of an index to upload, or -1 */
    struct cram_reference reference;
    bam1_t *record;
    struct cram_writer *next_open;      /* under encoders.lock */
    _Atomic int32_t last_tid;           /* of the last record that htslib got */
    _Atomic int64_t last_pos;
};

/* The open writers. diag.h and exception_guard.h accept one watcher for the whole process, so the
   list is global. */
static struct {
    pthread_mutex_t lock;
    struct cram_writer *first;
} encoders = {PTHREAD_MUTEX_INITIALIZER, NULL};

struct cram_writer *cram_writer_create(void)
{
    struct cram_writer *writer = xcalloc(1, sizeof *writer);
    writer->index_fd = -1;
    writer->last_tid = -1;
    if (cram_pump_open(&writer->pump, &writer->pump_in) == 0) return writer;
    diag_error("cannot make sockets for the CRAM output: %s%s", strerror(errno),
               diag_advice(errno));
    free(writer);
    return NULL;
}

void cram_writer_pump(struct cram_writer *writer)
{
    cram_pump_run(&writer->pump);
}

int cram_writer_check(struct cram_writer *writer)
{
    errno = atomic_load(&writer->pump.error);
    if (!errno) return 0;
    if (*writer->pump.failure) transfers_tell(writer->pump.failure);
    return writer->settings.explain(writer->settings.arg);
}

/* Prints that htslib cannot encode the records of the writer, or, with `others`, perhaps of another
   writer. htslib's workers encode later, and do not set errno. */
static int encoder_error(struct cram_writer *writer, const char *others)
{
    char type = 0, tag[300] = "", more[600];
    const char *read = cram_doubt_read(writer->settings.doubt, &type);
    if (cram_writer_check(writer) < 0) return -1;
    if (read)
        (void)snprintf(tag, sizeof tag, "; probably because of NM:%c in read '%s'", type, read);
    (void)snprintf(more, sizeof more, "%s%s%s", others, diag_library_words(), tag);
    diag_error("cannot write '%s': htslib cannot encode it as CRAM%s; give %s, or write BAM with "
               "-O bam", writer->settings.name, more,
               read ? "--output-fmt-option no_ref=1" : "--reference");
    return -1;
}

#define OTHER_ENCODERS ", or another output that is open"

/* A worker of htslib could not encode a container. Does not return during a sort. */
static void end_before_crash(void)
{
    (void)pthread_mutex_lock(&encoders.lock);
    bool any = encoders.first != NULL, pump_failed = false;
    for (struct cram_writer *w = encoders.first; w && !pump_failed; w = w->next_open)
        pump_failed = cram_writer_check(w) < 0;
    if (!pump_failed && any)
        (void)encoder_error(encoders.first, encoders.first->next_open ? OTHER_ENCODERS : "");
    (void)pthread_mutex_unlock(&encoders.lock);
    if (any) exception_guard_give_up();
}

/* htslib has aborted; called in the thread that failed. False: it was not writing. */
static bool explain_abort(void)
{
    (void)pthread_mutex_lock(&encoders.lock);
    struct cram_writer *writer = encoders.first;
    bool is_only = writer && !writer->next_open;
    int32_t tid = is_only ? atomic_load(&writer->last_tid) : -1;
    const char *name = tid >= 0 ? sam_hdr_tid2name(writer->settings.header, tid) : NULL;
    char more[256];
    if (name)
        (void)snprintf(more, sizeof more, " in the records up to %.128s:%" PRId64 "%s", name,
                       atomic_load(&writer->last_pos) + 1, diag_library_words());
    else
        (void)snprintf(more, sizeof more, "%s%s", is_only ? "" : " on it" OTHER_ENCODERS,
                       diag_library_words());
    if (writer)
        diag_error("cannot write '%s': htslib, which encodes CRAM, gave up%s; give --reference, or "
                   "write BAM with -O bam", writer->settings.name, more);
    (void)pthread_mutex_unlock(&encoders.lock);
    return writer != NULL;
}

/* Called by output_path_make: htslib opens the index by its name. */
static int start_cram_index(void *arg)
{
    struct cram_writer *writer = arg;
    return sam_idx_init(writer->file, writer->settings.header, 0,
                        output_path_to_write(writer->settings.index_path));
}

/* htslib would complete the upload of an index even if the sort fails. So it writes the index to
   memory, some bytes for 10,000 records, and the caller uploads it when the output is complete. */
static int start_index_in_memory(struct cram_writer *writer)
{
    char name[64];
    writer->index_fd = memfd_create("index", MFD_CLOEXEC);
    if (writer->index_fd < 0) return -1;
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", writer->index_fd);
    return sam_idx_init(writer->file, writer->settings.header, 0, name);
}

static int start_index(struct cram_writer *writer)
{
    struct output_path *path = writer->settings.index_path;
    if (!path) return 0;
    errno = 0;
    int r = path->is_url ? start_index_in_memory(writer)
                         : output_path_make(path, start_cram_index, writer);
    if (r < 0)
        diag_error("cannot create the index '%s': %s%s", path->name, strerror(errno),
                   diag_advice(errno));
    return r;
}

static void watch_encoder(struct cram_writer *writer)
{
    (void)pthread_mutex_lock(&encoders.lock);
    writer->next_open = encoders.first;
    encoders.first = writer;
    (void)pthread_mutex_unlock(&encoders.lock);
    diag_watch_libraries("cram_encode_container failed", end_before_crash);
    exception_guard_explain(explain_abort);
}

/* Accepts a writer that is not watched. */
static void forget_encoder(const struct cram_writer *writer)
{
    (void)pthread_mutex_lock(&encoders.lock);
    struct cram_writer **at = &encoders.first;
    while (*at && *at != writer) at = &(*at)->next_open;
    if (*at) *at = writer->next_open;
    (void)pthread_mutex_unlock(&encoders.lock);
}

int cram_writer_start(struct cram_writer *writer, const struct cram_writer_settings *settings)
{
    const htsFormat *format = settings->format;
    char mode[8] = "wc";
    writer->settings = *settings;
    if (settings->level >= 0) mode[2] = (char)('0' + settings->level);
    cram_pump_set_target(&writer->pump, settings->target);
    watch_encoder(writer);
    writer->file = hts_hopen(writer->pump_in, writer->settings.name, mode);
    if (!writer->file) return -1;
    writer->pump_in = NULL;
    if (hts_set_opt(writer->file, HTS_OPT_THREAD_POOL, settings->pool) < 0) return -1;
    writer->record = bam_init1();
    xalloc_require(writer->record != NULL);
    errno = 0;
    if (format->specific && hts_opt_apply(writer->file, format->specific) < 0) {
        const char *advice = diag_advice(errno);
        diag_error("cannot write '%s': htslib refuses the reference or another option of the "
                   "output%s", writer->settings.name, *advice ? advice : diag_library_words());
        return -1;
    }
    if (cram_reference_open(writer->settings.header, format, &writer->reference) < 0) return -1;
    const struct cram_reference *reference = &writer->reference;
    if ((reference->no_embedding && hts_set_opt(writer->file, CRAM_OPT_EMBED_REF, 0) < 0) ||
        (reference->no_ref && hts_set_opt(writer->file, CRAM_OPT_NO_REF, 1) < 0))
        return encoder_error(writer, "");
    if (sam_hdr_write(writer->file, writer->settings.header) < 0) return encoder_error(writer, "");
    return start_index(writer);
}

/* The FASTA file has fewer bases of the record's reference than the header says. */
static int reference_error(const struct cram_writer *writer)
{
    diag_error("cannot write read '%s' as CRAM: its reference in '%s' ends before it; write BAM "
               "with -O bam", bam_get_qname(writer->record), writer->reference.fasta);
    return -1;
}

int cram_writer_write(struct cram_writer *writer, const uint8_t *records, size_t n_bytes)
{
    const uint8_t *end = records + n_bytes;
    if (cram_writer_check(writer) < 0) return -1;
    for (const uint8_t *rec = records; rec < end; rec += bam_record_bytes(rec)) {
        bam_record_unpack(rec, writer->record);
        if (!cram_reference_admits(&writer->reference, writer->record))
            return reference_error(writer);
        atomic_store(&writer->last_pos, writer->record->core.pos);
        atomic_store(&writer->last_tid, writer->record->core.tid);
        if (sam_write1(writer->file, writer->settings.header, writer->record) >= 0) continue;
        writer->encoder_failed = true;
        return encoder_error(writer, "");
    }
    return 0;
}

int cram_writer_end(struct cram_writer *writer, bool complete)
{
    /* Closing a CRAM file writes buffered records and an end marker, with which a partial result
       would look complete. */
    if (!complete) cram_pump_discard(&writer->pump);
    int r = writer->file && !writer->encoder_failed ? sam_close(writer->file) : 0;
    if (writer->pump_in && hclose(writer->pump_in) < 0) r = -1;
    writer->file = NULL;
    writer->pump_in = NULL;
    forget_encoder(writer);
    cram_pump_end(&writer->pump);
    return r < 0 && complete ? encoder_error(writer, "") : 0;
}

int cram_writer_send_index(const struct cram_writer *writer)
{
    struct output_path *path = writer->settings.index_path;
    struct stat st;
    void *bytes = MAP_FAILED;
    if (writer->index_fd < 0) return 0;
    if (fstat(writer->index_fd, &st) == 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, writer->index_fd, 0);
    int r = bytes != MAP_FAILED ? output_path_put(path, bytes, (size_t)st.st_size) : -1;
    if (r < 0) disk_space_print_output_error(path->name, errno, NULL, 0);
    if (bytes != MAP_FAILED) (void)munmap(bytes, (size_t)st.st_size);
    return r;
}

void cram_writer_destroy(struct cram_writer *writer)
{
    if (!writer) return;
    cram_pump_close(&writer->pump);
    cram_reference_release(&writer->reference);
    bam_destroy1(writer->record);
    if (writer->index_fd >= 0) (void)close(writer->index_fd);
    free(writer);
}
