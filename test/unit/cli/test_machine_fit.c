/*
 * test_machine_fit.c -- what -@ auto and --max-memory auto choose for made-up machines and batch
 * systems.
 */
#include "unit_test.h"

#include "cli/machine_fit.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

struct variable {
    const char *name, *value;
};

/* `variables`: all that the environment has; ends with a NULL name. */
static struct machine_grant grant_of(const struct variable *variables)
{
    struct machine_grant grant;
    assert_int_equal(clearenv(), 0);
    for (const struct variable *v = variables; v->name; v++)
        if (v->value) assert_int_equal(setenv(v->name, v->value, 1), 0);
    machine_grant_read(&grant);
    return grant;
}

static struct machine_facts machine(unsigned n_cpus, uint64_t available_bytes)
{
    return (struct machine_facts){
        .n_cpus = n_cpus,
        .machine_bytes = UINT64_MAX,
        .available_bytes = available_bytes,
        .cgroup_bytes = UINT64_MAX,
        .address_bytes = UINT64_MAX,
    };
}

static struct machine_fit fit_of(const struct machine_facts *facts)
{
    struct machine_fit fit;
    machine_fit_choose(facts, &fit);
    return fit;
}

TEST(test_grants_of_buffer_systems_are_known)
{
    static const struct {
        struct variable variables[6];
        unsigned n_cpus;
        const char *cpus_variable;
        uint64_t bytes;
        const char *bytes_variable;
    } cases[] = {
        {{{NULL, NULL}}, 0, NULL, 0, NULL},
        {{{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_PER_TASK", "6"}, {"SLURM_CPUS_ON_NODE", "12"},
          {"SLURM_MEM_PER_NODE", "4096"}},
         6, "SLURM_CPUS_PER_TASK", 4 * GIB, "SLURM_MEM_PER_NODE"},
        {{{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "12"}, {"SLURM_MEM_PER_CPU", "1024"}},
         12, "SLURM_CPUS_ON_NODE", 12 * GIB, "SLURM_MEM_PER_CPU"},
        {{{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_PER_TASK", "3"}, {"SLURM_MEM_PER_CPU", "1024"}},
         3, "SLURM_CPUS_PER_TASK", 3 * GIB, "SLURM_MEM_PER_CPU"},
        /* --mem=0 is all of the node. */
        {{{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "4"}, {"SLURM_MEM_PER_NODE", "0"}},
         4, "SLURM_CPUS_ON_NODE", 0, NULL},
        /* Left over in a login shell. */
        {{{"SLURM_CPUS_PER_TASK", "6"}, {"SLURM_MEM_PER_NODE", "4096"}}, 0, NULL, 0, NULL},
        {{{"LSB_JOBID", "9"}, {"LSB_DJOB_NUMPROC", "8"}, {"LSB_MAX_NUM_PROCESSORS", "16"}},
         8, "LSB_DJOB_NUMPROC", 0, NULL},
        {{{"JOB_ID", "9"}, {"NSLOTS", "5"}}, 5, "NSLOTS", 0, NULL},
        {{{"NSLOTS", "5"}}, 0, NULL, 0, NULL},
        {{{"PBS_JOBID", "9.host"}, {"NCPUS", "7"}}, 7, "NCPUS", 0, NULL},
        {{{"PBS_JOBID", "9.host"}, {"PBS_NUM_PPN", "2"}}, 2, "PBS_NUM_PPN", 0, NULL},
        {{{"NCPUS", "7"}}, 0, NULL, 0, NULL},
        {{{"OMP_NUM_THREADS", "3"}}, 3, "OMP_NUM_THREADS", 0, NULL},
        {{{"OMP_NUM_THREADS", "4,2"}}, 4, "OMP_NUM_THREADS", 0, NULL},
        {{{"JOB_ID", "9"}, {"NSLOTS", "5"}, {"OMP_NUM_THREADS", "1"}}, 5, "NSLOTS", 0, NULL},
        {{{"OMP_NUM_THREADS", "many"}}, 0, NULL, 0, NULL},
        {{{"OMP_NUM_THREADS", "-2"}}, 0, NULL, 0, NULL},
        {{{"OMP_NUM_THREADS", "2x"}}, 0, NULL, 0, NULL},
        {{{"OMP_NUM_THREADS", ""}}, 0, NULL, 0, NULL},
        {{{"OMP_NUM_THREADS", "99999999999999999999999"}}, 1024, "OMP_NUM_THREADS", 0, NULL},
        {{{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "4"},
          {"SLURM_MEM_PER_NODE", "18446744073709551615"}},
         4, "SLURM_CPUS_ON_NODE", 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct variable variables[6];
        memcpy(variables, cases[i].variables, sizeof variables);
        struct machine_grant grant = grant_of(variables);
        assert_int_equal(grant.n_cpus, cases[i].n_cpus);
        assert_true(grant.bytes == cases[i].bytes);
        if (cases[i].cpus_variable)
            assert_string_equal(grant.cpus_variable, cases[i].cpus_variable);
        else
            assert_null(grant.cpus_variable);
        if (cases[i].bytes_variable)
            assert_string_equal(grant.bytes_variable, cases[i].bytes_variable);
        else
            assert_null(grant.bytes_variable);
    }
}

TEST(test_plain_machine_gives_all_cpus_and_half_the_memory)
{
    struct machine_facts facts = machine(8, 16 * GIB);
    struct machine_fit fit = fit_of(&facts);
    assert_int_equal(fit.n_threads, 8);
    assert_true(fit.memory_bytes == 8 * GIB - 64 * MIB);
    assert_non_null(strstr(fit.threads_reason, "8 CPUs"));
    assert_non_null(strstr(fit.memory_reason, "half of the 16384 MiB"));
}

TEST(test_least_limit_of_cpus_counts)
{
    struct machine_facts facts = machine(16, 16 * GIB);
    facts.cgroup_cpus = 5.9;
    struct machine_fit fit = fit_of(&facts);
    assert_int_equal(fit.n_threads, 5);
    assert_non_null(strstr(fit.threads_reason, "control group"));
    facts.cgroup_cpus = 0.5;
    assert_int_equal(fit_of(&facts).n_threads, 1);
    facts.cgroup_cpus = 64;
    assert_int_equal(fit_of(&facts).n_threads, 16);
    facts.grant = (struct machine_grant){.n_cpus = 4, .cpus_variable = "NSLOTS"};
    fit = fit_of(&facts);
    assert_int_equal(fit.n_threads, 4);
    assert_non_null(strstr(fit.threads_reason, "by NSLOTS"));
    facts.cgroup_cpus = 2;
    assert_int_equal(fit_of(&facts).n_threads, 2);
    facts = machine(0, UINT64_MAX);
    fit = fit_of(&facts);
    assert_int_equal(fit.n_threads, 1);
    assert_true(fit.memory_bytes == 768 * MIB);
    /* An old kernel does not say what is free; the limits are those of a system without limits. */
    facts = machine(2, UINT64_MAX);
    facts.machine_bytes = 16 * GIB;
    facts.cgroup_bytes = INT64_MAX - 4095 - 100 * MIB;
    facts.address_bytes = INT64_MAX;
    fit = fit_of(&facts);
    assert_true(fit.memory_bytes == 2 * 768 * MIB);
    assert_non_null(strstr(fit.memory_reason, "not known"));
    facts = machine(5000, UINT64_MAX);
    assert_int_equal(fit_of(&facts).n_threads, 1024);
}

/* Neither the free memory nor a limit is known, and 768 MiB for each of many threads would be more
   than the machine has. */
TEST(test_half_of_the_machine_is_taken_where_free_memory_is_unknown)
{
    struct machine_facts facts = machine(64, UINT64_MAX);
    assert_true(fit_of(&facts).memory_bytes == 64 * 768 * MIB);
    facts.machine_bytes = 16 * GIB;
    struct machine_fit fit = fit_of(&facts);
    assert_true(fit.memory_bytes == 8 * GIB - 64 * MIB);
    assert_non_null(strstr(fit.memory_reason, "half of the 16384 MiB that the machine has"));
    facts.input_is_pipe = true;
    assert_true(fit_of(&facts).memory_bytes == 4 * GIB - 64 * MIB);
    facts.input_is_pipe = false;
    /* The batch system gives all of the machine: that is no limit. */
    facts.grant = (struct machine_grant){.bytes = 16 * GIB, .bytes_variable = "SLURM_MEM_PER_NODE"};
    assert_true(fit_of(&facts).memory_bytes == 8 * GIB - 64 * MIB);
    /* The least for which half of the machine is as much as 768 MiB a thread. */
    facts = machine(2, UINT64_MAX);
    facts.machine_bytes = 2 * (2 * 768 + 64) * MIB;
    assert_true(fit_of(&facts).memory_bytes == 2 * 768 * MIB);
    facts.machine_bytes -= 2 * MIB;
    assert_true(fit_of(&facts).memory_bytes == (2 * 768 - 1) * MIB);
    facts.machine_bytes = 100 * MIB;
    assert_true(fit_of(&facts).memory_bytes == 64 * MIB);
}

TEST(test_least_limit_of_memory_counts)
{
    struct machine_facts facts = machine(4, 64 * GIB);
    facts.cgroup_bytes = 8 * GIB;
    struct machine_fit fit = fit_of(&facts);
    assert_true(fit.memory_bytes == 6 * GIB - 64 * MIB);
    assert_non_null(strstr(fit.memory_reason, "control group"));
    facts.grant = (struct machine_grant){.bytes = 4 * GIB, .bytes_variable = "SLURM_MEM_PER_NODE"};
    fit = fit_of(&facts);
    assert_true(fit.memory_bytes == 3 * GIB - 64 * MIB);
    assert_non_null(strstr(fit.memory_reason, "by SLURM_MEM_PER_NODE"));
    /* Address space is more than what is touched. */
    facts.address_bytes = 2 * GIB;
    fit = fit_of(&facts);
    assert_true(fit.memory_bytes < 2 * GIB * 3 / 4 && fit.memory_bytes > GIB);
    assert_non_null(strstr(fit.memory_reason, "ulimit"));
    facts.address_bytes = 100 * MIB;
    assert_true(fit_of(&facts).memory_bytes == 64 * MIB);
    /* The machine's free memory, if it is least. */
    facts = machine(4, 2 * GIB);
    facts.cgroup_bytes = 8 * GIB;
    assert_true(fit_of(&facts).memory_bytes == GIB - 64 * MIB);
}

/* A program feeds the pipe: a quarter of the CPUs and half of the memory are its. */
TEST(test_feeder_of_a_pipe_gets_its_share)
{
    static const unsigned expected[][2] = {{1, 1}, {2, 2}, {3, 3}, {4, 3}, {8, 6}, {96, 72}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct machine_facts facts = machine(expected[i][0], 16 * GIB);
        facts.input_is_pipe = true;
        struct machine_fit fit = fit_of(&facts);
        assert_int_equal(fit.n_threads, expected[i][1]);
        assert_true(fit.memory_bytes == 4 * GIB - 64 * MIB);
        assert_non_null(strstr(fit.memory_reason, "feeds the pipe"));
    }
}

TEST(test_there_is_always_a_thread_and_64_mib)
{
    struct rng rng = rng_start(17);
    for (int i = 0; i < 20000; i++) {
        struct machine_facts facts = machine((unsigned)rng_below(&rng, 3000),
                                             rng_next(&rng) >> rng_below(&rng, 64));
        if (rng_one_in(&rng, 2)) facts.cgroup_cpus = (double)rng_below(&rng, 300) / 10;
        if (rng_one_in(&rng, 2)) facts.cgroup_bytes = rng_next(&rng) >> rng_below(&rng, 64);
        if (rng_one_in(&rng, 2)) facts.address_bytes = rng_next(&rng) >> rng_below(&rng, 64);
        facts.input_is_pipe = rng_one_in(&rng, 2);
        struct machine_fit fit = fit_of(&facts);
        CHECK(&rng, fit.n_threads >= 1 && fit.n_threads <= 1024);
        CHECK(&rng, fit.n_threads <= facts.n_cpus || fit.n_threads == 1);
        CHECK(&rng, fit.memory_bytes >= 64 * MIB);
        uint64_t least = facts.available_bytes;
        if (facts.cgroup_bytes < least) least = facts.cgroup_bytes;
        if (facts.address_bytes < least) least = facts.address_bytes;
        CHECK(&rng, fit.memory_bytes <= least || fit.memory_bytes == 64 * MIB);
        CHECK(&rng, fit.threads_reason[0] && fit.memory_reason[0]);
    }
}
