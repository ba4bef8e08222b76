/* codec_choice.c -- see codec_choice.h. */
#include "store/codec_choice.h"

/* Above the first share of its time the next run waits so much that zstd, which makes a third fewer
   bytes for a quarter more CPU, is faster; it is kept down to the second one. */
static const double waits_much = 0.3, waits_little = 0.05;

/* Uncompressed, writing may take so much of the time, since it happens beside everything else. With
   none it takes 0.3 to 0.45 of it on a disk where none is faster by 9 %, and 0.5 to 0.67 on two
   modelled SSDs, which hold the input, too, and where lz4 is faster by 7 %. What is foreseen from
   the time with a codec is too much rather than too little. */
static const double writes_foreseen = 0.6, writes_too_long = 0.5;

/* If workers have nothing to do for a part of their time, compressing costs nothing, and the disk
   may be what others wait for, the input among them. Workers count as busy also while other
   programs have the CPU. */
static const double busy_enough = 0.7, busy_no_more = 0.5;

/* A worker merges and deflates about 100 MB/s at level 1; the disk should give twice that. */
static const double worker_bytes_per_second = 200e6;

/* The estimate of what is to come may be too low by so much. */
static const double space_reserve = 1.5;

bool codec_has_space(const struct codec_facts *facts)
{
    return facts->free_bytes > space_reserve * facts->raw_bytes_left;
}

/* True if the disk took, and will give back, uncompressed data without anybody waiting. */
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
