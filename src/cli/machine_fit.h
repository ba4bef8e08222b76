/*
 * machine_fit.h -- how many threads and how much memory fit the machine: -@ auto and
 * --max-memory auto.
 *
 * Threads: as many as there are CPUs that the process may run on (its affinity), but no more than
 * its control group and the batch system give it. Memory: half of what the machine has free, since
 * other programs need memory, too; or, if that is less, three quarters of what the control group,
 * the batch system or `ulimit -v` give to this job alone. If none of these is known: 768 MiB a
 * thread, but at most half of what the machine has. If the input is a pipe, a quarter of the
 * CPUs and half of that memory are left to the program that feeds the pipe, such as an aligner.
 *
 * Order of calls: machine_facts_gather; the caller sets has_run_reader; machine_fit_choose, which
 * is pure. Any thread. Nothing fails.
 */
#ifndef ROCKSORT_CLI_MACHINE_FIT_H
#define ROCKSORT_CLI_MACHINE_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum { MACHINE_MAX_THREADS = 1024 };   /* of -@ */

struct machine_grant {          /* what the batch system lets the job use on this node */
    unsigned n_cpus;            /* 0: it does not say */
    const char *cpus_variable;  /* the environment variable that says it; a static string */
    uint64_t bytes;             /* 0: it does not say */
    const char *bytes_variable; /* likewise */
};

struct machine_facts {
    unsigned n_cpus;            /* by affinity; 0: unknown */
    double cgroup_cpus;         /* 0: no limit */
    uint64_t machine_bytes;     /* all memory; UINT64_MAX here or below: unknown */
    uint64_t available_bytes;   /* free on the machine */
    uint64_t cgroup_bytes;      /* still free in the control groups */
    uint64_t address_bytes;     /* ulimit -v or -d */
    struct machine_grant grant;
    bool has_run_reader;        /* the input is a pipe */
};

enum { MACHINE_REASON_BYTES = 192 };

struct machine_fit {
    unsigned n_threads;
    uint64_t memory_bytes;      /* of the whole sort */
    char threads_reason[MACHINE_REASON_BYTES];  /* "4 CPUs of SLURM_CPUS_PER_TASK" */
    char memory_reason[MACHINE_REASON_BYTES];
};

/* Reads the environment variables of batch systems: Slurm, LSF, Grid Engine, PBS and Torque; and
   last OMP_NUM_THREADS. */
void machine_grant_read(struct machine_grant *grant);

/* Finds out all facts except has_run_reader. */
void machine_facts_gather(struct machine_facts *facts);

/* CPUs that the process can keep busy, by affinity and control groups; 0: unknown. */
unsigned machine_fit_cpus(const struct machine_facts *facts);

void machine_fit_choose(const struct machine_facts *facts, struct machine_fit *fit);

#endif
