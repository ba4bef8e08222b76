/*
 * chunk_encoder.c -- see chunk_encoder.h.
 *
 * Records are copied, in order, into BGZF payloads that are deflated at once, or, for formats
 * without BGZF blocks, directly to the output. With --split-by a payload ends where a group ends.
 */
#include "output/chunk_encoder.h"

#include "bam/bam_convert.h"
#include "bam/bgzf_block.h"
#include "markdup/duplicate_tags.h"
#include "order/slice_merge.h"
#include "output/cram_check.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct output_scratch {
    struct bgzf_coder bgzf;
    uint8_t payload[BGZF_PAYLOAD_BYTES];
    bam1_t *record;             /* SAM: an unpacked record, and its line */
    kstring_t line;
    struct column_encoder *columns[MOST_OUTPUTS];       /* one for each output */
};

static void release_scratch(void *arg)
{
    struct output_scratch *scratch = arg;
    bgzf_coder_release(&scratch->bgzf);
    bam_destroy1(scratch->record);
    ks_free(&scratch->line);
    for (int i = 0; i < MOST_OUTPUTS; i++) column_encoder_destroy(scratch->columns[i]);
}

static const struct scratch_kind scratch_kind = {sizeof(struct output_scratch), release_scratch};

/* The output while it is being made. */
struct emission {
    struct chunk_encoder *out;
    struct output_file *file;
    const struct chunk_records *records;
    struct output_scratch *scratch;
    struct column_encoder *columns;     /* the worker's, of this output; else NULL */
    size_t next;                /* entry */
    struct split_cursor cursor;
    /* A BGZF payload that is being gathered in the worker's buffer; at level 0 it is gathered
       directly at its place in the output. NULL: not begun. */
    uint8_t *payload;
    size_t payload_bytes;
};

void chunk_encoder_release(struct chunk_encoder *out)
{
    free(out->bytes);
    for (size_t i = 0; i < out->n_spans; i++) {
        bam_index_part_release(&out->spans[i].part);
        free(out->spans[i].value);
        free(out->spans[i].metadata.bytes);
    }
    free(out->spans);
    *out = (struct chunk_encoder){0};
}

/* ---- records ---- */

enum { PREFETCH = 8 };          /* records ahead: 8 x 350 bytes */

static inline const uint8_t *next_record(struct emission *e)
{
    const struct chunk_records *records = e->records;
    enum sort_order order = records->rules->order;
    const struct sort_entry *entry = &records->entries[e->next++];
    if (e->next + PREFETCH <= records->n_entries) {
        const uint8_t *ahead = sort_entry_record(order, entry + PREFETCH);
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + 64);
    }
    return sort_entry_record(order, entry);
}

/* True if --markdup -r removes the record. */
static bool is_removed(const struct sort_rules *rules, const uint8_t *rec)
{
    return rules->duplicates && rules->duplicates->removes && (bam_record_flag(rec) & BAM_FDUP);
}

/* The next record that is written, or NULL. */
static inline const uint8_t *next_written(struct emission *e)
{
    const struct chunk_records *records = e->records;
    const struct sort_rules *rules = records->rules;
    while (e->next < records->n_entries) {
        const uint8_t *rec = next_record(e);
        if (records->output == 0) {
            /* Changing the record is safe: no other code reads it now, and keys are stored
               elsewhere. */
            uint8_t *own = (uint8_t *)(uintptr_t)rec;
            sort_rules_restore(rules->order, own);
            duplicate_sum_add_output(rules->duplicates, records->sum, own);
        }
        if (is_removed(rules, rec)) continue;
        if (records->output == 0) observed_parts_add(records->observed, rec);
        return rec;
    }
    return NULL;
}

/* ---- bytes ---- */

/* Makes room for n_bytes more. The first buffer has the size of the largest earlier output chunk:
   growing a small one would copy all output twice. */
static void reserve(struct emission *e, size_t n_bytes)
{
    struct chunk_encoder *out = e->out;
    if (out->room - out->n_bytes >= n_bytes) return;
    size_t hint = atomic_load_explicit(&e->file->room_hint, memory_order_relaxed);
    size_t room = out->n_bytes + n_bytes + out->room / 2;
    if (room < hint) room = hint;
    xgrow(&out->bytes, &out->room, room, 0, 1);
}

static void remember_room(const struct emission *e)
{
    size_t n_bytes = e->out->n_bytes;
    /* Workers may overwrite each other's hint, which is harmless. Compressed columns get more room
       than they need. */
    if (n_bytes > atomic_load_explicit(&e->file->room_hint, memory_order_relaxed))
        atomic_store_explicit(&e->file->room_hint,
                              n_bytes + (e->columns ? n_bytes / 8 : 0) + BGZF_MAX_BYTES,
                              memory_order_relaxed);
}

static void add_bytes(struct emission *e, const uint8_t *bytes, size_t n_bytes)
{
    reserve(e, n_bytes);
    memcpy(e->out->bytes + e->out->n_bytes, bytes, n_bytes);
    e->out->n_bytes += n_bytes;
}

/* ---- spans ---- */

static struct output_span *last_span(const struct emission *e)
{
    return &e->out->spans[e->out->n_spans - 1];
}

static struct output_span *begin_span(struct emission *e)
{
    struct chunk_encoder *out = e->out;
    xgrow(&out->spans, &out->spans_room, out->n_spans + 1, out->n_spans, sizeof *out->spans);
    out->n_spans++;
    struct output_span *span = last_span(e);
    *span = (struct output_span){.begin = out->n_bytes};
    if (e->file->index)
        bam_index_part_init(&span->part, bam_index_shape(e->file->index));
    return span;
}

static void end_span(struct emission *e)
{
    struct output_span *span = last_span(e);
    span->end = e->out->n_bytes;
    if (e->file->index)
        bam_index_part_end(&span->part, bam_index_voffset(span->end - span->begin, 0));
}

/* ---- BGZF payloads ---- */

static void begin_payload(struct emission *e)
{
    reserve(e, BGZF_MAX_BYTES);
    e->payload_bytes = 0;
    if (e->file->settings.method.level == 0) {
        e->payload = e->out->bytes + e->out->n_bytes + BGZF_STORED_OFFSET;
        return;
    }
    e->payload = e->scratch->payload;
}

/* Makes a BGZF block of the payload, unless it is empty. Returns 0, or -1 after a message. */
static int end_payload(struct emission *e)
{
    struct bgzf_method method = e->file->settings.method;
    if (!e->payload || e->payload_bytes == 0) return 0;
    uint8_t *to = e->out->bytes + e->out->n_bytes;
    ssize_t n = method.level == 0 ? (ssize_t)bgzf_block_store(to, e->payload_bytes)
                                  : bgzf_block_deflate(&e->scratch->bgzf, method, e->payload,
                                                       e->payload_bytes, to);
    if (n < 0) {
        diag_error("a block of the output cannot be compressed; please report this");
        return -1;
    }
    e->out->n_bytes += (size_t)n;
    e->payload = NULL;
    return 0;
}

/* Adds the bytes of a record, in BAM or as a line of SAM. Like htslib, begins a new block for a
   record that does not fit into this one. Returns 0, or -1 after a message. */
static int add_to_payload(struct emission *e, const uint8_t *rec, const uint8_t *bytes,
                          size_t n_bytes)
{
    if (e->payload && e->payload_bytes + n_bytes > BGZF_PAYLOAD_BYTES && end_payload(e) < 0)
        return -1;
    if (e->file->index) {
        struct output_span *span = last_span(e);
        uint64_t begin =
            bam_index_voffset(e->out->n_bytes - span->begin, e->payload ? e->payload_bytes : 0);
        if (bam_index_part_add(&span->part, rec, begin) < 0) return -1;
    }
    for (;;) {
        if (!e->payload) begin_payload(e);
        size_t n = n_bytes < BGZF_PAYLOAD_BYTES ? n_bytes : BGZF_PAYLOAD_BYTES;
        memcpy(e->payload + e->payload_bytes, bytes, n);
        e->payload_bytes += n;
        bytes += n;
        n_bytes -= n;
        if (n_bytes == 0) return 0;
        if (end_payload(e) < 0) return -1;
    }
}

/* ---- columns ---- */

/* Encodes the current column batch, if any, into the span. Returns 0, or -1 after a message. */
static int end_column_batch(struct emission *e)
{
    struct chunk_encoder *out = e->out;
    if (!e->columns || out->n_spans == 0) return 0;
    size_t value_bytes = column_batch_bytes(column_encoder_batch(e->columns));
    reserve(e, value_bytes / 4);
    struct byte_buffer bytes = {out->bytes, out->n_bytes, out->room};
    struct output_span *span = last_span(e);
    if (out->large_bytes < value_bytes) out->large_bytes = value_bytes;
    const char *problem = column_encoder_put(e->columns, span->begin, &bytes, &span->metadata);
    out->bytes = bytes.bytes;
    out->n_bytes = bytes.n_bytes;
    out->room = bytes.room;
    if (problem) diag_error("records cannot be written as columns: %s; write BAM with -O bam",
                            problem);
    return problem ? -1 : 0;
}

/* ---- formats ---- */

/* Before a record that will be written: if it belongs to another group, ends the span and begins a
   new one. Returns 0, or -1 after a message. */
static int enter_span(struct emission *e, const uint8_t *rec)
{
    const struct split_plan *split = e->records->split;
    if (split && !split_cursor_move(&e->cursor, split, rec)) {
        if (end_payload(e) < 0) return -1;
        if (e->out->n_spans > 0) {
            if (end_column_batch(e) < 0) return -1;
            end_span(e);
        }
        struct output_span *span = begin_span(e);
        span->group = e->cursor.group;
        if (split_is_by_tag(split->request.kind))
            span->value = split_plan_value(split, rec, &span->value_bytes);
    }
    struct output_span *span = last_span(e);
    span->span = e->cursor.span;
    span->n_records++;
    span->raw_bytes += bam_record_bytes(rec);
    return 0;
}

/* Adds the record as a line of SAM, compressed or not. */
static int add_line(struct emission *e, const uint8_t *rec)
{
    kstring_t *line = &e->scratch->line;
    if (!e->scratch->record) e->scratch->record = bam_init1();
    bam1_t *record = e->scratch->record;
    xalloc_require(record != NULL);
    bam_record_unpack(rec, record);
    if (sam_format1(e->records->header, record, line) < 0) {
        diag_error("read '%s' cannot be written as SAM: its tags are damaged",
                   (const char *)bam_record_name(rec));
        return -1;
    }
    xalloc_require(kputc('\n', line) >= 0);
    const uint8_t *bytes = (const uint8_t *)line->s;
    if (e->file->settings.format.kind == OUTPUT_SAM_GZ)
        return add_to_payload(e, rec, bytes, line->l);
    add_bytes(e, bytes, line->l);
    return 0;
}

static int refuse_record(const uint8_t *rec, const char *format, const char *problem)
{
    diag_error("read '%s' cannot be written as %s: %s; write BAM with -O bam",
               (const char *)bam_record_name(rec), format, problem);
    return -1;
}

/* Adds the record to the column batch; ends a full batch. */
static int add_row(struct emission *e, const uint8_t *rec)
{
    struct column_batch *batch = column_encoder_batch(e->columns);
    const char *problem = column_batch_add(batch, rec);
    if (problem) return refuse_record(rec, "columns", problem);
    return batch->raw_bytes >= e->file->column_batch_bytes ? end_column_batch(e) : 0;
}

/* After an output chunk of SAM: frees the memory of long records. */
static void trim(struct output_scratch *scratch)
{
    enum { LONG_BYTES = 4 << 20 };
    if (scratch->line.m > LONG_BYTES) ks_free(&scratch->line);
    if (!scratch->record || scratch->record->m_data <= LONG_BYTES) return;
    bam_destroy1(scratch->record);
    scratch->record = NULL;
}

/* Writes all records. */
static int emit(struct emission *e)
{
    const struct output_settings *settings = &e->file->settings;
    const uint8_t *rec;
    const char *problem;
    int r = 0;
    while (r == 0 && (rec = next_written(e))) {
        switch (settings->format.kind) {
        case OUTPUT_BAM:
            r = enter_span(e, rec) < 0 ? -1 : add_to_payload(e, rec, rec, bam_record_bytes(rec));
            break;
        case OUTPUT_SAM:
        case OUTPUT_SAM_GZ: r = enter_span(e, rec) < 0 ? -1 : add_line(e, rec); break;
        case OUTPUT_CRAM:       /* htslib encodes the raw records */
            if ((problem = cram_record_check(rec, settings->doubt)))
                return refuse_record(rec, "CRAM", problem);
            r = enter_span(e, rec);
            add_bytes(e, rec, bam_record_bytes(rec));
            break;
        default: r = enter_span(e, rec) < 0 ? -1 : add_row(e, rec);
        }
    }
    return r < 0 || end_payload(e) < 0 || end_column_batch(e) < 0 ? -1 : 0;
}

int chunk_encoder_make(struct chunk_encoder *out, struct output_file *file,
                       const struct chunk_records *records, struct worker *worker)
{
    const struct output_settings *settings = &file->settings;
    struct emission e = {.out = out, .file = file, .records = records,
                         .scratch = worker_scratch(worker, &scratch_kind)};
    if (!records->split) (void)begin_span(&e);
    if (settings->columns) {
        struct column_encoder **columns = &e.scratch->columns[records->output];
        if (!*columns) *columns = column_encoder_create(settings->columns, records->header);
        e.columns = *columns;
        struct column_batch *batch = column_encoder_batch(e.columns);
        batch->expected_rows = records->n_entries;
        batch->expected_bytes = file->column_batch_bytes;
    }
    int r = emit(&e);
    trim(e.scratch);
    if (output_format_is_sam(&settings->format)) out->large_bytes = out->n_bytes;
    if (out->n_spans > 0) end_span(&e);
    remember_room(&e);
    return r;
}
