/* progress_line.c -- see progress_line.h. */
#include "pipeline/progress_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PART_BYTES = 64 };

/* After this time a rate counts 1 / e as much. A plain mean would hide that the disk got slow. */
static const double rate_memory_seconds = 5;

/* Until then the share that is done says nothing about the time left: the first pieces are still
   on their way through the pipeline. */
static const double first_seconds = 2, first_share = 0.003;

void progress_rate_update(struct progress_rate *rate, double seconds, uint64_t n_bytes)
{
    double elapsed = seconds - rate->seconds;
    if (rate->seconds > 0 && elapsed > 0 && n_bytes >= rate->n_bytes) {
        double now = (double)(n_bytes - rate->n_bytes) / elapsed;
        double share = 1 - exp(-elapsed / rate_memory_seconds);
        /* The division by the weight keeps the time before the first look from counting as a rate
           of 0. */
        double sum = (1 - share) * rate->bytes_per_second * rate->weight + share * now;
        rate->weight = (1 - share) * rate->weight + share;
        rate->bytes_per_second = sum / rate->weight;
    }
    rate->seconds = seconds;
    rate->n_bytes = n_bytes;
}

/* done / all, from 0 to 1; negative if `all` is 0, which means unknown. */
static double share_of(uint64_t done, uint64_t all)
{
    if (all == 0) return -1;
    return done < all ? (double)done / (double)all : 1;     /* a file may grow while it is read */
}

double progress_share(const struct progress_facts *facts)
{
    bool reads = facts->phase == SORT_PHASE_LOAD ||
                 (facts->phase == SORT_PHASE_MERGE && facts->merges_inputs);
    if (reads && facts->input_bytes_read > 0)
        return share_of(facts->input_bytes_read, facts->input_bytes);
    if (facts->phase == SORT_PHASE_MERGE && !facts->merges_inputs)
        return share_of(facts->n_records_written, facts->n_records);
    return -1;
}

double progress_seconds_left(const struct progress_facts *facts)
{
    /* What an earlier process has read says nothing about the speed of this one. */
    uint64_t before = facts->phase == SORT_PHASE_LOAD ? facts->input_bytes_before : 0;
    struct progress_facts own = *facts;
    own.input_bytes -= before < own.input_bytes ? before : own.input_bytes;
    own.input_bytes_read -= before < own.input_bytes_read ? before : own.input_bytes_read;
    double share = progress_share(&own);
    if (share < first_share || facts->phase_seconds < first_seconds) return -1;
    return facts->phase_seconds * (1 - share) / share;
}

/* "999", "1.23 K", "45.6 M", "789 M": three digits. */
static void format_count(char *text, uint64_t n)
{
    static const char units[] = {'K', 'M', 'G', 'T'};
    if (n < 1000) {
        (void)snprintf(text, PART_BYTES, "%u", (unsigned)n);
        return;
    }
    double value = (double)n / 1000;
    size_t unit = 0;
    /* 999.5 would be rounded up to 1000, so it gets the next unit. */
    for (; value >= 999.5 && unit + 1 < sizeof units; unit++) value /= 1000;
    int n_decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)snprintf(text, PART_BYTES, "%.*f %c", n_decimals, value, units[unit]);
}

/* "0:05", "12:34", "3:04:05". */
static void format_time(char *text, double seconds)
{
    const double most = 1e7;                    /* four months are enough */
    unsigned long s = (unsigned long)((seconds < most ? seconds : most) + 0.5);
    unsigned long hours = s / 3600, minutes = s / 60 % 60;
    if (hours > 0)
        (void)snprintf(text, PART_BYTES, "%lu:%02lu:%02lu", hours, minutes, s % 60);
    else
        (void)snprintf(text, PART_BYTES, "%lu:%02lu", minutes, s % 60);
}

static void format_phase(char *text, const struct progress_facts *facts)
{
    const char *some = facts->n_runs > 0 ? " runs" : "";
    char what[PART_BYTES];
    switch (facts->phase) {
    case SORT_PHASE_LOAD: (void)snprintf(what, sizeof what, "reading"); break;
    case SORT_PHASE_SETTLE: (void)snprintf(what, sizeof what, "finishing%s", some); break;
    case SORT_PHASE_MARK: (void)snprintf(what, sizeof what, "marking duplicates"); break;
    case SORT_PHASE_MERGE: (void)snprintf(what, sizeof what, "merging"); break;
    default: (void)snprintf(what, sizeof what, facts->writes_index ? "indexing" : "closing");
    }
    double share = progress_share(facts);
    /* Rounded down, so that 100 % means all is done. */
    if (share >= 0)
        (void)snprintf(text, PART_BYTES, "%.32s %d %%", what, (int)(100 * share));
    else
        (void)snprintf(text, PART_BYTES, "%.32s", what);
}

/* Appends ", part". Returns false if it does not fit; then no more parts should follow. */
static bool append(char *line, size_t room, size_t width, const char *part)
{
    size_t n = strlen(line), n_part = strlen(part), n_comma = n > 0 ? 2 : 0;
    if (n + n_comma + n_part > width || n + n_comma + n_part >= room) return false;
    (void)snprintf(line + n, room - n, "%s%s", n_comma ? ", " : "", part);
    return true;
}

/* The parts of the line, the most important first; returns how many. */
static size_t make_parts(char parts[][PART_BYTES], const struct progress_facts *facts)
{
    char text[PART_BYTES];
    size_t n = 0;
    format_phase(parts[n++], facts);
    double left = progress_seconds_left(facts);
    if (left >= 0) {
        format_time(text, left);
        (void)snprintf(parts[n++], PART_BYTES, "%.32s left", text);
    }
    if (facts->bytes_per_second > 0)
        (void)snprintf(parts[n++], PART_BYTES, "%.*f MB/s", facts->bytes_per_second < 9.95e6,
                       1e-6 * facts->bytes_per_second);
    format_count(text, facts->n_records);
    (void)snprintf(parts[n++], PART_BYTES, "%.32s records", text);
    if (facts->n_runs > 0)
        (void)snprintf(parts[n++], PART_BYTES, "%u run%s", facts->n_runs,
                       facts->n_runs == 1 ? "" : "s");
    format_time(text, facts->seconds);
    (void)snprintf(parts[n++], PART_BYTES, "%.32s so far", text);
    return n;
}

size_t progress_line(char *line, size_t room, size_t width, const struct progress_facts *facts)
{
    char parts[6][PART_BYTES];
    size_t n = make_parts(parts, facts);
    if (room == 0) return 0;
    line[0] = '\0';
    if (!append(line, room, width, parts[0])) {
        /* Not even the phase fits: print its beginning. */
        size_t most = width < room - 1 ? width : room - 1;
        (void)snprintf(line, most + 1, "%s", parts[0]);
    } else {
        for (size_t i = 1; i < n && append(line, room, width, parts[i]); i++) continue;
    }
    return strlen(line);
}
