/*
 * bam_sort.h -- runs one sort.
 *
 *     load:  input -> [inflate or parse] -> spans -> [copy to sort buffer, index] -> [sort buffer]
 *            sort buffers -> [merge, compress spill chunk] -> run store
 *     merge: run store -> dispatcher -> [open blocks] -> [merge, deflate output chunk] -> writer
 *
 * Steps in brackets are jobs of the thread pool, which htslib shares (thread_pool.h). The other
 * threads are:
 *   - while loading, the reader, which is the calling thread (load.h), the spiller (spiller.h), and
 *     the run committer (temp_store.h) once there are runs;
 *   - while merging, the dispatcher, which is the calling thread, the writer (merge.h), and a run
 *     reader for each database (run_reader.h);
 *   - a thread that waits for signals (abort_cleanup.h), one that shows progress (progress.h), one
 *     that syncs (delayed_fsync.h), and RocksDB's for compaction.
 */
#ifndef ROCKSORT_SORT_BAM_SORT_H
#define ROCKSORT_SORT_BAM_SORT_H

#include "resume/sort_settings.h"
#include "sort/sort_report.h"

/*
 * Sorts. Returns 0, or -1 after one message. After a failure there is no output, but if only its
 * index could not be written, the output is complete. Removes temporary data unless they are a
 * checkpoint from which the sort can be resumed; then prints the command. With verify it returns 0
 * and prints one message if records are not in order.
 *
 * On SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1 or SIGUSR2 the process cleans up in the
 * same way and dies of the signal. After SIGINT and SIGQUIT, and if the reader of standard output
 * has gone, a checkpoint stays only with keep_checkpoint, or if it existed before.
 */
int sort_run(const struct sort_settings *settings, struct sort_report *report);

#endif
