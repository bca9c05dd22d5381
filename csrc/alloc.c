/* alloc.c - allocate memory through the hooks; the one file that may name libc's functions. */
#define CARAG_ALLOW_LIBC
#include "carag_internal.h"

#include <string.h>
#include <sys/mman.h>

#define CACHE_LINE 64                /* bytes */
#define LARGE_PAGE ((size_t)2 << 20) /* bytes */

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

void *carag_enlarged(void *array, size_t count, size_t room, size_t size)
{
    void *more = carag_allocate(room, size);
    if (more && count)
        memcpy(more, array, count * size);
    if (more)
        carag_release(array);
    return more;
}

/* To a cache line; a large array to a large page, which is asked for: writing such an array first is several times
 * faster, and a search that jumps about in it waits less for addresses. It is only advice, and a system that has no
 * large pages ignores it. The distance back to what the hook returned stands before the aligned block. */
void *carag_allocate_aligned(size_t count, size_t size)
{
    size_t bytes;
    size_t room;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    const size_t large_pages = bytes / LARGE_PAGE + (bytes % LARGE_PAGE >= LARGE_PAGE / 4 * 3);
    const size_t alignment = large_pages > 0 ? LARGE_PAGE : CACHE_LINE;
    if (__builtin_add_overflow(bytes, 2 * alignment, &room))
        return NULL;
    unsigned char *memory = hook_allocate(room);
    if (!memory)
        return NULL;
    const uintptr_t begin = (uintptr_t)memory + sizeof(uint32_t);
    const uint32_t shift = (uint32_t)((begin + alignment - 1) / alignment * alignment - (uintptr_t)memory);
    memcpy(memory + shift - sizeof shift, &shift, sizeof shift);
#if defined(MADV_HUGEPAGE)
    if (large_pages > 0)
        madvise(memory + shift, large_pages * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return memory + shift;
}

void carag_release(void *memory)
{
    hook_release(memory);
}

void carag_release_aligned(void *memory)
{
    if (memory) {
        uint32_t shift;
        memcpy(&shift, (unsigned char *)memory - sizeof shift, sizeof shift);
        hook_release((unsigned char *)memory - shift);
    }
}
