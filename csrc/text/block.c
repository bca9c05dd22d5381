/* text/block.c - keep the working memory of searches between calls, as search/scratch.c does for vectors: in a few slots,
 * taken and given by atomic exchange. Its contents are undefined when it is taken.
 */
#include "carag_internal.h"
#include "text/text.h"

void carag_block_free(carag_block *block)
{
    if (!block)
        return;
    carag_release_aligned(block->bytes);
    carag_release(block);
}

/* NULL: out of memory. */
carag_block *carag_block_take(carag_text *text, size_t size)
{
    for (size_t slot = 0; slot < CARAG_TEXT_SCRATCHES; slot++) {
        carag_block *block = atomic_exchange_explicit(&text->scratches[slot], NULL, memory_order_acq_rel);
        if (block && block->size >= size)
            return block;
        if (!block)
            continue;
        carag_block_free(block);
        break;
    }
    carag_block *block = carag_allocate(1, sizeof *block);
    if (!block)
        return NULL;
    *block = (carag_block){.size = size, .bytes = carag_allocate_aligned(size, 1)};
    if (block->bytes)
        return block;
    carag_release(block);
    return NULL;
}

void carag_block_give(carag_text *text, carag_block *block)
{
    for (size_t slot = 0; block && slot < CARAG_TEXT_SCRATCHES; slot++) {
        carag_block *empty = NULL;
        if (atomic_compare_exchange_strong_explicit(&text->scratches[slot], &empty, block, memory_order_acq_rel,
                                                    memory_order_relaxed))
            return;
    }
    carag_block_free(block);
}
