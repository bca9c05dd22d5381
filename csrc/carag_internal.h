/* carag_internal.h - what every .c file of the core needs: memory, faults, and CARAG_NONE.
 *
 * Memory comes from carag_allocate and goes through carag_release: the libc names are poisoned below, so a mistake
 * does not compile, and tests can fail every single allocation.
 */
#ifndef CARAG_INTERNAL_H
#define CARAG_INTERNAL_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mkstemp, CLOCK_MONOTONIC and friends under -std=c11; every .c file includes this first */
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "carag.h"

#if !defined(CARAG_ALLOW_LIBC)
#pragma GCC poison malloc calloc realloc free
#endif

#define CARAG_NONE UINT32_MAX            /* no row, class or link */
#define CARAG_MAX_ROWS (UINT32_MAX - 64) /* rows of an index */
#define CARAG_BLOCK 256                  /* rows handed to a kernel at a time: their numbers and scores stay in L1 */

/* alloc.c */
void *carag_allocate(size_t count, size_t size); /* NULL on overflow or when out of memory; count 0 gives memory */
void *carag_allocate_zeroed(size_t count, size_t size);
/* Move an array to one with more room; NULL when out of memory, and then it stays. */
void *carag_enlarged(void *array, size_t count, size_t room, size_t size);
void *carag_allocate_aligned(size_t count, size_t size); /* 64-byte aligned; free with carag_release_aligned */
void carag_release(void *memory);
void carag_release_aligned(void *memory);

/* status.c */
carag_status carag_fail(carag_fault *out_fault, carag_status status, uint64_t row, const char *what);

#endif
