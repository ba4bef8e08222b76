/* bed_output.c -- see bed_output.h. */
#include "depth/bed_output.h"

#include "util/diag.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_SHIFT = 14 };     /* lines in one window of this size share a bin */

/* ---- text ---- */

void bed_text_begin_line(struct bed_text *text, const char *name, int64_t begin, int64_t end)
{
    struct byte_buffer *raw = &text->raw;
    text->line = raw->n_bytes;
    byte_buffer_copy(raw, name, strlen(name));
    *byte_buffer_append(raw, 1) = '\t';
    bed_text_number(raw, (uint64_t)begin);
    *byte_buffer_append(raw, 1) = '\t';
    bed_text_number(raw, (uint64_t)end);
}

void bed_text_end_line(struct bed_text *text, int32_t tid, int64_t begin, int64_t end)
{
    struct bed_place *last = text->n_places > 0 ? &text->places[text->n_places - 1] : NULL;
    *byte_buffer_append(&text->raw, 1) = '\n';
    if (last && last->tid == tid && last->begin >> WINDOW_SHIFT == (end - 1) >> WINDOW_SHIFT) {
        if (end > last->end) last->end = end;
        last->at[1] = text->raw.n_bytes;
        return;
    }
    xgrow(&text->places, &text->places_room, text->n_places + 1, text->n_places,
          sizeof *text->places);
    text->places[text->n_places++] =
        (struct bed_place){tid, begin, end, {text->line, text->raw.n_bytes}};
}

int bed_text_pack(struct bed_text *text, struct bgzf_coder *coder)
{
    const struct bgzf_method method = {.level = 1, .is_text = true};
    struct bed_place *place = text->places, *end_place = place + text->n_places;
    size_t n = text->raw.n_bytes;
    unsigned side = 0;          /* of the place: the next one to become a virtual offset */
    for (size_t at = 0; at < n; at += BGZF_PAYLOAD_BYTES) {
        size_t n_raw = n - at < BGZF_PAYLOAD_BYTES ? n - at : BGZF_PAYLOAD_BYTES;
        uint64_t block = text->packed.n_bytes;
        ssize_t n_bytes = bgzf_block_deflate(coder, method, text->raw.bytes + at, n_raw,
                                             byte_buffer_reserve(&text->packed, BGZF_MAX_BYTES));
        if (n_bytes < 0) {
            diag_error("a block of a BED file cannot be compressed; please report this");
            return -1;
        }
        text->packed.n_bytes += (size_t)n_bytes;
        for (; place < end_place && place->at[side] <= at + n_raw; side = !side) {
            size_t in_block = place->at[side] - at;
            bool is_next = in_block == BGZF_PAYLOAD_BYTES || at + in_block == n;
            place->at[side] = is_next ? (uint64_t)text->packed.n_bytes << 16
                                      : block << 16 | in_block;
            place += side;
        }
    }
    return 0;
}

void bed_text_release(struct bed_text *text)
{
    free(text->raw.bytes);
    free(text->packed.bytes);
    free(text->places);
}

/* ---- the file ---- */

void bed_output_init(struct bed_output *out, struct count_sink *sink, const sam_hdr_t *header)
{
    out->sink = sink;
    csi_writer_init(&out->csi, header);
}

static int write_text(struct bed_output *out, const struct bed_text *text)
{
    uint64_t base = out->sink->n_bytes << 16;
    for (size_t i = 0; i < text->n_places; i++) {
        const struct bed_place *place = &text->places[i];
        const uint64_t at[2] = {base + place->at[0], base + place->at[1]};
        csi_writer_add(&out->csi, place->tid, place->begin, place->end, at);
    }
    return out->sink->write(out->sink, text->packed.bytes, text->packed.n_bytes);
}

int bed_output_flush(struct bed_output *out, bool all)
{
    struct bed_text *loose = &out->loose;
    if (loose->raw.n_bytes < (all ? 1 : BED_TEXT_FULL)) return 0;
    if (bed_text_pack(loose, &out->coder) < 0 || write_text(out, loose) < 0)
        return -1;
    loose->raw.n_bytes = loose->packed.n_bytes = 0;
    loose->n_places = 0;
    return 0;
}

int bed_output_text(struct bed_output *out, const struct bed_text *text)
{
    return bed_output_flush(out, true) < 0 ? -1 : write_text(out, text);
}

int bed_output_finish(struct bed_output *out)
{
    if (bed_output_flush(out, true) < 0) return -1;
    return out->sink->write(out->sink, bgzf_end_block, BGZF_END_BYTES);
}

void bed_output_release(struct bed_output *out)
{
    bgzf_coder_release(&out->coder);
    csi_writer_release(&out->csi);
    bed_text_release(&out->loose);
}
