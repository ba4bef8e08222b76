/* codec_policy.c -- see codec_policy.h. */
#include "store/codec_policy.h"

/* Limits of the share of the time that the next run waits for the disk. Above waits_much zstd is
   faster: it makes a third fewer bytes for a quarter more CPU time. Once chosen, zstd stays until
   the share falls to waits_little. */
static const double waits_much = 0.3, waits_little = 0.05;

/* Limits of the share of the time that writing uncompressed data may take; other work goes on
   meanwhile. With the codec none, the share was 0.3 to 0.45 on a disk where none is faster by 9 %.
   It was 0.5 to 0.67 on two modelled SSDs that also held the input, where lz4 is faster by 7 %.
   writes_too_long is for a share that was measured with none. writes_foreseen is for a share that
   is computed from the time with another codec; such a share is too high rather than too low. */
static const double writes_foreseen = 0.6, writes_too_long = 0.5;

/* Limits of the share of the time that workers are busy: none is chosen from busy_enough on, and
   kept down to busy_no_more. With a lower share compressing costs nothing, and other threads, such
   as the reader of the input, may be waiting for the disk. Workers count as busy also while other
   programs have the CPU. */
static const double busy_enough = 0.7, busy_no_more = 0.5;

/* A worker merges and deflates about 100 MB/s at level 1. The disk should read twice as fast. */
static const double worker_bytes_per_second = 200e6;

/* The estimate of what is still to come may be too low by this factor. */
static const double space_reserve = 1.5;

bool codec_has_space(const struct codec_facts *facts)
{
    return facts->free_bytes > space_reserve * facts->raw_bytes_left;
}

/* True if workers are busy, and the disk has the space and the speed to write uncompressed data and
   to read them again. */
static bool takes_everything(const struct codec_facts *facts)
{
    bool is_chosen = facts->codec == TEMP_CODEC_NONE;
    double ratio = !is_chosen && facts->stored_ratio > 0 ? facts->stored_ratio : 1;
    double busy = facts->worker_seconds / (facts->n_threads * facts->seconds);
    return codec_has_space(facts) && !facts->left_none &&
           busy >= (is_chosen ? busy_no_more : busy_enough) &&
           facts->bytes_per_second >= worker_bytes_per_second * facts->n_threads &&
           facts->write_seconds / ratio <
               (is_chosen ? writes_too_long : writes_foreseen) * facts->seconds;
}

enum temp_codec codec_choose(const struct codec_facts *facts, enum codec_reason *reason)
{
    double waits = facts->codec == TEMP_CODEC_ZSTD ? waits_little : waits_much;
    bool is_first = facts->seconds <= 0;
    *reason = CODEC_MEMORY;
    if (facts->in_memory && codec_has_space(facts)) return TEMP_CODEC_NONE;
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
