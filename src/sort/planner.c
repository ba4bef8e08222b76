/*
 * planner.c -- see planner.h.
 *
 * The number of runs follows memory_budget.h: whenever enough full sort buffers wait, the oldest
 * become a run; those that wait when the input ends stay in memory.
 */
#include "sort/planner.h"

#include "bam/bgzf_block.h"
#include "markdup/markdup.h"
#include "markdup/read_ends_store.h"
#include "spill/memory_budget.h"
#include "spill/store_layout.h"
#include "util/diag.h"
#include "util/monotonic.h"
#include "util/size.h"
#include "util/xalloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seconds for each byte, on an AMD EPYC (Zen 3), for the kernel to copy it to the output, and to or
   from temporary files; to copy records in sorted order; and for codecs. */
static const double write_seconds = 0.8e-9, temp_copy_seconds = 0.4e-9, gather_seconds = 1.0e-9;
static const double pack_seconds[TEMP_CODEC_COUNT] = {0.1e-9, 2.0e-9, 1.3e-9, 3.0e-9};
static const double unpack_seconds[TEMP_CODEC_COUNT] = {0, 1.2e-9, 0.38e-9, 1.0e-9};

/* Seconds for each block, in addition. With little memory blocks are small. */
static const double block_load_seconds = 6e-6, block_merge_seconds = 17e-6;

/* Threads that read and write use CPU besides the workers. Threads do not all end together. */
static const double cores_besides_workers = 0.25, cpu_efficiency = 0.92;

/* Size of CRAM / BAM of the same records: 0.27 to 0.31 was measured. */
static const double cram_ratio = 0.35;

/* Reads of 150 bp of bench/simulate-reads on the same machine, with libdeflate 1.14. */
static const struct plan_traits usual_traits = {
    .memory_ratio = 1.05,
    .load_seconds = 2.3e-9,
    .deflate = {0.31, 25e-9},
    .usual = {0.31, 25e-9},
    .pack_ratio = {1, 0.46, 0.50, 0.33},
};

void planner_begin(struct plan *plan, const struct sort_settings *settings,
                   const struct memory_budget *budget)
{
    *plan = (struct plan){.settings = settings, .budget = *budget, .format = "unknown",
                          .traits = usual_traits, .n_dirs = 1, .n_lanes = 1};
    if (settings->markdup)
        plan->read_ends_memory_bytes =
            markdup_read_ends_memory(&settings->markdup_rules, settings->memory_bytes);
}

/* ---- runs ---- */

/* The expected bytes of all records, from -s or the input; 0: unknown. */
static uint64_t sort_expects(const struct plan *plan)
{
    if (plan->settings->input_bytes > 0) return plan->settings->input_bytes;
    return plan->size_is_known ? plan->expected_bytes : 0;
}

static void plan_runs(struct plan *plan)
{
    const struct memory_budget *budget = &plan->budget;
    double usual_memory = (double)budget->sort_buffer_bytes;
    double memory = fmax(plan->buffer_memory, usual_memory);
    double raw_bytes = plan->buffer_raw_bytes;
    if (raw_bytes <= 0) raw_bytes = memory / plan->traits.memory_ratio;
    /* Fewer large sort buffers fit in memory. One is being filled. */
    double most_buffers = fmax(1, floor(budget->n_buffers * usual_memory / memory) - 1);
    double run_buffers = (double)spill_policy_run_buffers(budget, budget->n_buffers);
    run_buffers = fmin(run_buffers, most_buffers);
    double used_bytes = (double)plan->expected_bytes * plan->traits.memory_ratio;
    double n_buffers = ceil((double)plan->expected_bytes / raw_bytes);
    size_t first_run_at =
        spill_policy_threshold(budget, false, plan->size_is_known ? plan->expected_bytes : 0);
    plan->in_memory = n_buffers <= (double)first_run_at &&
                      used_bytes <= (double)spill_policy_kept_bytes(budget, 0, 0);
    if (plan->in_memory) return;
    plan->run_bytes = (uint64_t)(raw_bytes * run_buffers);
    /* An average: the last run may have begun at any time before the input ends. */
    double waiting = (double)spill_policy_threshold(budget, true, 0) - 0.5 * run_buffers;
    plan->n_runs = (uint64_t)fmax(1, ceil((n_buffers - waiting) / run_buffers));
}

/* ---- temporary data ---- */

static void plan_compaction(struct plan *plan)
{
    unsigned n_databases = plan->n_dirs * plan->n_lanes;
    struct compaction_facts of_one = {
        .mode = plan->settings->compaction,
        .n_runs_expected = memory_budget_expect_runs(&plan->budget, sort_expects(plan), 0, 0),
        .long_keys = sort_order_has_long_keys(plan->settings->rules.order),
        .scan_bytes = memory_budget_scan_bytes(&plan->budget),
        .compaction_bytes = memory_budget_compaction_bytes(&plan->budget),
        .most_files = plan->most_files,
    };
    compaction_share(&of_one, plan->n_dirs, plan->n_lanes, plan->disks.slow_to_seek,
                     plan->exceeds_memory);
    unsigned width = compaction_width(&of_one);
    uint64_t n_expected =
        memory_budget_expect_runs(&plan->budget, sort_expects(plan), 1, plan->run_bytes);
    plan->n_files =
        plan->n_runs * memory_budget_run_files(&plan->budget, plan->run_bytes, plan->n_runs,
                                               n_databases * compaction_most_run_files(&of_one));
    of_one.n_runs = plan->n_files / n_databases;
    of_one.n_runs_expected = n_expected * of_one.n_runs / plan->n_runs;
    of_one.seek_seconds = plan->disks.seek_seconds;
    of_one.bytes_per_second = plan->disks.bytes_per_second;
    of_one.parallel = plan->disks.parallel;
    plan->compaction = compaction_decide(&of_one, width);
    uint64_t most_files = (uint64_t)plan->compaction.max_files * n_databases;
    if (plan->compaction.compact && plan->n_files > most_files) plan->n_files = most_files;
}

static void plan_temporary_data(struct plan *plan)
{
    double raw_bytes = (double)plan->n_runs * (double)plan->run_bytes;
    plan->codec = plan->settings->codec;
    plan->codec_reason = CODEC_ASKED_FOR;
    if (plan->settings->codec_auto)
        plan->codec = codec_choose(&plan->disks, plan->budget.n_threads, plan->expected_bytes,
                                   &plan->codec_reason);
    plan_compaction(plan);
    plan->spilled_bytes =
        fmin(raw_bytes, (double)plan->expected_bytes) * plan->traits.pack_ratio[plan->codec];
    /* One compaction may run in every database, and the last ones are the largest. */
    plan->needed_bytes = plan->spilled_bytes * (plan->compaction.compact ? 2 : 1);
    if (plan->disks.slow_to_seek)
        plan->read_bytes = scan_read_bytes(plan->n_files, memory_budget_scan_bytes(&plan->budget),
                                           plan->exceeds_memory);
    plan->n_seeks = scan_seeks(plan->spilled_bytes, plan->read_bytes);
}

/* ---- outputs ---- */

/* Sizes relative to BAM at the default level or, uncompressed, to raw bytes: averages of real and
   simulated reads. With long reads Arrow is smaller and Parquet is larger. */
static struct plan_cost cost_of_columns(const struct plan_cost *usual, bool is_parquet, int level)
{
    double size = is_parquet ? 0.85 : level > 1 ? 1.2 : 1.95;
    double time = is_parquet ? 0.25 : level > 1 ? 0.3 : 0.16;
    if (level == 0) return (struct plan_cost){is_parquet ? 1.1 : 1.4, 2e-9};
    return (struct plan_cost){size * usual->ratio, time * usual->seconds};
}

/* `bam`: the cost of BAM at this level; -1 is the default level. */
static struct plan_cost cost_of_output(const struct plan *plan, enum output_kind kind,
                                       struct plan_cost bam, int level)
{
    switch (kind) {
    /* Uncompressed SAM and BAM have about the same size. */
    case OUTPUT_SAM: return (struct plan_cost){1, bam.seconds};
    case OUTPUT_CRAM: return (struct plan_cost){bam.ratio * cram_ratio, bam.seconds};
    case OUTPUT_ARROW:
    case OUTPUT_ARROW_STREAM:
    case OUTPUT_PARQUET: return cost_of_columns(&plan->traits.usual, kind == OUTPUT_PARQUET, level);
    default: return bam;
    }
}

/* ---- time ---- */

/* outputs: total cost of all outputs. */
static void plan_times(struct plan *plan, struct plan_cost outputs)
{
    const struct plan_traits *t = &plan->traits;
    double n = (double)plan->expected_bytes, n_threads = plan->budget.n_threads;
    double share = fmin((double)plan->n_runs * (double)plan->run_bytes / n, 1);
    double usable = fmax(1, plan->n_cpus * cpu_efficiency);
    double workers = fmin(n_threads, usable);
    double cores = fmin(n_threads + cores_besides_workers, usable);
    double temp_copy = t->pack_ratio[plan->codec] * temp_copy_seconds;
    unsigned n_runs = (unsigned)fmin((double)plan->n_runs, 1e5);
    double block = (double)memory_budget_block_bytes(&plan->budget, n_runs / 2, n_runs);
    double load = t->load_seconds + share * (gather_seconds + pack_seconds[plan->codec] +
                                             temp_copy + block_load_seconds / block);
    double merge = gather_seconds + outputs.seconds +
                   share * (unpack_seconds[plan->codec] + block_merge_seconds / block);
    double copies = outputs.ratio * write_seconds + share * temp_copy;
    double transfer = 0;        /* time to transfer the temporary data once */
    if (plan->disks.bytes_per_second > 0)
        transfer = plan->spilled_bytes / (plan->disks.bytes_per_second * plan->n_dirs);
    double at_once = fmin(plan->disks.parallel, plan->n_dirs * plan->n_lanes);
    double seeks = plan->n_seeks * plan->disks.seek_seconds / fmax(1, at_once);
    if (!plan->disks.slow_to_seek) seeks = 0;
    /* Reading, CPU work and writing of temporary data overlap. */
    plan->load_seconds = fmax(fmax(n * load / cores, n * t->read_seconds),
                              plan->compaction.compact ? 3 * transfer : transfer);
    plan->merge_seconds = fmax(n * fmax(merge / workers, (merge + copies) / cores),
                               transfer + seeks);
}

void planner_estimate(struct plan *plan)
{
    const struct sort_settings *s = plan->settings;
    const struct plan_traits *t = &plan->traits;
    double n_bytes = (double)plan->expected_bytes;
    struct plan_cost outputs = cost_of_output(plan, s->output_format.kind, t->deflate, s->level);
    plan->n_runs = plan->run_bytes = plan->n_files = plan->read_bytes = 0;
    plan->n_seeks = plan->spilled_bytes = plan->needed_bytes = plan->also_bytes = 0;
    plan->compaction.compact = false;
    plan->output_bytes = n_bytes * outputs.ratio;
    if (s->also) {
        struct plan_cost also = cost_of_output(plan, s->also_format.kind, t->usual, -1);
        plan->also_bytes = n_bytes * also.ratio;
        outputs.ratio += also.ratio;
        outputs.seconds += also.seconds;
    }
    plan_runs(plan);
    if (!plan->in_memory) plan_temporary_data(plan);
    double read_ends_bytes = n_bytes * t->read_ends_ratio;
    plan->read_ends_bytes =
        read_ends_bytes > (double)plan->read_ends_memory_bytes ? read_ends_bytes : 0;
    plan->needed_bytes += plan->read_ends_bytes;
    plan_times(plan, outputs);
}

/* ---- disks and space ---- */

void planner_set_disks(struct plan *plan, const struct run_store_disks *disks, unsigned n_dirs,
                       unsigned n_lanes)
{
    plan->disks = *disks;
    plan->n_dirs = n_dirs;
    plan->n_lanes = n_lanes;
    if (disks->slow_to_seek) memory_budget_lengthen_runs(&plan->budget);
    plan->exceeds_memory =
        store_layout_exceeds_memory(sort_expects(plan), memory_budget_scan_bytes(&plan->budget));
    plan->most_files = store_layout_most_files(n_dirs * n_lanes);
}

static bool is_on(const struct disk_space *a, const struct disk_space *b)
{
    return a->known && b->known && a->device == b->device;
}

void planner_look_at_space(struct plan *plan, const char *const *dirs, size_t n_dirs,
                           const char *output, const char *also)
{
    struct disk_space space, earlier;
    uint64_t free_bytes = 0;
    if (output) (void)disk_space_look(output, &plan->output);
    if (also) (void)disk_space_look(also, &plan->also);
    for (size_t i = 0; i < n_dirs; i++) {
        bool is_new = disk_space_look(dirs[i], &space);
        for (size_t k = 0; k < i && is_new; k++)
            is_new = !disk_space_look(dirs[k], &earlier) || !is_on(&earlier, &space);
        if (is_new) free_bytes += space.free_bytes;
        if (is_new && !plan->temporary.known) plan->temporary = space;
        if (is_on(&plan->output, &space)) plan->output_shares = true;
        if (is_on(&plan->also, &space)) plan->also_shares = true;
    }
    plan->temporary.free_bytes = free_bytes;
}

/* Writes a text and returns 1 if less than n_bytes are free; else returns 0. */
static size_t compare(const char *what, double n_bytes, const struct disk_space *space,
                      const char *advice, char text[PLAN_TEXT_BYTES])
{
    char needed[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES];
    if (!space->known || n_bytes <= (double)space->free_bytes) return 0;
    (void)snprintf(text, PLAN_TEXT_BYTES, "%s will need about %s, but file system '%s' has %s "
                   "free; %s", what, size_format((uint64_t)n_bytes, needed), space->mount,
                   size_format(space->free_bytes, has), advice);
    return 1;
}

size_t planner_compare_space(const struct plan *plan, char (*texts)[PLAN_TEXT_BYTES])
{
    static const char free_some[] = "free space there";
    double temporary = plan->needed_bytes, output = plan->output_bytes, also = plan->also_bytes;
    size_t n = 0;
    if (!plan->size_is_known) output = also = 0;
    if (is_on(&plan->also, &plan->output)) {
        output += also;
        also = 0;
    }
    if (also > 0)
        n = compare("the output of --also", also + (plan->also_shares ? temporary : 0),
                    &plan->also, free_some, texts[0]);
    bool shares = plan->output_shares;
    if (temporary > 0 &&
        compare(shares ? "temporary data and output" : "temporary data",
                temporary + (shares ? output : 0), &plan->temporary,
                "choose other places with -T", texts[n]) > 0) {
        n++;
        if (shares) return n;
    }
    return n + compare("the output", output, &plan->output, free_some, texts[n]);
}

/* ---- a sample of the records ---- */

enum {
    SAMPLE_BYTES = 4 << 20,     /* 12,000 short reads: ratios within a few percent */
    SAMPLE_PARTS = 8,           /* parts of the sample, spread over a sort buffer */
};

/* CPU time, which does not depend on the load of the machine. */
static const double most_deflate_seconds = 0.05;

/* Copies records spread over a sorted sort buffer to `sample`, and returns their bytes. */
static size_t take_sample(const struct sort_buffer *buffer, uint8_t *sample)
{
    size_t n_bytes = 0, n = buffer->n_records, each = SAMPLE_BYTES / SAMPLE_PARTS;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *rec = sort_entry_record(buffer->rules->order, &buffer->entries[i]);
        size_t size = bam_record_bytes(rec), room = (i * SAMPLE_PARTS / n + 1) * each - n_bytes;
        if (size > room) continue;
        memcpy(sample + n_bytes, rec, size);
        n_bytes += size;
    }
    return n_bytes;
}

/* Compresses the sample in blocks with one codec. */
static int measure_codec(enum temp_codec codec, size_t block_bytes, const uint8_t *sample,
                         size_t n_bytes, double *ratio)
{
    struct temp_coder coder = {0};
    size_t room = temp_codec_bound(codec, block_bytes), packed_bytes = 0;
    uint8_t *packed = xmalloc(room);
    ssize_t n = 0;
    for (size_t at = 0; at < n_bytes && n >= 0; at += block_bytes) {
        size_t n_raw = n_bytes - at < block_bytes ? n_bytes - at : block_bytes;
        n = temp_codec_compress(&coder, codec, sample + at, n_raw, packed, room);
        packed_bytes += n < 0 ? 0 : (size_t)n;
    }
    *ratio = (double)packed_bytes / (double)n_bytes;
    free(packed);
    temp_coder_release(&coder);
    return n < 0 ? -1 : 0;
}

/* Deflates as much of the sample as the time allows. */
static int measure_deflate(struct bgzf_method method, const uint8_t *sample, size_t n_bytes,
                           struct plan_cost *cost)
{
    struct bgzf_coder coder = {0};
    uint8_t *block = xmalloc(BGZF_MAX_BYTES);
    size_t at = 0, deflated_bytes = 0;
    double start = thread_cpu_seconds(), seconds = 0;
    ssize_t n = 0;
    while (at < n_bytes && n >= 0 && seconds <= most_deflate_seconds) {
        size_t n_raw = n_bytes - at < BGZF_PAYLOAD_BYTES ? n_bytes - at : BGZF_PAYLOAD_BYTES;
        n = bgzf_block_deflate(&coder, method, sample + at, n_raw, block);
        deflated_bytes += n < 0 ? 0 : (size_t)n;
        at += n_raw;
        seconds = thread_cpu_seconds() - start;
    }
    *cost = (struct plan_cost){(double)deflated_bytes / (double)at, seconds / (double)at};
    free(block);
    bgzf_coder_release(&coder);
    return n < 0 ? -1 : 0;
}

/* Measures the read ends of the sample. Read groups hardly change their size. */
static double measure_ends(const struct plan *plan, const uint8_t *sample, size_t n_bytes)
{
    struct markdup_rules rules = plan->settings->markdup_rules;
    struct bam_walk walk = {.at = sample, .end = sample + n_bytes};
    struct read_ends_gather gather = {0};
    struct record_read_ends all_ends;
    const struct temp_places nowhere = {.n_prefixes = 0};
    struct tape_set *tapes = tape_set_create(READ_ENDS_N_STREAMS, 2 * SAMPLE_BYTES, &nowhere);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const uint8_t *begin = sample;
    uint32_t index = 0;
    rules.use_read_groups = rules.use_libraries = false;
    for (const uint8_t *rec; (rec = bam_walk_next(&walk)) != NULL; index++) {
        if (read_ends_make(&rules, rec, &all_ends)) continue;
        for (unsigned i = 0; i < all_ends.n; i++) {
            all_ends.ends[i].ordinal = all_ends.ends[i].index = index;
            read_ends_gather_add(&gather, &all_ends.ends[i]);
        }
        size_t n_passed = (size_t)(walk.at - begin);
        if (gather.n < READ_ENDS_GATHER_ENOUGH && n_passed < plan->budget.spill_chunk_bytes)
            continue;
        (void)read_ends_gather_end(&gather, 0, tapes, &lock);
        begin = walk.at;
    }
    (void)read_ends_gather_end(&gather, 0, tapes, &lock);
    read_ends_gather_release(&gather);
    double ratio = (double)tape_set_all_bytes(tapes) / (double)n_bytes;
    tape_set_destroy(tapes);
    return ratio;
}

/* Measures what a full sort buffer holds. */
static void measure_buffers(struct plan *plan, struct sort_buffer *const *buffers, size_t n)
{
    size_t n_full = n > 1 ? n - 1 : 1;
    double raw_bytes = 0, used_bytes = 0, memory = 0;
    for (size_t i = 0; i < n_full; i++) {
        raw_bytes += (double)buffers[i]->raw_bytes;
        used_bytes += (double)sort_buffer_used_bytes(buffers[i]);
        memory += (double)buffers[i]->mem_bytes;
    }
    plan->traits.memory_ratio = used_bytes / raw_bytes;
    plan->buffer_memory = fmax(memory / (double)n_full, (double)plan->budget.sort_buffer_bytes);
    if (n > 1) plan->buffer_raw_bytes = plan->buffer_memory * raw_bytes / memory;
}

bool planner_sample(struct plan *plan, struct sort_buffer *const *buffers, size_t n)
{
    struct plan_traits *t = &plan->traits;
    const struct bgzf_method usual = {.level = -1};
    unsigned n_runs =
        (unsigned)memory_budget_expect_runs(&plan->budget, plan->expected_bytes, 0, 0);
    size_t block_bytes = memory_budget_block_bytes(&plan->budget, n_runs / 2, n_runs);
    uint8_t *sample = xmalloc(SAMPLE_BYTES);
    size_t n_bytes = take_sample(buffers[0], sample);
    int r = n_bytes > 0 ? 0 : -1;
    measure_buffers(plan, buffers, n);
    for (int i = 0; r == 0 && i < TEMP_CODEC_COUNT; i++)
        r = measure_codec((enum temp_codec)i, block_bytes, sample, n_bytes, &t->pack_ratio[i]);
    if (r == 0 && plan->settings->markdup) t->read_ends_ratio = measure_ends(plan, sample, n_bytes);
    if (r == 0)
        r = measure_deflate(sort_settings_method(plan->settings), sample, n_bytes, &t->deflate);
    if (r == 0) r = measure_deflate(usual, sample, n_bytes, &t->usual);
    free(sample);
    return r == 0;
}

void planner_warn(struct plan *plan, struct sort_buffer *const *buffers, size_t n)
{
    char texts[PLAN_MOST_TEXTS][PLAN_TEXT_BYTES];
    /* An upper limit of temporary data, even if compacted; twice that of an output. */
    double most = 4 * 1.4 * (double)plan->expected_bytes;
    bool has_plenty = (!plan->temporary.known || (double)plan->temporary.free_bytes > most) &&
                      (!plan->output.known || (double)plan->output.free_bytes > most / 2) &&
                      (!plan->also.known || (double)plan->also.free_bytes > most / 2);
    if (n == 0 || has_plenty || !planner_sample(plan, buffers, n)) return;
    planner_estimate(plan);
    size_t n_texts = planner_compare_space(plan, texts);
    for (size_t i = 0; i < n_texts; i++) diag_warning("%s", texts[i]);
}
