/*
 * machine_fit.h -- how many threads and how much memory fit the machine: -@ auto and
 * --max-memory auto.
 *
 * CPUs are those that the process may run on (its affinity), at most the CPU time of its control
 * group, at most what the batch system gave the job. Memory is half of what the machine has free,
 * since others use it, too; or three quarters of what the control group, the batch system or
 * `ulimit -v` give this job alone, if that is less. If the input is a pipe a quarter of the CPUs
 * and half of that memory are left to the program that feeds it: an aligner computes while it is
 * loaded, but from its end on the merge can use all.
 *
 * Order of calls: machine_facts_gather, the only function that is not pure; has_feeder; choose.
 * Threads: any. Nothing fails.
 */
#ifndef ROCKSORT_COMMAND_MACHINE_FIT_H
#define ROCKSORT_COMMAND_MACHINE_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum { MACHINE_MAX_THREADS = 1024 };   /* of -@ */

struct machine_grant {          /* what a batch system says that the job may use on this node */
    unsigned n_cpus;            /* 0: nothing said */
    const char *cpus_variable;  /* that said so; a static string */
    uint64_t bytes;             /* 0: nothing said */
    const char *bytes_variable;
};

struct machine_facts {
    unsigned n_cpus;            /* by affinity; 0: unknown */
    double cgroup_cpus;         /* 0: no limit */
    uint64_t available_bytes;   /* of the machine; UINT64_MAX: unknown, as all below */
    uint64_t cgroup_bytes;      /* still free in the control groups */
    uint64_t address_bytes;     /* ulimit -v or -d */
    struct machine_grant grant;
    bool has_feeder;            /* the input is a pipe */
};

enum { MACHINE_REASON_BYTES = 192 };

struct machine_fit {
    unsigned n_threads;
    uint64_t memory_bytes;      /* of the whole sort */
    char threads_reason[MACHINE_REASON_BYTES];  /* "4 CPUs of SLURM_CPUS_PER_TASK" */
    char memory_reason[MACHINE_REASON_BYTES];
};

/*
 * Reads what batch systems tell in environment variables: Slurm, LSF, Grid Engine, PBS and Torque;
 * last, OMP_NUM_THREADS. look_up returns a variable's value or NULL.
 */
void machine_grant_read(const char *(*look_up)(const char *name, void *arg), void *arg,
                        struct machine_grant *grant);

/* Finds out all facts but has_feeder. */
void machine_facts_gather(struct machine_facts *facts);

/* CPUs that the process can keep busy, by affinity and control groups; 0: unknown. */
unsigned machine_fit_cpus(const struct machine_facts *facts);

void machine_fit_choose(const struct machine_facts *facts, struct machine_fit *fit);

#endif
