/* SHA-256 (cli/sha256.c, which belongs to no library): the examples of NIST, lengths around the
 * block, pieces of any size. */
#include "../../cli/sha256.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static cli_digest digest_of(const void *bytes, size_t size, size_t piece) {
    cli_sha256 sha;
    cli_sha256_start(&sha);
    for (size_t at = 0; at < size; at += piece)
        cli_sha256_add(&sha, (const char *)bytes + at, piece < size - at ? piece : size - at);
    return cli_sha256_finish(&sha);
}

static void test_examples(void **state) {
    (void)state;
    static const char *const examples[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const cli_digest digest = digest_of(examples[i][0], strlen(examples[i][0]), 1000);
        assert_string_equal(digest.text, examples[i][1]);
    }
    static char million[1000000];
    memset(million, 'a', sizeof million);
    assert_string_equal(digest_of(million, sizeof million, 4096).text,
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The padding takes one block or two. */
static void test_pieces(void **state) {
    (void)state;
    unsigned char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(7 * i);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        const cli_digest whole = digest_of(bytes, size, sizeof bytes);
        for (size_t piece = 1; piece <= 70; piece += 3)
            assert_string_equal(digest_of(bytes, size, piece).text, whole.text);
        if (size > 0) assert_string_not_equal(digest_of(bytes, size - 1, 200).text, whole.text);
    }
    /* By Python's hashlib. */
    assert_string_equal(digest_of(bytes, 55, 200).text,
                        "576a1bf8d4478657e6dc4af9398544765c2a92cde28478b019235cfed315fc09");
    assert_string_equal(digest_of(bytes, 56, 200).text,
                        "9b20501dfd1d99161c257950f3444f3e49230c351c5c8e0943ef369f85f5205d");
    assert_string_equal(digest_of(bytes, 64, 200).text,
                        "d8bc63b4fc1156e5e7d95a418b9bf54cd3174bedbc2db40f74895349b229b3c0");
}

static void test_parse(void **state) {
    (void)state;
    cli_digest digest;
    const char good[] = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";
    assert_true(cli_digest_parse(good, 64, &digest));
    assert_string_equal(digest.text,
                        "0123456789abcdefabcdef0123456789abcdef0123456789abcdef0123456789");
    assert_false(cli_digest_parse(good, 63, &digest));
    assert_string_equal(digest.text, "");
    char bad[65];
    memcpy(bad, good, sizeof bad);
    bad[63] = 'g';
    assert_false(cli_digest_parse(bad, 64, &digest));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
