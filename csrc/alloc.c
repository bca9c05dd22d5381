/* alloc.c - the allocator hooks; the one file that may name libc's. */
#define CARAG_ALLOW_LIBC
#include "carag_internal.h"

#include <string.h>

#define CACHE_LINE 64

static carag_allocate_fn hook_allocate = malloc;
static carag_release_fn hook_release = free;

void carag_set_allocator(carag_allocate_fn allocate, carag_release_fn release)
{
    hook_allocate = allocate ? allocate : malloc;
    hook_release = release ? release : free;
}

void *carag_allocate(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return hook_allocate(bytes ? bytes : 1);
}

void *carag_allocate_zeroed(size_t count, size_t size)
{
    void *memory = carag_allocate(count, size);
    if (memory)
        memset(memory, 0, count * size);
    return memory;
}

/* The distance back to what the hook returned stands in the byte before the aligned block. */
void *carag_allocate_aligned(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, CACHE_LINE, &bytes))
        return NULL;
    unsigned char *memory = hook_allocate(bytes);
    if (!memory)
        return NULL;
    const size_t shift = CACHE_LINE - (uintptr_t)memory % CACHE_LINE;
    memory[shift - 1] = (unsigned char)shift;
    return memory + shift;
}

void carag_release(void *memory)
{
    hook_release(memory);
}

void carag_release_aligned(void *memory)
{
    if (memory) {
        unsigned char *aligned = memory;
        hook_release(aligned - aligned[-1]);
    }
}
