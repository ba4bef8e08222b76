/*
 * bam_sort.h -- runs one sort. Only this room starts threads.
 *
 *     input -> reader -> batch -> [inflate -> index -> sort]                          load phase
 *                          `-> [merge batches -> blocks -> compress] -> run store
 *     run store -> dispatcher -> [open blocks] -> [merge segment -> deflate] -> writer  merge phase
 *
 * Steps in brackets are jobs of the crew's worker threads, which htslib shares (crew.h). Besides
 * the workers there are
 *   - while loading, the reader, which is the calling thread (load.h), the spiller (spill.h) and,
 *     once there are runs, the ender of runs (run_ender.h);
 *   - while merging, the dispatcher, which is the calling thread, the writer (merge.h) and a feeder
 *     for each database (feed.h);
 *   - a thread that waits for signals (signals.h), one that shows progress, if that is wanted
 *     (progress.h), one that syncs (durable.h), and RocksDB's for compaction.
 */
#ifndef ROCKSORT_PIPELINE_BAM_SORT_H
#define ROCKSORT_PIPELINE_BAM_SORT_H

#include "pipeline/sort_report.h"
#include "pipeline/sort_settings.h"

/*
 * Sorts. Returns 0, or -1 after one message. After a failure there is no output; if only its index
 * could not be written, the output is there and complete. Temporary data are removed, unless they
 * are a checkpoint with which the sort can be finished: a note says how. With verify it returns 0
 * and prints one message if records are not in order.
 *
 * If the process gets SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1 or SIGUSR2 meanwhile, it
 * cleans up in the same way and dies of the signal. After SIGINT and SIGQUIT, and if nobody reads
 * standard output any more, a checkpoint stays only with keep_checkpoint, or if it was there
 * before.
 */
int sort_run(const struct sort_settings *settings, struct sort_report *report);

#endif
