/*
 * bam_writer.c -- see bam_writer.h.
 *
 * BAM and SAM: the header, the bytes that workers have made, and the EOF block are written to an
 * hFILE. htslib's BGZF is not used, because closing it always adds an EOF block, which would make
 * the output of a failed sort look complete. Its threaded SAM writer is not used either: in htslib
 * 1.16 it waits forever once the disk is full.
 *
 * CRAM: records are unpacked and given to sam_write1, which encodes them in the pool. What it
 * writes goes through a pump; cram_pump.h says why.
 *
 * When htslib cannot encode a container, it frees the next one while another thread is encoding it
 * (1.16, cram_put_bam_seq and cram_flush_result), and crashes. Before that, the thread that failed
 * prints a line, and does not go on before the line is printed. The writers watch for this line,
 * and end the sort when it comes. With --split-by or --also several may be open, and the line does
 * not say whose container it is. cram_check.h keeps records that cannot be encoded away from
 * htslib, so this is only for failures that cannot be known before, such as a missing reference. If
 * the line is not seen, the file is never closed, because closing would encode the same container
 * again.
 */
#define _GNU_SOURCE             /* sync_file_range, memfd_create */
#include "output/bam_writer.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/bgzf_block.h"
#include "machine/disk_space.h"
#include "machine/exception_guard.h"
#include "machine/transfers.h"
#include "output/cram_check.h"
#include "output/cram_pump.h"
#include "output/cram_reference.h"
#include "output/index_names.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <htslib/hfile.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct bam_writer {
    struct output_settings settings;
    struct output_path *path, *index_path;      /* NULL: standard output; no index of CRAM */
    const char *name;           /* for messages */
    uint64_t raw_bytes;         /* of all records */
    bool file_exists;           /* the temporary file */
    bool lost_reader;           /* standard output is a pipe that was closed */
    hFILE *raw;                 /* the output; NULL before start and after close */
    uint64_t n_bytes;           /* of the closed file, if known */
    uint64_t writing_back;      /* how many bytes the kernel was told to write */
    sam_hdr_t *header;
    struct column_file *columns;        /* Arrow and Parquet */
    uint64_t raw_written, raw_writing;  /* bytes of records: without the current write, and with
                                           it */
    /* CRAM */
    struct cram_pump pump;
    bool has_pump;
    hFILE *pump_in;             /* the pump's writing end, until `file` owns it */
    samFile *file;
    bool encoder_failed;        /* `file` must not be closed */
    int index_fd;               /* memory with the index that becomes a URL, or -1 */
    struct cram_reference reference;
    bam1_t *record;
    struct bam_writer *next_open;       /* under encoders.lock */
    _Atomic int32_t last_tid;           /* of the last record that htslib got */
    _Atomic int64_t last_pos;
};

/* The writers of CRAM that are open. diag.h and exception_guard.h have one watcher for the whole
   process, and so has this file. */
static struct {
    pthread_mutex_t lock;       /* taken after diag.c's */
    struct bam_writer *first;
} encoders = {PTHREAD_MUTEX_INITIALIZER, NULL};

struct bam_writer *bam_writer_create(const struct output_settings *settings, uint64_t raw_bytes,
                                     const struct column_notes *notes)
{
    struct bam_writer *writer = xcalloc(1, sizeof *writer);
    writer->settings = *settings;
    writer->path = settings->path->name ? settings->path : NULL;
    writer->index_path = settings->index_path->name ? settings->index_path : NULL;
    writer->raw_bytes = raw_bytes;
    writer->index_fd = -1;
    writer->has_pump = !output_format_has_bytes(&settings->format);
    if (writer->has_pump && cram_pump_open(&writer->pump, &writer->pump_in) < 0) {
        diag_error("cannot make sockets for the CRAM output: %s%s", strerror(errno),
                   diag_advice(errno));
        free(writer);
        return NULL;
    }
    writer->name = writer->path ? writer->path->name : "standard output";
    if (settings->columns)
        writer->columns = column_file_create(settings->columns, notes, writer->name);
    return writer;
}

static void drop_index(void *arg, const char *name)
{
    (void)arg;
    (void)unlink(name);
}

/* Removes the indexes of a regular file that is written in place: its old content is lost. */
static void drop_indexes_of_lost(const struct bam_writer *writer)
{
    const struct output_path *path = writer->path, *index = writer->index_path;
    struct stat st;
    if (!path || path->temporary || stat(path->name, &st) < 0 || !S_ISREG(st.st_mode)) return;
    char *real = realpath(path->name, NULL);
    const struct output_path lost = {.name = path->name, .final = real};
    index_names_find_stale(&lost, index ? index->final : NULL, &writer->settings.format, drop_index,
                     NULL);
    free(real);
}

static int open_file(struct bam_writer *writer)
{
    struct output_path *path = writer->path;
    writer->raw = path ? output_path_open(path) : hopen("-", "w");
    writer->file_exists = writer->raw && path && path->temporary;
    if (writer->raw) drop_indexes_of_lost(writer);
    return writer->raw ? 0 : -1;
}

/* Makes the BAM header, uncompressed (SAM specification, section 4.2): magic, text, references.
   Returns its size, and the bytes in *out, which the caller frees. Returns 0 if htslib cannot make
   the text, or, after a message, if a reference is too long. */
static size_t make_bam_header(sam_hdr_t *header, uint8_t **out)
{
    const char *text = sam_hdr_str(header);
    int n_refs = sam_hdr_nref(header);
    if (!text || n_refs < 0) return 0;
    for (int i = 0; i < n_refs; i++) {
        if (sam_hdr_tid2len(header, i) <= INT32_MAX) continue;
        diag_error("reference '%s' has %" PRId64 " bases, more than BAM can hold: write SAM with "
                   "-O sam", sam_hdr_tid2name(header, i), (int64_t)sam_hdr_tid2len(header, i));
        return 0;
    }
    size_t n = 12 + strlen(text);
    for (int i = 0; i < n_refs; i++) n += 9 + strlen(sam_hdr_tid2name(header, i));
    uint8_t *at = *out = xmalloc(n);
    memcpy(at, "BAM\1", 4);
    at = put_u32(at + 4, strlen(text));
    memcpy(at, text, strlen(text));
    at = put_u32(at + strlen(text), (size_t)n_refs);
    for (int i = 0; i < n_refs; i++) {
        const char *name = sam_hdr_tid2name(header, i);
        size_t name_bytes = strlen(name) + 1;
        at = put_u32(at, name_bytes);
        memcpy(at, name, name_bytes);
        at = put_u32(at + name_bytes, (size_t)sam_hdr_tid2len(header, i));
    }
    return n;
}

/* Adds bytes of the file to the shared header, or writes them if this file has its own. */
static int put_header(struct bam_writer *writer, const uint8_t *bytes, size_t n)
{
    struct bam_writer_header *shared = writer->settings.shared_header;
    if (!shared) return hwrite(writer->raw, bytes, n) == (ssize_t)n ? 0 : -1;
    xgrow(&shared->bytes, &shared->room, shared->n_bytes + n, shared->n_bytes, 1);
    if (n > 0) memcpy(shared->bytes + shared->n_bytes, bytes, n);
    shared->n_bytes += n;
    return 0;
}

/* The same for bytes that become BGZF blocks if the format is compressed. */
static int pack_header(struct bam_writer *writer, const uint8_t *bytes, size_t n)
{
    if (!output_format_is_bgzf(&writer->settings.format)) return put_header(writer, bytes, n);
    struct bgzf_coder coder = {0};
    uint8_t block[BGZF_MAX_BYTES];
    int r = 0;
    for (size_t at = 0; r == 0 && at < n; at += BGZF_PAYLOAD_BYTES) {
        size_t payload = n - at < BGZF_PAYLOAD_BYTES ? n - at : BGZF_PAYLOAD_BYTES;
        ssize_t size = bgzf_block_deflate(&coder, writer->settings.method, bytes + at, payload,
                                          block);
        r = size > 0 ? put_header(writer, block, (size_t)size) : -1;
    }
    bgzf_coder_release(&coder);
    return r;
}

static int make_header(struct bam_writer *writer)
{
    if (output_format_is_sam(&writer->settings.format)) {
        const char *text = sam_hdr_str(writer->header);
        return text ? pack_header(writer, (const uint8_t *)text, strlen(text)) : -1;
    }
    uint8_t *bytes = NULL;
    size_t n = make_bam_header(writer->header, &bytes);
    int r = n > 0 ? pack_header(writer, bytes, n) : -1;
    free(bytes);
    return r;
}

/* Writes what stands before the columns. */
static int start_columns(struct bam_writer *writer)
{
    struct column_bytes out = {0};
    column_file_begin(writer->columns, writer->header, &out);
    int r = hwrite(writer->raw, out.bytes, out.n_bytes) == (ssize_t)out.n_bytes ? 0 : -1;
    free(out.bytes);
    return r;
}

static int start_bytes(struct bam_writer *writer)
{
    if (writer->columns) return start_columns(writer);
    const struct bam_writer_header *shared = writer->settings.shared_header;
    if ((!shared || shared->n_bytes == 0) && make_header(writer) < 0) return -1;
    size_t n = shared ? shared->n_bytes : 0;
    return n == 0 || hwrite(writer->raw, shared->bytes, n) == (ssize_t)n ? 0 : -1;
}

/* Readers take a stream of Arrow for complete if it ends between two messages. So one that is not
   complete gets the begin of a message of which the rest is missing. */
static void cut_off(struct bam_writer *writer)
{
    static const uint8_t begin[8] = {0xff, 0xff, 0xff, 0xff, 8};
    bool is_stream = writer->settings.format.kind == OUTPUT_ARROW_STREAM;
    if (!is_stream || writer->file_exists || writer->lost_reader) return;
    if (hwrite(writer->raw, begin, sizeof begin) != (ssize_t)sizeof begin) return;
    (void)!hflush(writer->raw);
}

/* Estimates from the records so far how many bytes are still to come; 0: unknown. */
static uint64_t bytes_to_come(const struct bam_writer *writer)
{
    uint64_t all = writer->raw_bytes, done = writer->raw_written;
    if (done == 0 || done > all) return 0;
    double written = (double)bam_writer_position(writer);
    return (uint64_t)(written * ((double)(all - done) / (double)done));
}

static int write_error(struct bam_writer *writer)
{
    const struct output_path *path = writer->path;
    int error = errno;
    writer->lost_reader = error == EPIPE && !path;
    uint64_t needed_bytes = path && disk_space_is_short(error) ? bytes_to_come(writer) : 0;
    disk_space_print_output_error(writer->name, error, path ? path->temporary : NULL, needed_bytes);
    return -1;
}

static bool write_columns_end(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct bam_writer *writer = arg;
    if (hwrite(writer->raw, bytes, n_bytes) == (ssize_t)n_bytes) return true;
    (void)write_error(writer);
    return false;
}

/* Writes what stands after the columns, or marks the end of another complete file. Returns 0, or -1
   after a message. */
static int write_end(struct bam_writer *writer)
{
    const struct column_sink sink = {write_columns_end, writer};
    if (writer->columns)
        return column_file_end(writer->columns, writer->header, bam_writer_position(writer), &sink);
    if (!output_format_is_bgzf(&writer->settings.format) ||
        hwrite(writer->raw, bgzf_end_block, BGZF_END_BYTES) == BGZF_END_BYTES)
        return 0;
    return write_error(writer);
}

/* Reports the error of the pump, which htslib does not see. */
static int check_pump(struct bam_writer *writer)
{
    errno = atomic_load(&writer->pump.error);
    if (!errno) return 0;
    if (*writer->pump.failure) transfers_tell(writer->pump.failure);
    return write_error(writer);
}

/* Reports that htslib cannot encode the records of the writer, or, with `others`, perhaps those of
   another one. htslib's workers encode later, and do not set errno. */
static int print_encoder_error(struct bam_writer *writer, const char *others)
{
    char type = 0, tag[300] = "", more[600];
    const char *read = cram_doubt_read(writer->settings.doubt, &type);
    if (check_pump(writer) < 0) return -1;
    if (read)
        (void)snprintf(tag, sizeof tag, "; probably because of NM:%c in read '%s'", type, read);
    (void)snprintf(more, sizeof more, "%s%s%s", others, diag_library_words(), tag);
    diag_error("cannot write '%s': htslib cannot encode it as CRAM%s; give %s, or write BAM with "
               "-O bam", writer->name, more,
               read ? "--output-fmt-option no_ref=1" : "--reference");
    return -1;
}

static int encoder_error(struct bam_writer *writer)
{
    return print_encoder_error(writer, "");
}

#define OTHER_ENCODERS ", or another output that is open"

/* A worker of htslib could not encode a container. Does not return during a sort. */
static void end_before_crash(void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&encoders.lock);
    bool pump_failed = false;
    for (struct bam_writer *w = encoders.first; w && !pump_failed; w = w->next_open)
        pump_failed = check_pump(w) < 0;
    if (!pump_failed && encoders.first)
        (void)print_encoder_error(encoders.first, encoders.first->next_open ? OTHER_ENCODERS : "");
    (void)pthread_mutex_unlock(&encoders.lock);
    exception_guard_give_up();
}

/* htslib has aborted while it wrote; called in the thread that failed. */
static void explain_abort(void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&encoders.lock);
    struct bam_writer *writer = encoders.first;
    bool is_only = writer && !writer->next_open;
    int32_t tid = is_only ? atomic_load(&writer->last_tid) : -1;
    const char *name = tid >= 0 ? sam_hdr_tid2name(writer->header, tid) : NULL;
    char more[256];
    if (name)
        (void)snprintf(more, sizeof more, " in the records up to %.128s:%" PRId64 "%s", name,
                       atomic_load(&writer->last_pos) + 1, diag_library_words());
    else
        (void)snprintf(more, sizeof more, "%s%s", is_only ? "" : " on it" OTHER_ENCODERS,
                       diag_library_words());
    if (writer)
        diag_error("cannot write '%s': htslib, which encodes CRAM, gave up%s; give --reference, or "
                   "write BAM with -O bam", writer->name, more);
    (void)pthread_mutex_unlock(&encoders.lock);
}

/* Called by output_path_make: htslib opens the index by its name. */
static int start_cram_index(void *arg)
{
    struct bam_writer *writer = arg;
    return sam_idx_init(writer->file, writer->header, 0,
                        output_path_to_write(writer->index_path));
}

/* htslib would complete the object of an index also when the sort fails. So it writes the index to
   memory, some bytes for 10,000 records, and send_index sends it when the output is complete. */
static int start_index_in_memory(struct bam_writer *writer)
{
    char name[64];
    writer->index_fd = memfd_create("index", MFD_CLOEXEC);
    if (writer->index_fd < 0) return -1;
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", writer->index_fd);
    return sam_idx_init(writer->file, writer->header, 0, name);
}

static int start_index(struct bam_writer *writer)
{
    struct output_path *path = writer->index_path;
    if (!path) return 0;
    errno = 0;
    int r = path->is_url ? start_index_in_memory(writer)
                         : output_path_make(path, start_cram_index, writer);
    if (r < 0)
        diag_error("cannot create the index '%s': %s%s", path->name, strerror(errno),
                   diag_advice(errno));
    return r;
}

/* Sends the index that start_index_in_memory has begun. */
static int send_index(const struct bam_writer *writer)
{
    struct output_path *path = writer->index_path;
    struct stat st;
    void *bytes = MAP_FAILED;
    if (writer->index_fd < 0) return 0;
    if (fstat(writer->index_fd, &st) == 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, writer->index_fd, 0);
    hFILE *file = bytes != MAP_FAILED ? output_path_open(path) : NULL;
    errno = file ? 0 : errno;
    int r = file ? 0 : -1;
    if (file) {
        r = hwrite(file, bytes, (size_t)st.st_size) == (ssize_t)st.st_size ? 0 : -1;
        r = output_path_end(path, file, r);
    }
    if (r < 0) disk_space_print_output_error(path->name, errno, NULL, 0);
    if (bytes != MAP_FAILED) (void)munmap(bytes, (size_t)st.st_size);
    return r;
}

static void watch_encoder(struct bam_writer *writer)
{
    (void)pthread_mutex_lock(&encoders.lock);
    writer->next_open = encoders.first;
    encoders.first = writer;
    (void)pthread_mutex_unlock(&encoders.lock);
    diag_watch_libraries("cram_encode_container failed", end_before_crash, NULL);
    exception_guard_explain(explain_abort, NULL);
}

/* Accepts a writer that is not watched. */
static void forget_encoder(const struct bam_writer *writer)
{
    (void)pthread_mutex_lock(&encoders.lock);
    struct bam_writer **at = &encoders.first;
    while (*at && *at != writer) at = &(*at)->next_open;
    if (*at) *at = writer->next_open;
    bool is_last = !encoders.first;
    (void)pthread_mutex_unlock(&encoders.lock);
    if (!is_last) return;
    diag_watch_libraries(NULL, NULL, NULL);
    exception_guard_explain(NULL, NULL);
}

static int start_cram(struct bam_writer *writer)
{
    const struct output_settings *settings = &writer->settings;
    const htsFormat *format = &settings->format.hts;
    char mode[8] = "wc";
    if (settings->method.level >= 0) mode[2] = (char)('0' + settings->method.level);
    cram_pump_set_target(&writer->pump, writer->raw);
    atomic_store(&writer->last_tid, -1);
    watch_encoder(writer);
    writer->file = hts_hopen(writer->pump_in, writer->name, mode);
    if (!writer->file) return -1;
    writer->pump_in = NULL;
    if (hts_set_opt(writer->file, HTS_OPT_THREAD_POOL, settings->pool) < 0) return -1;
    writer->record = bam_init1();
    xalloc_require(writer->record != NULL);
    errno = 0;
    if (format->specific && hts_opt_apply(writer->file, format->specific) < 0) {
        const char *advice = diag_advice(errno);
        diag_error("cannot write '%s': htslib refuses the reference or another option of the "
                   "output%s", writer->name, *advice ? advice : diag_library_words());
        return -1;
    }
    if (cram_reference_open(writer->header, format, &writer->reference) < 0) return -1;
    const struct cram_reference *reference = &writer->reference;
    if ((reference->no_embedding && hts_set_opt(writer->file, CRAM_OPT_EMBED_REF, 0) < 0) ||
        (reference->no_ref && hts_set_opt(writer->file, CRAM_OPT_NO_REF, 1) < 0))
        return encoder_error(writer);
    if (sam_hdr_write(writer->file, writer->header) < 0) return encoder_error(writer);
    return start_index(writer);
}

bool bam_writer_needs_pump(const struct bam_writer *writer)
{
    return writer->has_pump;
}

void bam_writer_pump(struct bam_writer *writer)
{
    cram_pump_run(&writer->pump);
}

void bam_writer_expect(struct bam_writer *writer, uint64_t raw_bytes)
{
    writer->raw_written = writer->raw_writing;
    writer->raw_writing += raw_bytes;
}

int bam_writer_start(struct bam_writer *writer, sam_hdr_t *header)
{
    writer->header = header;
    errno = 0;
    if (open_file(writer) < 0) {
        int error = errno;
        diag_error("cannot create '%s': %s%s", writer->name,
                   output_path_problem(writer->path, error), diag_advice(error));
        return -1;
    }
    int r = output_format_has_bytes(&writer->settings.format) ? start_bytes(writer)
                                                             : start_cram(writer);
    return r < 0 ? write_error(writer) : 0;
}

/* Tells the kernel to begin to write the file to the disk. Otherwise closing the file would wait
   for that: htslib took 0.4 s for 670 MB here when nothing had been written before. The pieces are
   large, because a disk that also reads then spends little time on seeks. */
static void write_back(struct bam_writer *writer)
{
    enum { WRITE_BACK_BYTES = 32 << 20 };
    const struct output_path *path = writer->path;
    int fd = path ? output_path_descriptor(path) : -1;
    if (fd < 0) return;
    uint64_t end = (uint64_t)htell(writer->raw), begin = writer->writing_back;
    if (end < begin + WRITE_BACK_BYTES) return;
    (void)sync_file_range(fd, (off_t)begin, (off_t)(end - begin), SYNC_FILE_RANGE_WRITE);
    writer->writing_back = end;
}

int bam_writer_write_bytes(struct bam_writer *writer, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return 0;
    errno = 0;
    if (hwrite(writer->raw, bytes, n_bytes) != (ssize_t)n_bytes) return write_error(writer);
    write_back(writer);
    return 0;
}

int bam_writer_note_batches(struct bam_writer *writer, struct column_bytes *notes)
{
    return column_file_note(writer->columns, notes, bam_writer_position(writer));
}

uint64_t bam_writer_position(const struct bam_writer *writer)
{
    return writer->raw ? (uint64_t)htell(writer->raw) : writer->n_bytes;
}

/* The FASTA file has fewer bases of the record's reference than the header says. */
static int reference_error(const struct bam_writer *writer)
{
    diag_error("cannot write read '%s' as CRAM: its reference in '%s' ends before it; write BAM "
               "with -O bam", bam_get_qname(writer->record), writer->reference.fasta);
    return -1;
}

int bam_writer_write_records(struct bam_writer *writer, const uint8_t *records, size_t n_bytes)
{
    const uint8_t *end = records + n_bytes;
    if (check_pump(writer) < 0) return -1;
    for (const uint8_t *rec = records; rec < end; rec += bam_record_bytes(rec)) {
        bam_record_unpack(rec, writer->record);
        if (!cram_reference_admits(&writer->reference, writer->record))
            return reference_error(writer);
        atomic_store(&writer->last_pos, writer->record->core.pos);
        atomic_store(&writer->last_tid, writer->record->core.tid);
        if (sam_write1(writer->file, writer->header, writer->record) >= 0) continue;
        writer->encoder_failed = true;
        return encoder_error(writer);
    }
    return 0;
}

int bam_writer_end(struct bam_writer *writer, bool complete)
{
    errno = 0;
    if (!complete) cut_off(writer);
    if (!writer->has_pump) {
        return complete ? write_end(writer) : 0;
    }
    /* Closing a CRAM file writes what is buffered and an end marker. With the marker, half a result
       would look complete. */
    if (!complete) cram_pump_discard(&writer->pump);
    int r = writer->file && !writer->encoder_failed ? sam_close(writer->file) : 0;
    if (writer->pump_in && hclose(writer->pump_in) < 0) r = -1;
    writer->file = NULL;
    writer->pump_in = NULL;
    forget_encoder(writer);
    cram_pump_end(&writer->pump);
    return r < 0 && complete ? encoder_error(writer) : 0;
}

static void free_writer(struct bam_writer *writer)
{
    cram_reference_release(&writer->reference);
    bam_destroy1(writer->record);
    column_file_destroy(writer->columns);
    if (writer->index_fd >= 0) (void)close(writer->index_fd);
    free(writer);
}

int bam_writer_close(struct bam_writer *writer)
{
    if (writer->has_pump && check_pump(writer) < 0) return -1;
    if (writer->has_pump) cram_pump_close(&writer->pump);
    writer->has_pump = false;
    hFILE *raw = writer->raw;
    writer->n_bytes = (uint64_t)htell(raw);
    writer->raw = NULL;
    errno = 0;
    int r = output_path_close(writer->path, raw);       /* writes what is buffered */
    return r < 0 ? write_error(writer) : 0;
}

int bam_writer_commit(struct bam_writer *writer, struct output_result *result)
{
    struct output_path *path = writer->path;
    struct stat st;
    int r = 0;
    *result = (struct output_result){.n_bytes = writer->n_bytes};
    if (writer->file_exists) {
        if (stat(path->temporary, &st) == 0) result->n_bytes = (uint64_t)st.st_size;
        r = output_path_commit(path);
        if (r < 0) output_path_drop(path);
    }
    if (r == 0) r = send_index(writer);
    free_writer(writer);
    return r < 0 ? -1 : 0;
}

void bam_writer_abort(struct bam_writer *writer, struct output_result *result)
{
    *result = (struct output_result){0};
    if (!writer) return;
    result->lost_reader = writer->lost_reader;
    if (writer->has_pump) cram_pump_close(&writer->pump);
    if (writer->raw) output_path_close_incomplete(writer->path, writer->raw);
    if (writer->file_exists) output_path_drop(writer->path);
    free_writer(writer);
}
