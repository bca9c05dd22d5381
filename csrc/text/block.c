/* text/block.c - keep the working memory of searches between calls, in the slots of the index (slots.h). */
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
    carag_block *block = carag_slots_take(&text->scratches);
    if (block && block->size >= size)
        return block;
    carag_block_free(block);
    block = carag_allocate(1, sizeof *block);
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
    carag_block_free(carag_slots_give(&text->scratches, block));
}
