/*
 * estimate.c -- see estimate.h.
 *
 * The number of runs follows spill_policy.h: full batches are counted, a run is made of the oldest
 * of them whenever enough wait, and those that wait when the input ends stay in memory if they fit
 * there beside what the merge needs.
 */
#include "pipeline/estimate.h"

#include "bam/bgzf_block.h"
#include "pipeline/spill_policy.h"

#include <math.h>

/* So many bytes of a batch hold no whole records: the gap for the beginning of a record, and what
   the end keeps free (batch.c). */
enum { GAP_BYTES = 4096 + 1024 };

/* The kernel takes so many seconds to copy a byte to the output, and to or from temporary files.
   The sample does not measure this. The figures are from the phases of --stats. */
static const double write_seconds = 0.8e-9, temp_copy_seconds = 0.4e-9;

/* A block takes so many seconds besides those for its bytes. This was measured with 340 runs in 8
   MiB, whose blocks have 3 KiB, against 22 runs in 64 MiB. */
static const double block_load_seconds = 6e-6, block_merge_seconds = 17e-6;

/* Reading and writing have threads of their own. Some threads end later than others. */
static const double cores_besides_workers = 0.25, cpu_efficiency = 0.92;

/* CRAM takes so much of the space of BAM with the same records, at the usual level. (2 GB of reads
   of 150 bp took 0.27 to 0.31 of their size as BAM, and 0.1 as CRAM.) */
static const double cram_ratio = 0.35;

enum { MOST_RUNS = 100000 };    /* beyond it the blocks of runs get no smaller */

static double at_most(double value, double most)
{
    return value < most ? value : most;
}

void estimate_usual_traits(struct record_traits *traits)
{
    /* Measured with reads of 150 bp of bench/simulate-reads, on an AMD EPYC (Zen 3) with
       libdeflate 1.14. */
    *traits = (struct record_traits){
        .memory_ratio = 1.05,
        .memory_at_worst = 1.5,
        .decode_seconds = 2.0e-9,
        .sort_seconds = 0.3e-9,
        .gather_seconds = 1.0e-9,       /* into memory that is touched for the first time */
        .deflate_seconds = 25e-9,
        .usual_seconds = 25e-9,
        .deflate_ratio = 0.31,
        .usual_ratio = 0.31,
        .pack_seconds = {0.1e-9, 2.0e-9, 1.3e-9, 3.0e-9},
        .unpack_seconds = {0, 1.2e-9, 0.38e-9, 1.0e-9},
        .pack_ratio = {1, 0.46, 0.50, 0.33},
    };
}

static unsigned at_most_runs(uint64_t n_runs)
{
    return n_runs < MOST_RUNS ? (unsigned)n_runs : MOST_RUNS;
}

/* The size that the sort is told or sees; 0: unknown. */
static uint64_t sort_expects(const struct estimate_facts *facts)
{
    if (facts->said_bytes > 0) return facts->said_bytes;
    return facts->size_is_known ? facts->expected_bytes : 0;
}

/* What is known about each database before the first run. */
static struct compaction_facts database_facts(const struct estimate_facts *facts)
{
    const struct mem_budget *budget = &facts->budget;
    const struct compaction_totals totals = {
        .mode = facts->compaction,
        .n_runs_expected = mem_budget_expect_runs(budget, sort_expects(facts), 0, 0),
        .n_dirs = facts->n_dirs,
        .n_lanes = facts->n_lanes,
        .slow_to_seek = facts->disks.slow_to_seek,
        .exceeds_memory = facts->exceeds_memory,
        .scan_bytes = mem_budget_scan_bytes(budget),
        .compaction_bytes = mem_budget_compaction_bytes(budget),
        .most_files = facts->most_files,
    };
    return compaction_share(&totals);
}

/* How many files each of n_runs becomes. */
static unsigned run_files(const struct estimate_facts *facts, uint64_t run_bytes, uint64_t n_runs)
{
    const struct compaction_facts of_one = database_facts(facts);
    unsigned most = facts->n_dirs * facts->n_lanes * compaction_most_run_files(&of_one);
    return mem_budget_run_files(&facts->budget, run_bytes, n_runs, most);
}

/* Returns the memory for batches that may be kept while n_runs of run_bytes are merged and their
   files are read ahead. */
static double kept_bytes(const struct estimate_facts *facts, uint64_t run_bytes, uint64_t n_runs)
{
    const struct mem_budget *budget = &facts->budget;
    double open_bytes = 0;
    unsigned n = at_most_runs(n_runs), n_files = run_files(facts, run_bytes, n_runs);
    for (unsigned i = 0; i < n; i++)
        open_bytes += (double)mem_budget_block_bytes(budget, i * n_files, n * n_files) *
                      (n_files + 1) / 2;
    if (open_bytes > (double)budget->total_bytes) return 0;
    size_t scan_bytes = 0;
    if (facts->disks.slow_to_seek && n > 0) {
        size_t read_bytes = scan_read_bytes(n, mem_budget_scan_bytes(budget),
                                            facts->exceeds_memory);
        scan_bytes = read_bytes > 0 ? n * (read_bytes + SCAN_FILE_BYTES) : 0;
    }
    return (double)spill_policy_kept_bytes(budget, (size_t)open_bytes, scan_bytes);
}

/*
 * Returns the raw bytes in a full batch. A batch is closed when it has no room for another BGZF
 * block, whatever records the block may hold. What was claimed but is not indexed yet, which is in
 * the pieces on their way, counts at its worst, too. In small batches that is most of it.
 */
static double batch_raw_bytes(const struct estimate_facts *facts)
{
    const struct mem_budget *budget = &facts->budget;
    const struct record_traits *t = &facts->traits;
    if (facts->batch_raw_bytes > 0) return facts->batch_raw_bytes;
    double lag = (double)budget->n_pieces * (double)budget->piece_bytes, worst = t->memory_at_worst;
    if (!t->by_blocks)
        lag = (double)budget->n_threads *
              (double)(t->is_text ? budget->text_bytes : budget->piece_bytes);
    double room = (double)budget->batch_bytes - GAP_BYTES;
    if (t->by_blocks) room -= worst * BGZF_MAX_BYTES;
    if (room < 0) room = 0;
    double n = room < lag * worst ? room / worst : lag + (room - lag * worst) / t->memory_ratio;
    return t->by_blocks ? (floor(n / BGZF_PAYLOAD_BYTES) + 1) * BGZF_PAYLOAD_BYTES : n;
}

struct batch_shape {
    double raw_bytes;           /* in a full batch */
    double run_batches;         /* that make a run */
};

/*
 * What batches are like. If a record does not fit, its batch gets memory of its own, which has room
 * for one to four such records, at their worst (load.c). Then fewer batches fill the memory.
 */
static struct batch_shape shape_batches(const struct estimate_facts *facts)
{
    const struct mem_budget *budget = &facts->budget;
    const struct record_traits *t = &facts->traits;
    unsigned run_batches = (unsigned)spill_policy_run_batches(budget, budget->n_batches);
    struct batch_shape shape = {batch_raw_bytes(facts), run_batches};
    if (facts->batch_raw_bytes > 0 || t->record_bytes <= shape.raw_bytes) return shape;
    double all = (double)budget->batch_bytes * budget->n_batches;
    double room = fmax(t->record_bytes + 2 * BGZF_MAX_BYTES, at_most(all / 8, 4 * t->record_bytes));
    double memory = room * t->memory_at_worst;
    shape.raw_bytes = t->record_bytes;
    while ((memory - shape.raw_bytes * t->memory_ratio) / t->memory_at_worst > t->record_bytes)
        shape.raw_bytes += t->record_bytes;
    /* One more is being filled. */
    shape.run_batches = fmax(1, at_most(run_batches, floor(all / memory) - 1));
    return shape;
}

static void plan_runs(const struct estimate_facts *facts, struct estimate *plan)
{
    const struct mem_budget *budget = &facts->budget;
    const struct batch_shape shape = shape_batches(facts);
    double batch_bytes = (double)budget->batch_bytes;
    double used_bytes = (double)facts->expected_bytes * facts->traits.memory_ratio;
    double n_batches = ceil((double)facts->expected_bytes / shape.raw_bytes);
    size_t first_run_at = spill_policy_threshold(budget, false,
                                                 facts->size_is_known ? facts->expected_bytes : 0);
    plan->in_memory = n_batches <= (double)first_run_at && used_bytes <= kept_bytes(facts, 0, 0);
    if (plan->in_memory) return;
    double run_batches = shape.run_batches;
    plan->run_bytes = (uint64_t)(shape.raw_bytes * run_batches);
    /* The number of batches that wait when the input ends depends on when the last run began. */
    double waiting = (double)spill_policy_threshold(budget, true, 0) - 0.5 * run_batches;
    plan->n_runs = 1;
    for (int i = 0; i < 3; i++) {
        double fit = kept_bytes(facts, plan->run_bytes, plan->n_runs) / batch_bytes;
        double kept = at_most(waiting, fit);
        double n_runs = ceil((n_batches - kept) / run_batches);
        plan->n_runs = n_runs > 1 ? (uint64_t)n_runs : 1;
    }
}

static void plan_compaction(const struct estimate_facts *facts, struct estimate *plan)
{
    struct compaction_facts of_one = database_facts(facts);
    unsigned width = compaction_width(&of_one);
    uint64_t n_expected =
        mem_budget_expect_runs(&facts->budget, sort_expects(facts), 1, plan->run_bytes);
    uint64_t n_files = plan->n_runs * run_files(facts, plan->run_bytes, plan->n_runs);
    of_one.n_runs = n_files / plan->n_databases;
    of_one.n_runs_expected = n_expected * of_one.n_runs / plan->n_runs;
    of_one.seek_seconds = facts->disks.seek_seconds;
    of_one.bytes_per_second = facts->disks.bytes_per_second;
    of_one.parallel = facts->disks.parallel;
    plan->compaction = compaction_decide(&of_one, width);
    plan->n_files = n_files;
    if (plan->compaction.compact)
        plan->n_files = (uint64_t)plan->compaction.max_files * plan->n_databases;
    if (plan->n_files > n_files) plan->n_files = n_files;
}

static void plan_codec(const struct estimate_facts *facts, struct estimate *plan)
{
    plan->codec = facts->codec;
    plan->codec_reason = CODEC_ASKED_FOR;
    if (facts->codec_auto)
        plan->codec = codec_choose(&facts->disks, facts->budget.n_threads, facts->expected_bytes,
                                   &plan->codec_reason);
}

static void plan_space(const struct estimate_facts *facts, struct estimate *plan)
{
    double spilled = at_most((double)plan->n_runs * (double)plan->run_bytes,
                             (double)facts->expected_bytes);
    plan->temp_bytes = spilled * facts->traits.pack_ratio[plan->codec];
    /* A compaction writes its result before it removes what went into it. One may be under way in
       every database, and the last ones are the largest. */
    double copies = plan->compaction.compact ? 2 : 1;
    plan->needed_bytes = copies * plan->temp_bytes;
    if (facts->disks.slow_to_seek)
        plan->read_bytes = scan_read_bytes(plan->n_files, mem_budget_scan_bytes(&facts->budget),
                                           facts->exceeds_memory);
    plan->n_seeks = scan_seeks(plan->temp_bytes, plan->read_bytes);
}

/* Views, and the records of a large template, go to files of their own. */
static void plan_other_files(const struct estimate_facts *facts, struct estimate *plan)
{
    double view_bytes = (double)facts->expected_bytes * facts->traits.view_ratio;
    if (view_bytes > (double)facts->view_memory_bytes) plan->view_bytes = view_bytes;
    plan->template_bytes = (double)facts->large_template_bytes;
    plan->needed_bytes += plan->view_bytes + plan->template_bytes;
}

/* Returns the seconds in which the disk moves the temporary data once. */
static double transfer_seconds(const struct estimate_facts *facts, const struct estimate *plan)
{
    if (facts->disks.bytes_per_second <= 0) return 0;
    return plan->temp_bytes / (facts->disks.bytes_per_second * facts->n_dirs);
}

/* What an output takes for each raw byte. */
struct output_cost {
    double ratio;               /* bytes */
    double seconds;             /* of one core */
};

/* Columns that are compressed against BAM at the default level, and others against raw bytes. 1.5
   million real reads of 139 bp, 300,000 simulated ones of 150 bp and long ones: Parquet was 0.80, 0.84
   and 1.02 times as large as BAM, Arrow 1.94, 1.97 and 1.75, with zstd 1.20, 1.14 and 1.02; without
   compression Arrow took 1.38, 1.40 and 1.16 of the raw bytes, and Parquet 1.09, 1.04 and 1.16. */
static struct output_cost cost_of_columns(const struct record_traits *t,
                                          const struct estimate_output *output)
{
    bool is_parquet = output->kind == OUTPUT_PARQUET;
    double size = is_parquet ? 0.85 : output->level > 1 ? 1.2 : 1.95;
    double time = is_parquet ? 0.25 : output->level > 1 ? 0.3 : 0.16;
    if (output->level == 0) return (struct output_cost){is_parquet ? 1.1 : 1.4, 2e-9};
    return (struct output_cost){size * t->usual_ratio, time * t->usual_seconds};
}

static struct output_cost cost_of_output(const struct estimate_facts *facts, unsigned number)
{
    const struct record_traits *t = &facts->traits;
    const struct estimate_output *output = &facts->outputs[number];
    struct output_cost bam = {t->usual_ratio, t->usual_seconds};
    if (number == 0) bam = (struct output_cost){t->deflate_ratio, t->deflate_seconds};
    switch (output->kind) {
    /* SAM without compression takes about as many bytes as BAM without. */
    case OUTPUT_SAM: return (struct output_cost){1, bam.seconds};
    case OUTPUT_CRAM: return (struct output_cost){bam.ratio * cram_ratio, bam.seconds};
    case OUTPUT_ARROW:
    case OUTPUT_ARROW_STREAM:
    case OUTPUT_PARQUET: return cost_of_columns(t, output);
    default: return bam;
    }
}

/* Of all outputs together. */
static struct output_cost cost_of_outputs(const struct estimate_facts *facts)
{
    struct output_cost all = {0, 0};
    for (unsigned i = 0; i < facts->n_outputs; i++) {
        struct output_cost one = cost_of_output(facts, i);
        all.ratio += one.ratio;
        all.seconds += one.seconds;
    }
    return all;
}

static void plan_times(const struct estimate_facts *facts, struct estimate *plan)
{
    const struct record_traits *t = &facts->traits;
    double n = (double)facts->expected_bytes;
    double share = plan->in_memory ? 0
                   : at_most((double)plan->n_runs * (double)plan->run_bytes / n, 1);
    double usable = fmax(1, facts->n_cpus * cpu_efficiency);
    double workers = at_most(facts->budget.n_threads, usable);
    double cores = at_most(facts->budget.n_threads + cores_besides_workers, usable);
    double temp_copy = t->pack_ratio[plan->codec] * temp_copy_seconds;
    unsigned n_files =
        at_most_runs(plan->n_runs) * run_files(facts, plan->run_bytes, plan->n_runs);
    double block = (double)mem_budget_block_bytes(&facts->budget, n_files / 2, n_files);
    double load = t->decode_seconds + t->sort_seconds +
                  share * (t->gather_seconds + t->pack_seconds[plan->codec] + temp_copy +
                           block_load_seconds / block);
    double output_seconds = cost_of_outputs(facts).seconds;
    double merge = t->gather_seconds + output_seconds +
                   share * (t->unpack_seconds[plan->codec] + block_merge_seconds / block);
    double copies = cost_of_outputs(facts).ratio * write_seconds + share * temp_copy;
    double transfer = transfer_seconds(facts, plan);
    double at_once = at_most(facts->disks.parallel, plan->n_databases);
    double seeks = plan->n_seeks * facts->disks.seek_seconds / fmax(1, at_once);
    if (!facts->disks.slow_to_seek) seeks = 0;
    /* Reading, working and the temporary disk go on at the same time. */
    plan->load_seconds = fmax(fmax(n * load / cores, n * t->read_seconds),
                              plan->compaction.compact ? 3 * transfer : transfer);
    plan->merge_seconds = fmax(n * fmax(merge / workers, (merge + copies) / cores),
                               transfer + seeks);
}

bool estimate_needs_usual(const struct estimate_output *outputs, unsigned n_outputs)
{
    enum output_kind kind = outputs[0].kind;
    return n_outputs > 1 || kind == OUTPUT_ARROW || kind == OUTPUT_ARROW_STREAM ||
           kind == OUTPUT_PARQUET;
}

void estimate_make(const struct estimate_facts *facts, struct estimate *plan)
{
    double n_bytes = (double)facts->expected_bytes;
    *plan = (struct estimate){.output_bytes = n_bytes * cost_of_output(facts, 0).ratio};
    if (facts->n_outputs > 1) plan->also_bytes = n_bytes * cost_of_output(facts, 1).ratio;
    plan_runs(facts, plan);
    if (!plan->in_memory) {
        plan->n_databases = facts->n_dirs * facts->n_lanes;
        plan_codec(facts, plan);
        plan_compaction(facts, plan);
        plan_space(facts, plan);
    }
    plan_other_files(facts, plan);
    plan_times(facts, plan);
}
