/* backend/webgpu/gpu/wgsl_nesting.c: what nests too deep for a compiler that recurses, and what
 * only looks like it. */
#include "backend/webgpu/gpu/gpu_native.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* `before`, n times `part`, `between`, n times `after`. */
static bool is_too_deep(const char *before, const char *part, const char *between,
                        const char *after, int n) {
    static char text[1 << 20];
    size_t size = 0;
    const struct {
        const char *text;
        int n;
    } parts[] = {{before, 1}, {part, n}, {between, 1}, {after, n}};
    for (size_t i = 0; i < WK_COUNT(parts); i++) {
        const size_t length = strlen(parts[i].text);
        for (int k = 0; k < parts[i].n; k++) {
            assert_true(size + length < sizeof text);
            memcpy(text + size, parts[i].text, length);
            size += length;
        }
    }
    text[size] = '\0';
    return wk_wgsl_nests_too_deep(text);
}

static void test_deep(void **state) {
    (void)state;
    static const char *const shapes[][4] = {
        {"y = ", "(", "1", ");"},
        {"y = ", "f(", "1", ")"},
        {"y = ", "-", "1;", ""},
        {"y = 1", " + a", ";", ""},
        {"y = a", "[0]", ";", ""},
        {"y = a", ".x", ";", ""},
        {"var z: ", "array<", "i32", ",1>"},
        {"y = ", "f(1, ", "1", ")"},
        {"y = 1", "+ f(a)", ";", ""},
    };
    for (size_t i = 0; i < WK_COUNT(shapes); i++) {
        assert_false(is_too_deep(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 100));
        assert_true(is_too_deep(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 600));
    }
    assert_false(is_too_deep("if b {}", " else if b {}", "", "", 1900));
    assert_true(is_too_deep("if b {}", " else if b {}", "", "", 2100));
}

/* Long, but side by side. */
static void test_flat(void **state) {
    (void)state;
    assert_false(is_too_deep("", "y[i] = -(a + b) * c.x;\n", "", "", 5000));
    assert_false(is_too_deep("const T = array(", "-1.5 + (2), ", "0);", "", 5000));
    assert_false(is_too_deep("f(", "a[0], ", "b);", "", 5000));
    assert_false(is_too_deep("", "// ((((((--------\n", "", "", 5000));
    assert_false(is_too_deep("/*", "((--/*", "", "*/", 5000));
    assert_false(is_too_deep("", "fn f() {}\n", "", "", 5000));
    assert_false(is_too_deep("", ")", "", "", 400));
    assert_false(is_too_deep("/*", "(", "", "", 5000)); /* it does not end */
    assert_false(is_too_deep("/", "", "", "", 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_deep), cmocka_unit_test(test_flat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
