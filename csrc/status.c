/* status.c - put status codes in words. */
#include "carag_internal.h"

const char *carag_status_text(carag_status status)
{
    switch (status) {
    case CARAG_OK: return "ok";
    case CARAG_NO_MEMORY: return "out of memory";
    case CARAG_BAD_ARGUMENT: return "bad argument";
    case CARAG_NOT_FINITE: return "NaN or infinity in a vector";
    case CARAG_ZERO_VECTOR: return "zero vector";
    case CARAG_BAD_WORD: return "word with control bits set";
    case CARAG_BAD_KEY: return "negative key";
    case CARAG_DUPLICATE_KEY: return "duplicate key";
    case CARAG_UNKNOWN_KEY: return "unknown key";
    case CARAG_BAD_PREDICATE: return "predicate that does not test every control bit";
    case CARAG_FULL: return "index full";
    case CARAG_IO: return "input or output failed";
    case CARAG_CORRUPT: return "corrupt file";
    case CARAG_BAD_KERNEL: return "no such kernel here";
    case CARAG_OVERLAP: return "overlapping windows";
    case CARAG_BEHIND: return "view that is not current";
    }
    return "unknown status";
}

carag_status carag_fail(carag_fault *out_fault, carag_status status, uint64_t row, const char *what)
{
    if (out_fault)
        *out_fault = (carag_fault){.row = row, .where = "", .what = what, .os_error = 0};
    return status;
}
