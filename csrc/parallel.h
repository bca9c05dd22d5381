/* parallel.h - run numbered tasks on threads. */
#ifndef CARAG_PARALLEL_H
#define CARAG_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* worker: 0 .. threads - 1; no two tasks that run at once see the same number. */
typedef void (*carag_task)(void *context, size_t item, uint32_t worker);

/* Run task(context, item, worker) once for each item < items, handed out one by one in ascending order; true
 * when all are done. The caller is worker 0 and works, too; whatever threads could not be started are done
 * without, so the work is always finished. What the tasks wrote is visible to the caller. */
bool carag_parallel(uint32_t threads, size_t items, carag_task task, void *context);

#endif
