/* parallel.c - a bulk operation on all cores: plain threads, started for one call and joined by it.
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

#define MOST_THREADS 256

typedef struct shift {
    carag_task task;
    void *context;
    size_t items;
    _Atomic(size_t) next;
} shift;

typedef struct hand {
    shift *work;
    pthread_t thread;
    uint32_t worker;
} hand;

static void *toil(void *argument)
{
    const hand *me = argument;
    shift *work = me->work;
    size_t item;
    while ((item = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->items)
        work->task(work->context, item, me->worker);
    return NULL;
}

bool carag_parallel(uint32_t threads, size_t items, carag_task task, void *context)
{
    shift work = {.task = task, .context = context, .items = items};
    hand hands[MOST_THREADS];
    size_t wanted = threads < items ? threads : items;
    wanted = wanted < MOST_THREADS ? wanted : MOST_THREADS;
    uint32_t started = 1;
    for (; started < wanted; started++) {
        hands[started] = (hand){.work = &work, .worker = started};
        if (pthread_create(&hands[started].thread, NULL, toil, &hands[started]) != 0)
            break;
    }
    hands[0] = (hand){.work = &work, .worker = 0};
    toil(&hands[0]);
    while (started-- > 1)
        pthread_join(hands[started].thread, NULL);
    return true;
}
