/*
 * machine_facts.h -- finds out what machine_fit.h decides by. Any thread; never fails.
 */
#ifndef ROCKSORT_COMMAND_MACHINE_FACTS_H
#define ROCKSORT_COMMAND_MACHINE_FACTS_H

#include "command/machine_fit.h"

/* All facts but has_feeder. */
void machine_facts_gather(struct machine_facts *facts);

#endif
