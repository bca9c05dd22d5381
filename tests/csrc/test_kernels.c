/* test_kernels.c - every kernel gives the bits of the reference, near the true value, and reads no further. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static const size_t edges[] = {1,  2,  3,  5,  7,  8,  9,  15,  16,  17,  31,  32,  33,  48,
                               49, 63, 64, 65, 97, 127, 128, 129, 191, 192, 384, 1000, 1024, 1025};
#define EDGES (sizeof edges / sizeof *edges)

static float dot_with(const char *kernel, const float *a, const float *b, size_t n)
{
    float dot;
    CHECK_OK(carag_set_kernel(kernel, NULL));
    CHECK_OK(carag_dot(a, b, n, &dot, NULL));
    return dot;
}

static void equals_the_reference_and_the_truth(const char *kernel)
{
    for (size_t e = 0; e < EDGES; e++)
        for (size_t shift = 0; shift < 4; shift++) { /* pointers that no vector load is aligned to */
            const size_t n = edges[e];
            float *a = random_vectors(e, n + 4, 1);
            float *b = random_vectors(e + 100, n + 4, 1);
            const float *x = a + shift;
            const float *y = b + (shift + 1) % 4;
            double truth = 0.0;
            double size = 0.0;
            for (size_t i = 0; i < n; i++) {
                truth += (double)x[i] * (double)y[i];
                size += fabs((double)x[i] * (double)y[i]);
            }
            const float reference = dot_with("serial", x, y, n);
            const float dot = dot_with(kernel, x, y, n);
            CHECK(memcmp(&reference, &dot, sizeof dot) == 0);
            CHECK(fabs((double)dot - truth) <= 1e-6 * size + 1e-30);
            free(a);
            free(b);
        }
}

/* A vector that ends where its page ends: one float further and the process dies. */
static float *end_of_page(size_t n, void **out_map, size_t *out_size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t data = (n * sizeof(float) + page - 1) / page * page;
    unsigned char *map = mmap(NULL, data + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    CHECK(mprotect(map + data, page, PROT_NONE) == 0);
    *out_map = map;
    *out_size = data + page;
    return (float *)(void *)(map + data - n * sizeof(float));
}

static void reads_no_further_than_n(const char *kernel)
{
    for (size_t e = 0; e < EDGES; e++) {
        void *map;
        size_t size;
        float *a = end_of_page(edges[e], &map, &size);
        for (size_t i = 0; i < edges[e]; i++)
            a[i] = 1.0F;
        CHECK((size_t)dot_with(kernel, a, a, edges[e]) == edges[e]);
        CHECK(munmap(map, size) == 0);
    }
}

static void signed_zeros_and_denormals_agree(const char *kernel)
{
    const float a[3] = {1e-30F, -0.0F, -1e-30F};
    const float b[3] = {-1e-30F, 5.0F, 1e-30F};
    for (size_t n = 1; n <= 3; n++) {
        const float reference = dot_with("serial", a, b, n);
        const float dot = dot_with(kernel, a, b, n);
        CHECK(memcmp(&reference, &dot, sizeof dot) == 0);
    }
}

static void a_name_that_cannot_be_honoured_is_an_error(void)
{
    const char *before;
    const char *after;
    CHECK_OK(carag_kernel_active(&before, NULL));
    CHECK(carag_set_kernel("sse9", NULL) == CARAG_BAD_KERNEL);
    for (size_t i = 0; i < carag_kernel_count(); i++)
        if (!carag_kernel_is_available(i))
            CHECK(carag_set_kernel(carag_kernel_name(i), NULL) == CARAG_BAD_KERNEL);
    CHECK_OK(carag_kernel_active(&after, NULL));
    CHECK(strcmp(before, after) == 0);
}

int main(void)
{
    a_name_that_cannot_be_honoured_is_an_error();
    for (size_t i = 0; i < carag_kernel_count(); i++) {
        const char *kernel = carag_kernel_name(i);
        if (!carag_kernel_is_available(i)) {
            printf("%s: not run here\n", kernel);
            continue;
        }
        equals_the_reference_and_the_truth(kernel);
        reads_no_further_than_n(kernel);
        signed_zeros_and_denormals_agree(kernel);
        printf("%s: ok\n", kernel);
    }
    return 0;
}
