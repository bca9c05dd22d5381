/* suite.c - all tests of a build in one program: `suite NAME ARGUMENT...` runs main of test_NAME.c, or of fuzz_NAME.c. */
#include <stdio.h>
#include <string.h>

#define X(name) int main_##name(int argc, char **argv);
TESTS
#undef X

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } tests[] = {
#define X(name) {#name, main_##name},
        TESTS
#undef X
    };
    for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++)
        if (strcmp(argv[1], tests[i].name) == 0)
            return tests[i].run(argc - 1, argv + 1);
    fprintf(stderr, "usage: suite NAME ARGUMENT...\n");
    return 2;
}
