/* codec_chooser.c -- see codec_chooser.h. */
#include "pipeline/codec_chooser.h"

#include "util/monotonic.h"

/* A codec is kept for so long at least. One run tells little, and compaction tells compacted files
   from runs by their sizes, which differ from codec to codec. */
static const double seconds_kept = 1;

/* Sets the facts about how much is still to come, and for how much there is space. */
static void look_at_space(struct codec_chooser *chooser, const struct run_store_disks *disks,
                          const struct codec_sight *sight)
{
    struct codec_facts *facts = &chooser->facts;
    uint64_t expected = sight->expected_bytes, spilled = sight->raw_bytes_spilled;
    /* Where the size is unknown, or was told too small, expect a multiple of what came. Estimates
       are a little low near the end. */
    if (expected == 0 || (sight->was_told && expected <= spilled))
        expected = 10 * sight->raw_bytes_read;
    facts->free_bytes = (double)disks->free_bytes;
    facts->raw_bytes_left = expected > spilled ? (double)(expected - spilled) : 0;
}

/* Sets the facts to what was seen since the last choice. */
static void look_at_times(struct codec_chooser *chooser, const struct codec_sight *sight,
                          double now)
{
    struct codec_facts *facts = &chooser->facts;
    double put_seconds = sight->put_seconds - chooser->put_seconds;
    facts->seconds = chooser->chosen_at > 0 ? now - chooser->chosen_at : 0;
    facts->write_seconds = sight->end_seconds - chooser->end_seconds;
    /* Two threads write: the busier of them is the limit. */
    if (facts->write_seconds < put_seconds) facts->write_seconds = put_seconds;
    facts->wait_seconds = sight->wait_seconds - chooser->wait_seconds;
    facts->worker_seconds = sight->job_seconds - chooser->job_seconds;
    chooser->put_seconds = sight->put_seconds;
    chooser->end_seconds = sight->end_seconds;
    chooser->wait_seconds = sight->wait_seconds;
    chooser->job_seconds = sight->job_seconds;
    chooser->chosen_at = now;
}

static enum temp_codec choose(struct codec_chooser *chooser, const struct run_store_disks *disks,
                              const struct codec_sight *sight, double now)
{
    struct codec_facts *facts = &chooser->facts;
    look_at_times(chooser, sight, now);
    facts->in_memory = disks->in_memory;
    facts->slow_to_seek = disks->slow_to_seek;
    facts->bytes_per_second = disks->bytes_per_second;
    facts->n_threads = chooser->n_threads;
    if (sight->raw_bytes_spilled > 0)
        facts->stored_ratio = (double)disks->run_bytes / (double)sight->raw_bytes_spilled;
    enum temp_codec codec = codec_choose(facts, &chooser->reason);
    if (facts->codec == TEMP_CODEC_NONE && codec != TEMP_CODEC_NONE && facts->seconds > 0)
        facts->left_none = true;
    facts->codec = codec;
    return codec;
}

enum temp_codec codec_chooser_next(struct codec_chooser *chooser, struct run_store *store,
                                   const struct codec_sight *sight)
{
    enum temp_codec codec = chooser->is_auto ? chooser->facts.codec : chooser->fixed;
    if (chooser->is_auto) {
        double now = monotonic_seconds();
        struct run_store_disks disks;
        run_store_look(store, &disks);
        look_at_space(chooser, &disks, sight);
        /* Where memory is written much happens in a second. */
        bool too_large = codec == TEMP_CODEC_NONE && !codec_has_space(&chooser->facts);
        if (too_large || chooser->chosen_at <= 0 || now - chooser->chosen_at > seconds_kept)
            codec = choose(chooser, &disks, sight, now);
    }
    return codec;
}
