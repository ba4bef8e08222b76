/*
 * track.c -- see track.h.
 *
 * The summary of a window can be made of any parts of it, in any grouping. So each level of a part
 * is made of the items of the level below, the first and the last one included, although the same
 * window may have more bases in other parts; and each level of the track is made of the levels of
 * the parts, without looking at the others. Bins are joined in the same way, before their means
 * become runs.
 */
#include "depth/track.h"

#include "util/diag.h"

enum { LEAST_ITEMS = TRACK_MOST_ITEMS / 4 };    /* fewer are encoded with those of the next part */

struct items {                  /* a level, starts as {0} */
    bool has_first;
    struct track_item first;    /* of a part: may be joined with earlier items */
    struct section_list {
        struct track_section *at;
        size_t n, room;
        struct byte_buffer bytes;
    } sections;
    struct track_item *open;    /* after the sections; later items may be joined with the last */
    size_t n_open, open_room;
};

struct bin {                    /* of n_bases with values */
    int64_t tid, begin, end;    /* begin == end: none */
    double sum;
};

struct track_part {
    const struct track_settings *settings;
    struct bgzf_coder coder;
    bool keeps_first;           /* false for the track itself */
    bool has_first_bin;
    struct bin first_bin, bin;  /* bin: the last one */
    struct items levels[TRACK_MOST_LEVELS];
    struct track_item all;
    int failed;
};

struct track {
    const struct track_settings *settings;
    struct track_part *sum;     /* what is open */
    struct tape_set *tapes;     /* a section, then its bytes; one tape a level */
    uint64_t n_items[TRACK_MOST_LEVELS];
};

/* ---- items ---- */

static void add_summary(struct track_item *to, const struct track_item *item)
{
    if (to->n_bases == 0) *to = *item;
    else {
        to->end = item->end;
        to->n_bases += item->n_bases;
        to->sum += item->sum;
        to->squares += item->squares;
        if (item->min < to->min) to->min = item->min;
        if (item->max > to->max) to->max = item->max;
    }
}

static bool can_join(const struct track_settings *settings, unsigned level,
                     const struct track_item *a, const struct track_item *b)
{
    if (a->tid != b->tid) return false;
    if (level == 0) return a->end == b->begin && a->max == b->max;
    return a->begin / settings->windows[level] == b->begin / settings->windows[level];
}

static void scale_item(struct track_item *item, double scale)
{
    double min = item->min * scale, max = item->max * scale;
    item->min = scale < 0 ? max : min;
    item->max = scale < 0 ? min : max;
    item->sum *= scale;
    item->squares *= scale * scale;
}

/* Encodes the items of a section, in which bytes were not scaled if the scale is 0. */
static int encode_items(const struct track_settings *settings, struct bgzf_coder *coder,
                        unsigned level, struct track_item *items, size_t n, double scale,
                        struct byte_buffer *out)
{
    if (scale != 0 && scale != 1)
        for (size_t i = 0; i < n; i++) scale_item(&items[i], scale);
    if (scale != 0)
        return settings->encode(settings->encode_arg, coder, level, items, n, out);
    size_t n_bytes = n * sizeof *items, room = n_bytes + n_bytes / 8 + 1024;
    const struct bgzf_method fast = {.level = 1, .is_text = true};
    ssize_t r = bgzf_engine_deflate(coder, fast, (const uint8_t *)items, n_bytes,
                                    byte_buffer_reserve(out, room), room);
    if (r <= 0) diag_error("cannot compress the depths of a track");
    if (r > 0) out->n_bytes += (size_t)r;
    return r > 0 ? 0 : -1;
}

/* Encodes the first n open items, and removes them. */
static void encode_section(struct track_part *part, unsigned level, size_t n)
{
    struct items *list = &part->levels[level];
    struct section_list *to = &list->sections;
    if (n == 0) return;
    const struct track_item *first = list->open, *last = first + n - 1;
    xgrow(&to->at, &to->room, to->n + 1, to->n + 4, sizeof *to->at);
    struct track_section *section = &to->at[to->n++];
    *section = (struct track_section){first->tid, first->begin, last->tid, last->end,
                                      (uint32_t)n, (uint32_t)to->bytes.n_bytes};
    part->failed |= encode_items(part->settings, &part->coder, level, list->open, n,
                                 part->settings->scale, &to->bytes);
    section->n_bytes = (uint32_t)to->bytes.n_bytes - section->n_bytes;
    list->n_open -= n;
    memmove(list->open, list->open + n, list->n_open * sizeof *list->open);
}

/* Adds an item to a level, and the one before it to the next level if it cannot be joined. */
static void add_item(struct track_part *part, unsigned level, const struct track_item *item)
{
    struct items *list = &part->levels[level];
    struct track_item *last = list->n_open > 0 ? &list->open[list->n_open - 1]
                              : list->has_first ? &list->first : NULL;
    if (last && can_join(part->settings, level, last, item)) {
        add_summary(last, item);
        return;
    }
    if (last && part->keeps_first && level > 0 && level + 1 < part->settings->n_levels)
        add_item(part, level + 1, last);
    if (part->keeps_first && !list->has_first) {
        list->first = *item;
        list->has_first = true;
        return;
    }
    if (list->n_open == TRACK_MOST_ITEMS ||
        (level == 0 && list->n_open > 0 && last->tid != item->tid))
        encode_section(part, level, list->n_open);
    xgrow(&list->open, &list->open_room, list->n_open + 1, list->n_open, sizeof *list->open);
    list->open[list->n_open++] = *item;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static struct track_item summarize(int64_t tid, int64_t begin, int64_t end, double value)
{
    double n_bases = (double)(end - begin);
    return (struct track_item){tid, begin, end, (uint64_t)(end - begin), value, value,
                               value * n_bases, value * value * n_bases};
}

/* Adds a run, cut at the windows of level 1, to all levels. */
static void add_run(struct track_part *part, int64_t tid, int64_t begin, int64_t end, double value)
{
    if (value == 0 || begin >= end) return;
    struct track_item item = summarize(tid, begin, end, value);
    add_item(part, 0, &item);
    add_summary(&part->all, &item);
    if (part->settings->n_levels == 1) return;
    for (int64_t window = part->settings->windows[1]; begin < end; begin = item.end) {
        item = summarize(tid, begin, smaller(end, (begin / window + 1) * window), value);
        add_item(part, 1, &item);
    }
}

/* ---- bins ---- */

static void end_bin(struct track_part *part)
{
    struct bin *bin = &part->bin;
    if (!part->has_first_bin) {
        part->first_bin = *bin;
        part->has_first_bin = true;
    } else if (bin->begin < bin->end) {
        add_run(part, bin->tid, bin->begin, bin->end, bin->sum / (double)(bin->end - bin->begin));
    }
    *bin = (struct bin){0};
}

/* Adds a sum over bases in one bin. */
static void add_to_bin(struct track_part *part, const struct bin *more)
{
    struct bin *bin = &part->bin;
    double sum = bin->sum;
    if (bin->end > bin->begin && (bin->tid != more->tid || bin->begin != more->begin)) {
        end_bin(part);
        sum = 0;
    }
    *bin = *more;
    bin->sum += sum;
}

void track_part_add(struct track_part *part, int32_t tid, int64_t begin, int64_t end, double value)
{
    int64_t bin_bases = part->settings->bin_bases;
    if (bin_bases == 1) {
        add_run(part, tid, begin, end, value);
        return;
    }
    int64_t ref_bases = (int64_t)sam_hdr_tid2len(part->settings->header, tid);
    while (value != 0 && begin < end) {
        struct bin bin = {.tid = tid, .begin = begin / bin_bases * bin_bases};
        bin.end = smaller(bin.begin + bin_bases, ref_bases);
        int64_t whole_end = end == ref_bases ? end : end / bin_bases * bin_bases;
        if (begin == bin.begin && whole_end > bin.end) {        /* several whole bins */
            end_bin(part);
            add_run(part, tid, begin, whole_end, value);
            begin = whole_end;
            continue;
        }
        int64_t to = smaller(end, bin.end);
        bin.sum = value * (double)(to - begin);
        add_to_bin(part, &bin);
        begin = to;
    }
}

/* ---- parts ---- */

struct track_part *track_part_create(const struct track_settings *settings)
{
    struct track_part *part = xcalloc(1, sizeof *part);
    part->settings = settings;
    part->keeps_first = true;
    return part;
}

int track_part_end(struct track_part *part)
{
    unsigned n_levels = part->settings->n_levels;
    for (unsigned level = 1; level + 1 < n_levels; level++) {
        const struct items *list = &part->levels[level];
        const struct track_item *last = list->n_open > 0 ? &list->open[list->n_open - 1]
                                                         : &list->first;
        if (list->has_first) add_item(part, level + 1, last);
    }
    for (unsigned level = 0; level < n_levels; level++)
        if (part->levels[level].n_open >= LEAST_ITEMS)
            encode_section(part, level, part->levels[level].n_open - 1);
    bgzf_coder_release(&part->coder);
    return part->failed;
}

void track_part_destroy(struct track_part *part)
{
    if (!part) return;
    for (unsigned level = 0; level < TRACK_MOST_LEVELS; level++) {
        free(part->levels[level].open);
        free(part->levels[level].sections.at);
        free(part->levels[level].sections.bytes.bytes);
    }
    bgzf_coder_release(&part->coder);
    free(part);
}

/* ---- the track ---- */

struct track *track_create(const struct track_settings *settings)
{
    struct track *track = xcalloc(1, sizeof *track);
    track->settings = settings;
    track->sum = track_part_create(settings);
    track->sum->keeps_first = false;
    track->tapes = tape_set_create(settings->n_levels, settings->tape_bytes, settings->places);
    return track;
}

void track_destroy(struct track *track)
{
    if (!track) return;
    track_part_destroy(track->sum);
    tape_set_destroy(track->tapes);
    free(track);
}

/* Writes the sections in a list, or puts them on the tape, and empties the list. */
static int write_sections(struct track *track, unsigned level, struct section_list *list)
{
    const struct track_settings *settings = track->settings;
    const uint8_t *bytes = list->bytes.bytes;
    int r = 0;
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        const struct track_section *section = &list->at[i];
        track->n_items[level] += section->n_items;
        if (level == 0 && settings->scale != 0) {
            r = settings->write(settings->write_arg, level, section, bytes);
        } else {
            r = tape_set_append(track->tapes, level, section, sizeof *section);
            if (r == 0) r = tape_set_append(track->tapes, level, bytes, section->n_bytes);
        }
        bytes += section->n_bytes;
    }
    list->n = 0;
    list->bytes.n_bytes = 0;
    return r;
}

/* Adds a level of a part. */
static int take_level(struct track *track, unsigned level, struct items *list)
{
    struct track_part *sum = track->sum;
    if (list->has_first) add_item(sum, level, &list->first);
    if (list->sections.n > 0) encode_section(sum, level, sum->levels[level].n_open);
    int r = write_sections(track, level, &sum->levels[level].sections);
    if (r == 0) r = write_sections(track, level, &list->sections);
    for (size_t i = 0; i < list->n_open; i++) add_item(sum, level, &list->open[i]);
    if (r == 0) r = write_sections(track, level, &sum->levels[level].sections);
    return r < 0 ? r : sum->failed;
}

static int take_levels(struct track *track, struct track_part *part)
{
    int r = 0;
    for (unsigned level = 0; r == 0 && level < track->settings->n_levels; level++)
        r = take_level(track, level, &part->levels[level]);
    if (part->all.n_bases > 0) add_summary(&track->sum->all, &part->all);
    return r;
}

/* Adds the last bin of the track, which no later part has a base of. */
static int close_bin(struct track *track)
{
    struct bin *bin = &track->sum->bin;
    struct track_part *one = track_part_create(track->settings);
    if (bin->begin < bin->end)
        add_run(one, bin->tid, bin->begin, bin->end, bin->sum / (double)(bin->end - bin->begin));
    *bin = (struct bin){0};
    int r = track_part_end(one);
    if (r == 0) r = take_levels(track, one);
    track_part_destroy(one);
    return r;
}

/* Joins a bin with the last one of the track. */
static int take_bin(struct track *track, const struct bin *bin)
{
    const struct bin *last = &track->sum->bin;
    if (bin->begin == bin->end) return 0;
    int r = last->tid == bin->tid && last->begin == bin->begin ? 0 : close_bin(track);
    add_to_bin(track->sum, bin);
    return r;
}

int track_take(struct track *track, struct track_part *part)
{
    int r = 0;
    if (part->has_first_bin) {
        r = take_bin(track, &part->first_bin);
        if (r == 0) r = close_bin(track);
    }
    if (r == 0) r = take_levels(track, part);
    if (r == 0) r = take_bin(track, &part->bin);
    track_part_destroy(part);
    return r;
}

/* ---- the end ---- */

enum { MOST_CODERS = 16, SECTIONS_PER_ROUND = 128 };

struct coder_item {             /* of a job */
    struct thread_pool_slot slot;       /* must be the first member */
    struct round *round;
    struct bgzf_coder coder;
};

struct round {                  /* sections that are encoded at the same time */
    const struct track_settings *settings;
    unsigned level, n;
    double scale;
    struct track_section sections[SECTIONS_PER_ROUND];
    struct byte_buffer in[SECTIONS_PER_ROUND], out[SECTIONS_PER_ROUND];
    struct coder_item coders[MOST_CODERS];
};

static int encode_again(struct worker *worker, void *arg)
{
    struct coder_item *item = arg;
    struct round *round = item->round;
    unsigned i = item->slot.number;
    struct track_item items[TRACK_MOST_ITEMS];
    size_t n = round->sections[i].n_items;
    (void)worker;
    if (bgzf_engine_inflate(&item->coder, round->in[i].bytes, round->in[i].n_bytes,
                            (uint8_t *)items, n * sizeof *items) < 0) {
        diag_error_of(DIAG_DAMAGE, "temporary data of a track are damaged");
        return -1;
    }
    round->out[i].n_bytes = 0;
    return encode_items(round->settings, &item->coder, round->level, items, n, round->scale,
                        &round->out[i]);
}

static int encode_round(struct round *round)
{
    struct threads *threads = round->settings->threads;
    int r = 0;
    if (threads)
        return thread_pool_for_each(threads, round->n, round->coders, MOST_CODERS,
                                    sizeof *round->coders, encode_again);
    for (unsigned i = 0; r == 0 && i < round->n; i++) {
        round->coders->slot.number = i;
        r = encode_again(NULL, round->coders);
    }
    return r;
}

static int read_section(struct tape_reader *from, struct track_section *section,
                        struct byte_buffer *bytes)
{
    const uint8_t *at = tape_read(from, sizeof *section);
    if (!at) return -1;
    memcpy(section, at, sizeof *section);
    if (!(at = tape_read(from, section->n_bytes))) return -1;
    bytes->n_bytes = 0;
    byte_buffer_copy(bytes, at, section->n_bytes);
    return 0;
}

/* Writes the next sections of a tape. */
static int write_round(struct tape_reader *from, struct round *round)
{
    const struct track_settings *settings = round->settings;
    int r = 0;
    for (round->n = 0; r == 0 && round->n < SECTIONS_PER_ROUND && tape_left(from) > 0; round->n++)
        r = read_section(from, &round->sections[round->n], &round->in[round->n]);
    bool is_final = settings->scale != 0;
    if (r == 0 && !is_final) r = encode_round(round);
    for (unsigned i = 0; r == 0 && i < round->n; i++) {
        const struct byte_buffer *bytes = is_final ? &round->in[i] : &round->out[i];
        round->sections[i].n_bytes = (uint32_t)bytes->n_bytes;
        r = settings->write(settings->write_arg, round->level, &round->sections[i], bytes->bytes);
    }
    return r;
}

static int write_level(struct track *track, unsigned level, double scale)
{
    struct round *round = xcalloc(1, sizeof *round);
    struct tape_reader from = {0};
    int r = 0;
    round->settings = track->settings;
    round->level = level;
    round->scale = scale;
    for (unsigned i = 0; i < MOST_CODERS; i++) round->coders[i].round = round;
    tape_reader_begin(&from, track->tapes, level);
    while (r == 0 && tape_left(&from) > 0) r = write_round(&from, round);
    if (r == 0) r = track->settings->write(track->settings->write_arg, level, NULL, NULL);
    tape_reader_release(&from);
    for (unsigned i = 0; i < MOST_CODERS; i++) bgzf_coder_release(&round->coders[i].coder);
    for (unsigned i = 0; i < SECTIONS_PER_ROUND; i++) {
        free(round->in[i].bytes);
        free(round->out[i].bytes);
    }
    free(round);
    return r;
}

int track_finish(struct track *track, double scale, struct track_item *all)
{
    const struct track_settings *settings = track->settings;
    int r = close_bin(track);
    if (settings->scale != 0) scale = settings->scale;
    for (unsigned level = 0; r == 0 && level < settings->n_levels; level++) {
        struct items *list = &track->sum->levels[level];
        encode_section(track->sum, level, list->n_open);
        r = write_sections(track, level, &list->sections);
        if (r == 0) r = track->sum->failed;
    }
    uint64_t n_below = 0;
    for (unsigned level = 0; r == 0 && level < settings->n_levels; level++) {
        uint64_t n = track->n_items[level];
        if (level > 0 && (n == 0 || 2 * n > n_below)) continue;
        n_below = n;
        r = write_level(track, level, scale);
    }
    *all = track->sum->all;
    scale_item(all, scale);
    return r;
}
