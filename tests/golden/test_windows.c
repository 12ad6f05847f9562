/* Models whose layers have windows keep no more of them than they need: the same bits as with all
 * of it, with chunks of any size; what a session computes again when its tokens change; the memory.
 */
#include "golden/going_back.h"

enum { N = 200, CONTEXT = 640 }; /* blocks are used again, several times */

static const char *const models[] = {"gemma2", "gemma3", "gemma4", "gpt-oss", "olmo3"};

static void make_ids(uint32_t ids[CONTEXT]) {
    for (uint32_t i = 0; i < CONTEXT; i++) ids[i] = (i * 37 + i / 7 + 11) % 300;
}

/* Chunks of 512 hold all that there is: then all keys are kept. */
static void test_same_bits(void **state) {
    (void)state;
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        uint32_t ids[CONTEXT];
        make_ids(ids);
        make_path(models[m], path, sizeof path);
        check_chunks(path, ids, N);
    }
}

static void test_sync(void **state) {
    (void)state;
    const wick_device_desc desc = device_desc();
    for (size_t m = 0; m < WK_COUNT(models); m++) {
        char path[1024];
        uint32_t ids[CONTEXT];
        wick_device *device;
        wick_session *session;
        make_ids(ids);
        make_path(models[m], path, sizeof path);
        wick_model *const model = open_model(path, &desc, &device);
        /* What it has itself, not snapshots. */
        const wick_session_desc four = {.context_length = CONTEXT,
                                        .chunk_length = 64,
                                        .max_tokens = 4,
                                        .ignore_end = true,
                                        .no_reuse = true};
        assert_int_equal(wick_session_open(model, &four, &session, NULL), WICK_OK);
        sync_and_compare(model, session, ids, 300, 0);
        ids[290]++; /* three blocks of windows hold positions from 128 on */
        sync_and_compare(model, session, ids, 295, 290);
        ids[140]++;
        sync_and_compare(model, session, ids, 150, 140);
        ids[139]++; /* what position 139 sees is there still, though more was there before */
        sync_and_compare(model, session, ids, 145, 139);
        ids[134]++; /* and this is not, at 127 */
        sync_and_compare(model, session, ids, 295, 0);
        sync_and_compare(model, session, ids, 295, 294); /* the last one again */
        ids[50]++;
        sync_and_compare(model, session, ids, 60, 0);
        ids[30]++; /* now the first blocks are there */
        sync_and_compare(model, session, ids, 60, 30);
        wick_session_reset(session);
        sync_and_compare(model, session, ids, 400, 0);
        wick_session_close(session);
        wick_model_close(model);
        give_back_device(device);
    }
}

/* A long context costs memory only where all of it is seen. */
static void test_memory(void **state) {
    (void)state;
    const wick_device_desc desc = device_desc();
    char path[1024];
    wick_device *device;
    make_path("gemma3", path, sizeof path); /* of six layers, the last one sees everything */
    wick_model *const model = open_model(path, &desc, &device);
    uint64_t bytes[2];
    for (uint32_t i = 0; i < 2; i++) {
        wick_session *session;
        wick_session_stats stats;
        const wick_session_desc with = {
            .context_length = (1 + 15 * i) * 1024, .chunk_length = 57, .cache = WICK_CACHE_F32};
        assert_int_equal(wick_session_open(model, &with, &session, NULL), WICK_OK);
        wick_session_get_stats(session, &stats);
        bytes[i] = stats.cache_bytes;
        wick_session_close(session);
    }
    /* 16 and 256 blocks of the one, 2 of each of the five. */
    assert_int_equal(bytes[0] % 26, 0);
    assert_int_equal(bytes[1], bytes[0] / 26 * (256 + 10));
    wick_model_close(model);
    give_back_device(device);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
