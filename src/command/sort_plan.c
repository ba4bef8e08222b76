/*
 * sort_plan.c -- see sort_plan.h.
 *
 * The number of runs follows the spiller's rules (spill.c): batches are counted as they
 * fill, a run is made of run_batches of them whenever full_batches wait, and what waits at the end
 * stays in memory if it fits there beside what the merge needs.
 */
#include "command/sort_plan.h"

#include "bam/bgzf_block.h"

#include <math.h>

/* Of a batch, for the beginning of a record, and what the end keeps free; batch.c. */
enum { GAP_BYTES = 4096 + 1024 };

/*
 * What no step of the sample tells, from the phases of --stats: the kernel takes about so long for
 * each byte that it copies to the output, and to or from temporary files.
 */
static const double write_seconds = 0.8e-9, temp_copy_seconds = 0.4e-9;

/* What a block takes besides its bytes: 340 runs in 8 MiB, in blocks of 3 KiB, against 22 in 64. */
static const double block_load_seconds = 6e-6, block_merge_seconds = 17e-6;

/* Reading and writing are threads of their own; and some threads end later than others. */
static const double cores_besides_workers = 0.25, cpu_efficiency = 0.92;

static double at_most(double value, double most)
{
    return value < most ? value : most;
}

void sort_plan_usual_sample(struct plan_sample *sample)
{
    /* bench/simulate-reads, 150 bp, on an AMD EPYC (Zen 3) with libdeflate 1.14. */
    *sample = (struct plan_sample){
        .format = "unknown",
        .memory_ratio = 1.05,
        .memory_at_worst = 1.5,
        .decode_seconds = 2.0e-9,
        .sort_seconds = 0.3e-9,
        .gather_seconds = 1.0e-9,       /* into memory that is touched for the first time */
        .deflate_seconds = 25e-9,
        .deflate_ratio = 0.31,
        .pack_seconds = {0.1e-9, 2.0e-9, 1.3e-9, 3.0e-9},
        .unpack_seconds = {0, 1.2e-9, 0.38e-9, 1.0e-9},
        .pack_ratio = {1, 0.46, 0.50, 0.33},
    };
}

/* Memory for batches that may be kept while runs are merged. */
static double kept_bytes(const struct mem_budget *budget, uint64_t n_runs)
{
    double open_bytes = 0;
    unsigned n = n_runs < 100000 ? (unsigned)n_runs : 100000;
    for (unsigned i = 0; i < n; i++) open_bytes += (double)mem_budget_block_bytes(budget, i, n);
    double merge = (double)mem_budget_merge_bytes(budget, 0) + 2 * open_bytes;
    double total = (double)budget->total_bytes;
    return total > merge ? total - merge : 0;
}

/*
 * Raw bytes that a batch takes. It is closed when there is no room for another BGZF block, whatever
 * records this may hold; what was claimed but is not indexed yet counts at its worst, too: the
 * pieces on their way. In small batches that is most of it.
 */
static double batch_raw_bytes(const struct sort_plan_facts *facts)
{
    const struct mem_budget *budget = &facts->budget;
    const struct plan_sample *s = &facts->sample;
    double lag = (double)budget->n_pieces * (double)budget->piece_bytes, worst = s->memory_at_worst;
    if (!s->by_blocks)
        lag = (double)budget->n_threads *
              (double)(s->is_text ? budget->text_bytes : budget->piece_bytes);
    double room = (double)budget->batch_bytes - GAP_BYTES;
    if (s->by_blocks) room -= worst * BGZF_MAX_BYTES;
    if (room < 0) room = 0;
    double n = room < lag * worst ? room / worst : lag + (room - lag * worst) / s->memory_ratio;
    return s->by_blocks ? (floor(n / BGZF_PAYLOAD_BYTES) + 1) * BGZF_PAYLOAD_BYTES : n;
}

static void plan_runs(const struct sort_plan_facts *facts, struct sort_plan *plan)
{
    const struct mem_budget *budget = &facts->budget;
    double batch_bytes = (double)budget->batch_bytes, batch_raw = batch_raw_bytes(facts);
    double used_bytes = (double)facts->expected_bytes * facts->sample.memory_ratio;
    double n_batches = ceil((double)facts->expected_bytes / batch_raw);
    bool may_fit = facts->size_is_known && facts->expected_bytes < budget->total_bytes;
    double crowd = may_fit ? budget->first_full_batches : budget->full_batches;
    plan->in_memory = n_batches <= crowd && used_bytes <= kept_bytes(budget, 0);
    if (plan->in_memory) return;
    plan->run_bytes = (uint64_t)(batch_raw * budget->run_batches);
    /* How many batches wait when the input ends depends on when the last run was begun. */
    double waiting = budget->full_batches - 0.5 * budget->run_batches;
    plan->n_runs = 1;
    for (int i = 0; i < 3; i++) {
        double kept = at_most(waiting, kept_bytes(budget, plan->n_runs) / batch_bytes);
        double n_runs = ceil((n_batches - kept) / budget->run_batches);
        plan->n_runs = n_runs > 1 ? (uint64_t)n_runs : 1;
    }
}

static void plan_compaction(const struct sort_plan_facts *facts, struct sort_plan *plan)
{
    const struct mem_budget *budget = &facts->budget;
    uint64_t n_expected = facts->size_is_known ? plan->n_runs : 0;
    if (facts->said_bytes > 0) n_expected = facts->said_bytes / plan->run_bytes + 1;
    /* As run_store.c has it: of each database. */
    struct compaction_facts of_one = {
        .mode = facts->compaction,
        .n_runs = plan->n_runs / plan->n_databases,
        .n_runs_expected = n_expected / plan->n_databases,
        .seek_seconds = facts->seek_seconds,
        .bytes_per_second = facts->bytes_per_second,
        .parallel = facts->parallel,
        .n_scans = plan->n_databases,
        .scan_bytes = mem_budget_scan_bytes(budget) / plan->n_databases,
        .direct = facts->slow_to_seek && facts->exceeds_memory,
        .compaction_bytes = mem_budget_compaction_bytes(budget) / (facts->n_lanes > 1 ? 2 : 1),
        .reads_ahead = facts->slow_to_seek || facts->compaction == COMPACTION_ON,
        .most_files = facts->most_files / plan->n_databases,
    };
    plan->compaction_width = compaction_width(&of_one);
    plan->compaction = compaction_decide(&of_one, plan->compaction_width);
    plan->n_files = plan->n_runs;
    if (plan->compaction.compact)
        plan->n_files = (uint64_t)plan->compaction.max_files * plan->n_databases;
    if (plan->n_files > plan->n_runs) plan->n_files = plan->n_runs;
}

static void plan_codec(const struct sort_plan_facts *facts, struct sort_plan *plan)
{
    double spilled = (double)plan->n_runs * (double)plan->run_bytes;
    struct codec_facts at_first = {
        .in_memory = facts->in_memory,
        .slow_to_seek = facts->slow_to_seek,
        .bytes_per_second = facts->bytes_per_second,
        .n_threads = facts->budget.n_threads,
        .free_bytes = (double)facts->free_bytes,
        .raw_bytes_left = spilled,
    };
    plan->codec = facts->codec;
    plan->codec_reason = CODEC_ASKED_FOR;
    if (!facts->codec_auto) return;
    plan->codec = codec_choose(&at_first, &plan->codec_reason);
    if (plan->codec != TEMP_CODEC_LZ4) return;
    /* What it would say if the disk took the first runs without delay, and workers were busy. */
    struct codec_facts later = at_first;
    enum codec_reason reason;
    later.codec = plan->codec;
    later.seconds = 1;
    later.worker_seconds = at_first.n_threads;  /* busy all the time */
    later.stored_ratio = facts->sample.pack_ratio[plan->codec];
    plan->codec_may_change = codec_choose(&later, &reason) == TEMP_CODEC_NONE;
}

static void plan_space(const struct sort_plan_facts *facts, struct sort_plan *plan)
{
    double spilled = at_most((double)plan->n_runs * (double)plan->run_bytes,
                             (double)facts->expected_bytes);
    plan->temp_bytes = spilled * facts->sample.pack_ratio[plan->codec];
    plan->space_bytes = plan->codec_may_change ? spilled : plan->temp_bytes;
    /* A compaction has written its result before it removes what went into it: of every database
       one may be under way, and the last ones are the largest. */
    if (plan->compaction.compact) plan->space_bytes *= 2;
    size_t least = KERNEL_READ_BYTES;
    if (facts->slow_to_seek)
        plan->read_bytes = scan_read_bytes(plan->n_files, mem_budget_scan_bytes(&facts->budget),
                                           facts->exceeds_memory);
    plan->n_seeks = plan->temp_bytes / (double)(plan->read_bytes ? plan->read_bytes : least);
}

/* Seconds in which the disk moves the temporary data once. */
static double transfer_seconds(const struct sort_plan_facts *facts, const struct sort_plan *plan)
{
    if (facts->bytes_per_second <= 0) return 0;
    return plan->temp_bytes / (facts->bytes_per_second * facts->n_dirs);
}

static void plan_times(const struct sort_plan_facts *facts, struct sort_plan *plan)
{
    const struct plan_sample *s = &facts->sample;
    double n = (double)facts->expected_bytes;
    double share = plan->in_memory ? 0
                   : at_most((double)plan->n_runs * (double)plan->run_bytes / n, 1);
    double usable = fmax(1, facts->n_cpus * cpu_efficiency);
    double workers = at_most(facts->budget.n_threads, usable);
    double cores = at_most(facts->budget.n_threads + cores_besides_workers, usable);
    double temp_copy = s->pack_ratio[plan->codec] * temp_copy_seconds;
    unsigned n_runs = plan->n_runs < 100000 ? (unsigned)plan->n_runs : 100000;
    double block = (double)mem_budget_block_bytes(&facts->budget, n_runs / 2, n_runs);
    double load = s->decode_seconds + s->sort_seconds +
                  share * (s->gather_seconds + s->pack_seconds[plan->codec] + temp_copy +
                           block_load_seconds / block);
    double merge = s->gather_seconds + s->deflate_seconds +
                   share * (s->unpack_seconds[plan->codec] + block_merge_seconds / block);
    double copies = s->deflate_ratio * write_seconds + share * temp_copy;
    double transfer = transfer_seconds(facts, plan);
    double seeks = facts->slow_to_seek
                       ? plan->n_seeks * facts->seek_seconds /
                             (facts->parallel > 1 ? at_most(facts->parallel, plan->n_databases) : 1)
                       : 0;
    /* Reading, working and the temporary disk go on at the same time. */
    plan->load_seconds = fmax(fmax(n * load / cores, n * s->read_seconds),
                              plan->compaction.compact ? 3 * transfer : transfer);
    plan->merge_seconds = fmax(n * fmax(merge / workers, (merge + copies) / cores),
                               transfer + seeks);
}

void sort_plan_make(const struct sort_plan_facts *facts, struct sort_plan *plan)
{
    *plan = (struct sort_plan){0};
    plan->output_bytes = (double)facts->expected_bytes * facts->sample.deflate_ratio;
    plan_runs(facts, plan);
    if (!plan->in_memory) {
        plan->n_databases = facts->n_dirs * facts->n_lanes;
        plan_codec(facts, plan);
        plan_compaction(facts, plan);
        plan_space(facts, plan);
    }
    plan_times(facts, plan);
}
