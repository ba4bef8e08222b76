/* codec_choice.c -- see codec_choice.h. */
#include "codec_choice.h"

/* Above the first share of its time the next run waits so much that zstd, which makes a third fewer
   bytes for a quarter more CPU, is faster; it is kept down to the second one. */
static const double waits_much = 0.3, waits_little = 0.05;

/* Uncompressed, writing may take so much of the time, since it happens beside everything else; once
   chosen, it is kept up to the second share. */
static const double writes_in_time = 0.6, writes_too_long = 0.9;

/* A worker merges and deflates about 100 MB/s at level 1; the disk should give twice that. */
static const double worker_bytes_per_second = 200e6;

/* The estimate of what is to come may be too low by so much. */
static const double space_reserve = 1.5;

static bool has_space(const struct codec_facts *facts)
{
    return facts->free_bytes > space_reserve * facts->raw_bytes_left;
}

/* True if the disk took, and will give back, uncompressed data without anybody waiting. */
static bool takes_everything(const struct codec_facts *facts)
{
    bool is_chosen = facts->codec == TEMP_CODEC_NONE;
    double ratio = !is_chosen && facts->stored_ratio > 0 ? facts->stored_ratio : 1;
    return has_space(facts) &&
           facts->bytes_per_second >= worker_bytes_per_second * facts->n_threads &&
           facts->write_seconds / ratio <
               (is_chosen ? writes_too_long : writes_in_time) * facts->seconds;
}

enum temp_codec codec_choose(const struct codec_facts *facts, enum codec_reason *reason)
{
    double waits = facts->codec == TEMP_CODEC_ZSTD ? waits_little : waits_much;
    bool is_first = facts->seconds <= 0;
    *reason = CODEC_MEMORY;
    if (facts->in_memory && has_space(facts)) return TEMP_CODEC_NONE;
    *reason = CODEC_SLOW_DISK;
    if (facts->slow_to_seek) return TEMP_CODEC_ZSTD;
    *reason = CODEC_WAITING;
    if (!is_first && facts->wait_seconds > waits * facts->seconds) return TEMP_CODEC_ZSTD;
    *reason = CODEC_FAST_DISK;
    if (!is_first && takes_everything(facts)) return TEMP_CODEC_NONE;
    *reason = CODEC_USUAL;
    return TEMP_CODEC_LZ4;
}

const char *codec_reason_text(enum codec_reason reason)
{
    switch (reason) {
    case CODEC_ASKED_FOR: return "--temp-codec was given";
    case CODEC_MEMORY: return "the temporary data are in memory";
    case CODEC_FAST_DISK: return "the disk is fast";
    case CODEC_SLOW_DISK: return "the disk is slow to seek";
    case CODEC_WAITING: return "the disk was waited for";
    case CODEC_USUAL: return "nothing argues for another";
    }
    return "";
}
