/* parallel.c - run a bulk operation on all cores: plain threads, started for one call and joined by it.
 *
 * Items go out one by one from an atomic counter, so threads that meet short ones take more of them. Which
 * worker gets which item depends on time: a task may write only what belongs to its item, and may use its
 * worker's number for nothing but working memory. Results are then the same for any number of threads.
 *
 * Rejected: a pool that outlives the call. Starting a thread costs some 50 microseconds, an operation worth
 * spreading costs milliseconds, and a pool would be a global with a life of its own (fork, unload, shutdown).
 */
#include "carag_internal.h"
#include "parallel.h"

#define MAX_THREADS 256 /* threads of one call */

typedef struct job {
    carag_task task;
    void *context;
    size_t items;
    _Atomic(size_t) next;
} job;

typedef struct worker {
    job *job;
    pthread_t thread;
    uint32_t number;
} worker;

static void *worker_main(void *argument)
{
    const worker *self = argument;
    job *work = self->job;
    size_t item;
    while ((item = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->items)
        work->task(work->context, item, self->number);
    return NULL;
}

bool carag_parallel(uint32_t threads, size_t items, carag_task task, void *context)
{
    job work = {.task = task, .context = context, .items = items};
    worker workers[MAX_THREADS];
    size_t wanted = threads < items ? threads : items;
    wanted = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    uint32_t started = 1;
    for (; started < wanted; started++) {
        workers[started] = (worker){.job = &work, .number = started};
        if (pthread_create(&workers[started].thread, NULL, worker_main, &workers[started]) != 0)
            break;
    }
    workers[0] = (worker){.job = &work, .number = 0};
    worker_main(&workers[0]);
    while (started-- > 1)
        pthread_join(workers[started].thread, NULL);
    return true;
}
