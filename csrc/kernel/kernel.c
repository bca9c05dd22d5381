/* kernel/kernel.c - choose the kernel that this processor can run; the one file that knows CPUID.
 *
 * Widest set first, the reference last. The choice is made once, on first use: the kernel CARAG_KERNEL names,
 * else the first that this processor and operating system can run. A name that cannot be honoured is an
 * error, never a quiet substitute. The choice is the core's only mutable global: one atomic pointer.
 */
#include "carag_internal.h"
#include "kernel/kernel.h"

#include <string.h>

static const carag_kernel *const kernels[] = {&carag_kernel_avx512, &carag_kernel_avx2, &carag_kernel_neon,
                                              &carag_kernel_serial};
#define KERNEL_COUNT (sizeof kernels / sizeof *kernels)

static _Atomic(const carag_kernel *) active;

/* __builtin_cpu_supports asks XGETBV as well as CPUID, so a set the system does not save counts as absent. */
static bool is_runnable(const carag_kernel *kernel)
{
    if (!kernel->dot)
        return false;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool popcnt = __builtin_cpu_supports("popcnt");
    if (kernel == &carag_kernel_avx512)
        return popcnt && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vnni");
    if (kernel == &carag_kernel_avx2)
        return popcnt && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("f16c");
#endif
    return true;
}

static carag_status find(const char *name, const carag_kernel **out_kernel, carag_fault *out_fault)
{
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        if (strcmp(name, kernels[i]->name) == 0) {
            if (!is_runnable(kernels[i]))
                return carag_fail(out_fault, CARAG_BAD_KERNEL, 0,
                                  "this processor cannot run the requested kernel");
            *out_kernel = kernels[i];
            return CARAG_OK;
        }
    return carag_fail(out_fault, CARAG_BAD_KERNEL, 0, "no kernel has this name");
}

static carag_status choose(const carag_kernel **out_kernel, carag_fault *out_fault)
{
    const char *forced = getenv("CARAG_KERNEL");
    if (forced && *forced)
        return find(forced, out_kernel, out_fault);
    size_t i = 0;
    while (!is_runnable(kernels[i]))
        i++;
    *out_kernel = kernels[i];
    return CARAG_OK;
}

carag_status carag_kernel_resolve(const carag_kernel **out_kernel, carag_fault *out_fault)
{
    const carag_kernel *kernel = atomic_load_explicit(&active, memory_order_acquire);
    if (!kernel) {
        const carag_status status = choose(&kernel, out_fault);
        if (status != CARAG_OK)
            return status;
        atomic_store_explicit(&active, kernel, memory_order_release);
    }
    *out_kernel = kernel;
    return CARAG_OK;
}

const carag_kernel *carag_kernel_get(void)
{
    return atomic_load_explicit(&active, memory_order_acquire);
}

size_t carag_kernel_count(void)
{
    return KERNEL_COUNT;
}

const char *carag_kernel_name(size_t which)
{
    return which < KERNEL_COUNT ? kernels[which]->name : "";
}

int carag_kernel_is_available(size_t which)
{
    return which < KERNEL_COUNT && is_runnable(kernels[which]);
}

carag_status carag_kernel_active(const char **out_name, carag_fault *out_fault)
{
    const carag_kernel *kernel;
    const carag_status status = carag_kernel_resolve(&kernel, out_fault);
    if (status == CARAG_OK)
        *out_name = kernel->name;
    return status;
}

carag_status carag_set_kernel(const char *name, carag_fault *out_fault)
{
    const carag_kernel *kernel;
    const carag_status status = find(name, &kernel, out_fault);
    if (status == CARAG_OK)
        atomic_store_explicit(&active, kernel, memory_order_release);
    return status;
}

carag_status carag_dot(const float *a, const float *b, size_t n, float *out_dot, carag_fault *out_fault)
{
    const carag_kernel *kernel;
    const carag_status status = carag_kernel_resolve(&kernel, out_fault);
    if (status == CARAG_OK)
        *out_dot = kernel->dot(a, b, n);
    return status;
}
