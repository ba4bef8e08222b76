/*
 * bam_sort.h -- runs one sort. Only this room starts threads.
 *
 *     input -> reader -> sort buffer -> [inflate -> index -> sort]                          load
 * phase
 *                          `-> [merge sort buffers -> blocks -> compress] -> run store
 *     run store -> dispatcher -> [open blocks] -> [merge output chunk -> deflate] -> writer  merge
 * phase
 *
 * Steps in brackets are jobs of the thread pool's worker threads, which htslib shares
 * (thread_pool.h). Besides the workers there are
 *   - while loading, the reader, which is the calling thread (load.h), the spiller (spill.h) and,
 *     once there are runs, the run committer of runs (run_committer.h);
 *   - while merging, the dispatcher, which is the calling thread, the writer (merge.h) and a run
 * reader for each database (run_reader.h);
 *   - a thread that waits for signals (signals.h), one that shows progress, if that is wanted
 *     (progress.h), one that syncs (delayed_fsync.h), and RocksDB's for compaction.
 */
#ifndef ROCKSORT_SORT_BAM_SORT_H
#define ROCKSORT_SORT_BAM_SORT_H

#include "resume/sort_settings.h"
#include "sort/sort_report.h"

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
