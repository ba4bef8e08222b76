/* machine_facts.c -- see machine_facts.h. */
#define _GNU_SOURCE              /* sched_getaffinity */
#include "command/machine_facts.h"

#include "machine/cgroup.h"
#include "machine/memory.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* CPUs that this process may run on. The kernel refuses a set that is smaller than its own. */
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

/* ulimit -v or -d, whichever is less. */
static uint64_t address_limit(void)
{
    struct rlimit limit;
    uint64_t least = getrlimit(RLIMIT_AS, &limit) == 0 ? limit_of(&limit) : UINT64_MAX;
    uint64_t data = getrlimit(RLIMIT_DATA, &limit) == 0 ? limit_of(&limit) : UINT64_MAX;
    return data < least ? data : least;
}

static const char *look_up(const char *name, void *arg)
{
    (void)arg;
    return getenv(name);
}

void machine_facts_gather(struct machine_facts *facts)
{
    struct cgroup cgroup;
    cgroup_read(&cgroup);
    *facts = (struct machine_facts){
        .n_cpus = count_cpus(),
        .cgroup_cpus = cgroup.cpus,
        .available_bytes = memory_of_kernel(),
        .cgroup_bytes = cgroup.free_bytes,
        .address_bytes = address_limit(),
    };
    machine_grant_read(look_up, NULL, &facts->grant);
}
