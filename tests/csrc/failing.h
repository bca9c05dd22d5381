/* failing.h - an allocator of which one allocation fails, alone or with all that follow it, and that counts what is held. */
#ifndef CARAG_TEST_FAILING_H
#define CARAG_TEST_FAILING_H

#include <stdatomic.h>
#include <stdbool.h>

#include "check.h"

static atomic_long outstanding;
static atomic_long before_failure = -1; /* allocations until one fails; negative: none will */
static atomic_bool fails_on;            /* so do all that follow */
static atomic_bool has_failed;

static inline void *failing_allocate(size_t size)
{
    const long left = atomic_fetch_sub(&before_failure, 1);
    if (left == 0 || (left < 0 && atomic_load(&has_failed) && atomic_load(&fails_on))) {
        atomic_store(&has_failed, true);
        return NULL;
    }
    atomic_fetch_add(&outstanding, 1);
    return malloc(size);
}

static inline void counting_release(void *memory)
{
    atomic_fetch_sub(&outstanding, memory != NULL);
    free(memory);
}

static inline void arm(long left, bool and_all_after)
{
    atomic_store(&has_failed, false);
    atomic_store(&fails_on, and_all_after);
    atomic_store(&before_failure, left);
}

static inline bool disarm(void)
{
    const bool failed = atomic_exchange(&has_failed, false);
    atomic_store(&before_failure, -1);
    return failed;
}

#endif
