/*
 * machine_fit.c -- see machine_fit.h.
 *
 * The variables, from the documentation of each system:
 *
 *   Slurm        SLURM_CPUS_PER_TASK if --cpus-per-task was given, else SLURM_CPUS_ON_NODE.
 *                SLURM_MEM_PER_NODE (--mem) or SLURM_MEM_PER_CPU (--mem-per-cpu) times
 *                SLURM_CPUS_ON_NODE, both in MB; 0 means all of the node.
 *   LSF          LSB_DJOB_NUMPROC, the slots of the job. LSB_MAX_NUM_PROCESSORS is the most
 *                requested, not what was granted.
 *   Grid Engine  NSLOTS. h_vmem becomes a limit of the process (ulimit -v).
 *   Torque       PBS_NUM_PPN, on each node.
 *   PBS          NCPUS, on this node. PBS, LSF and Torque do not report the memory, but put the
 *                job into a control group or set limits of the process.
 *   OpenMP       OMP_NUM_THREADS, the number of threads a program should use; used without a batch
 *                system, as in nproc of the GNU coreutils.
 *
 * The slots of LSF and Grid Engine may be on several nodes; then the affinity of the process limits
 * the threads.
 */
#define _GNU_SOURCE              /* sched_getaffinity */
#include "cli/machine_fit.h"

#include "os/memory.h"
#include "spill/memory_budget.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t mib = 1 << 20;

/* Minimum memory of a sort: less would hardly help other programs. */
static const uint64_t least_bytes = 64 << 20;

/* Address space that is reserved but never used: libraries, stacks and the heaps of threads. */
static const uint64_t address_bytes_unused = 256 << 20, thread_address_bytes = 16 << 20;

/* The number at the start of a text, if the end or a comma follows it; else 0. */
static uint64_t leading_number(const char *text)
{
    char *end;
    if (!text || *text < '0' || *text > '9') return 0;
    unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' || *end == ',' ? value : 0;
}

static const struct {
    const char *job;            /* variable set in all jobs of the system; NULL: also outside of
                                   jobs */
    const char *cpus;
} cpu_variables[] = {
    {"SLURM_JOB_ID", "SLURM_CPUS_PER_TASK"},
    {"SLURM_JOB_ID", "SLURM_CPUS_ON_NODE"},
    {"LSB_JOBID", "LSB_DJOB_NUMPROC"},
    {"JOB_ID", "NSLOTS"},
    {"PBS_JOBID", "PBS_NUM_PPN"},
    {"PBS_JOBID", "NCPUS"},
    {NULL, "OMP_NUM_THREADS"},
};

void machine_grant_read(struct machine_grant *grant)
{
    *grant = (struct machine_grant){0};
    size_t n = sizeof cpu_variables / sizeof *cpu_variables;
    for (size_t i = 0; i < n && grant->n_cpus == 0; i++) {
        if (cpu_variables[i].job && !getenv(cpu_variables[i].job)) continue;
        uint64_t value = leading_number(getenv(cpu_variables[i].cpus));
        grant->n_cpus = value < MACHINE_MAX_THREADS ? (unsigned)value : MACHINE_MAX_THREADS;
        grant->cpus_variable = cpu_variables[i].cpus;
    }
    if (grant->n_cpus == 0) grant->cpus_variable = NULL;
    if (!getenv("SLURM_JOB_ID")) return;
    uint64_t of_node = leading_number(getenv("SLURM_MEM_PER_NODE"));
    uint64_t of_cpu = leading_number(getenv("SLURM_MEM_PER_CPU"));
    uint64_t n_cpus = leading_number(getenv("SLURM_CPUS_ON_NODE"));
    if (n_cpus == 0) n_cpus = grant->n_cpus > 0 ? grant->n_cpus : 1;
    uint64_t n_mib = of_node > 0 ? of_node : of_cpu < UINT64_MAX / n_cpus ? of_cpu * n_cpus : 0;
    if (n_mib == 0 || n_mib > UINT64_MAX / mib) return;
    grant->bytes = n_mib * mib;
    grant->bytes_variable = of_node > 0 ? "SLURM_MEM_PER_NODE" : "SLURM_MEM_PER_CPU";
}

static bool cgroup_has_fewer(const struct machine_facts *facts)
{
    return facts->cgroup_cpus > 0 && facts->cgroup_cpus < facts->n_cpus;
}

unsigned machine_fit_cpus(const struct machine_facts *facts)
{
    if (!cgroup_has_fewer(facts)) return facts->n_cpus;
    return facts->cgroup_cpus < 1 ? 1 : (unsigned)facts->cgroup_cpus;
}

static void choose_threads(const struct machine_facts *facts, struct machine_fit *fit)
{
    unsigned n = facts->n_cpus > 0 ? machine_fit_cpus(facts) : 1;
    const char *source = facts->n_cpus == 0        ? "(unknown)"
                         : cgroup_has_fewer(facts) ? "of the control group"
                                                   : "that this process may run on";
    if (facts->grant.n_cpus > 0 && facts->grant.n_cpus < n) {
        n = facts->grant.n_cpus;
        source = facts->grant.cpus_variable;
    }
    if (n > MACHINE_MAX_THREADS) n = MACHINE_MAX_THREADS;
    unsigned n_left = facts->input_is_pipe ? n / 4 : 0;
    bool is_variable = facts->grant.cpus_variable == source;
    int used = snprintf(fit->threads_reason, sizeof fit->threads_reason, "%u CPU%s %s%s", n,
                        n == 1 ? "" : "s", is_variable ? "by " : "", source);
    if (n_left > 0 && used > 0 && (size_t)used < sizeof fit->threads_reason)
        (void)snprintf(fit->threads_reason + used, sizeof fit->threads_reason - (size_t)used,
                       ", less %u for the program that feeds the pipe", n_left);
    fit->n_threads = n - n_left;
}

struct memory_source {
    uint64_t bytes;
    unsigned quarters;          /* quarters of the bytes that the sort may use */
    const char *words;
};

/* A limit of address space minus the space that the process reserves but never uses. */
static uint64_t usable_addresses(uint64_t limit, unsigned n_threads)
{
    uint64_t unused = address_bytes_unused + thread_address_bytes * n_threads;
    if (limit == UINT64_MAX) return limit;
    return limit > unused ? limit - unused : 0;
}

static uint64_t share_of(const struct memory_source *source, bool input_is_pipe)
{
    return source->bytes / 4 * source->quarters / (input_is_pipe ? 2 : 1);
}

/* Finds the source with the lowest limit. Returns false if there is no limit. */
static bool find_least(const struct machine_facts *facts, const struct memory_source *sources,
                       size_t n, struct memory_source *least)
{
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        /* Control groups (v1) report a limit above the machine's memory if they have none. */
        if (sources[i].bytes >= facts->machine_bytes || sources[i].bytes == UINT64_MAX) continue;
        if (found && share_of(&sources[i], false) >= share_of(least, false)) continue;
        *least = sources[i];
        found = true;
    }
    return found;
}

static void choose_memory(const struct machine_facts *facts, struct machine_fit *fit)
{
    const struct machine_grant *grant = &facts->grant;
    const struct memory_source sources[] = {
        {facts->available_bytes, 2, "that the machine has free"},
        {facts->cgroup_bytes, 3, "that the control group has free"},
        {grant->bytes ? grant->bytes : UINT64_MAX, 3, grant->bytes_variable},
        {usable_addresses(facts->address_bytes, fit->n_threads), 3, "within ulimit -v and -d"},
    };
    struct memory_source least = {facts->machine_bytes, 2, "that the machine has"};
    bool found = find_least(facts, sources, sizeof sources / sizeof *sources, &least);
    bool input_is_pipe = facts->input_is_pipe;
    uint64_t usual = 768 * mib * fit->n_threads, best = share_of(&least, input_is_pipe);
    best = best > MEM_ALLOWANCE_BYTES ? best - MEM_ALLOWANCE_BYTES : 0;
    if (!found && usual <= best) {
        fit->memory_bytes = usual;
        (void)snprintf(fit->memory_reason, sizeof fit->memory_reason,
                       "768 MiB a thread, since it is not known how much memory is free");
        return;
    }
    if (best < least_bytes) best = least_bytes;
    fit->memory_bytes = best & ~(mib - 1);
    const char *share = least.quarters == 2 ? input_is_pipe ? "a quarter" : "half"
                        : input_is_pipe        ? "three eighths" : "three quarters";
    (void)snprintf(fit->memory_reason, sizeof fit->memory_reason,
                   "%s of the %" PRIu64 " MiB %s%s%s", share, least.bytes / mib,
                   least.words == grant->bytes_variable ? "by " : "", least.words,
                   input_is_pipe ? ", since another program feeds the pipe" : "");
}

void machine_fit_choose(const struct machine_facts *facts, struct machine_fit *fit)
{
    *fit = (struct machine_fit){0};
    choose_threads(facts, fit);
    choose_memory(facts, fit);
}

/* ---- the facts ---- */

/* CPUs that this process may run on. The kernel refuses a set that is too small for all CPUs, so
   tries larger sets. */
static unsigned count_cpus(void)
{
    for (size_t room = 1024; room <= 1 << 20; room *= 4) {
        cpu_set_t *set = CPU_ALLOC(room);
        if (!set) break;
        size_t n_bytes = CPU_ALLOC_SIZE(room);
        int n = sched_getaffinity(0, n_bytes, set) == 0 ? CPU_COUNT_S(n_bytes, set) : 0;
        CPU_FREE(set);
        if (n > 0) return (unsigned)n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 0;
}

static uint64_t limit_of(const struct rlimit *limit)
{
    return limit->rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit->rlim_cur;
}

/* The smaller one of ulimit -v and ulimit -d. */
static uint64_t address_limit(void)
{
    struct rlimit limit;
    uint64_t least = getrlimit(RLIMIT_AS, &limit) == 0 ? limit_of(&limit) : UINT64_MAX;
    uint64_t data = getrlimit(RLIMIT_DATA, &limit) == 0 ? limit_of(&limit) : UINT64_MAX;
    return data < least ? data : least;
}

void machine_facts_gather(struct machine_facts *facts)
{
    struct cgroup cgroup;
    cgroup_read(&cgroup);
    *facts = (struct machine_facts){
        .n_cpus = count_cpus(),
        .cgroup_cpus = cgroup.cpus,
        .machine_bytes = memory_installed(),
        .available_bytes = memory_of_kernel(),
        .cgroup_bytes = cgroup.free_bytes,
        .address_bytes = address_limit(),
    };
    machine_grant_read(&facts->grant);
}
