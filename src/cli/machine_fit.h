/*
 * machine_fit.h -- chooses threads and memory that fit the machine: -@ auto and --max-memory auto.
 *
 * Threads: the number of CPUs that the process may run on (its affinity), but no more than the
 * limits of its control group and batch system. Memory: half of the machine's free memory, because
 * other programs need some; or, if that is less, three quarters of what the control group, the
 * batch system or `ulimit -v` grant to this job alone. If none is known: 768 MiB a thread, but at
 * most half of the machine's memory. If the input is a pipe, a quarter of the CPUs and half of that
 * memory are left to the program that writes it, such as an aligner.
 *
 * Order of calls: machine_facts_gather; the caller sets input_is_pipe; machine_fit_choose, which
 * is pure. Any thread. No errors.
 */
#ifndef ROCKSORT_CLI_MACHINE_FIT_H
#define ROCKSORT_CLI_MACHINE_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum { MACHINE_MAX_THREADS = 1024 };   /* upper limit of -@ */

struct machine_grant {          /* limits of the batch system for this job on this node */
    unsigned n_cpus;            /* 0: unknown */
    const char *cpus_variable;  /* its environment variable; a static string */
    uint64_t bytes;             /* 0: unknown */
    const char *bytes_variable; /* the same for bytes */
};

struct machine_facts {
    unsigned n_cpus;            /* by affinity; 0: unknown */
    double cgroup_cpus;         /* 0: no limit */
    uint64_t machine_bytes;     /* all memory; UINT64_MAX here or below: unknown */
    uint64_t available_bytes;   /* free on the machine */
    uint64_t cgroup_bytes;      /* still free within the control groups */
    uint64_t address_bytes;     /* ulimit -v or -d */
    struct machine_grant grant;
    bool input_is_pipe;         /* the input is a pipe */
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

/* Fills in all facts except input_is_pipe. */
void machine_facts_gather(struct machine_facts *facts);

/* The CPUs that the process can use, by affinity and control groups; 0: unknown. */
unsigned machine_fit_cpus(const struct machine_facts *facts);

void machine_fit_choose(const struct machine_facts *facts, struct machine_fit *fit);

#endif
