/* Files of adapters: those that are refused, each with a sentence, change nothing. */
#include "golden/generation.h"

#include "fixture_file.h"
#include "golden/lora_files.h"

#include <wick/lora.h>

#include <unistd.h>

/* --- Files that are refused, each with a sentence, and change nothing --- */

typedef struct refusal {
    wick_model *model;
    char path[64];
    lora_values good, bad;
} refusal;

static void check_refused(const refusal *r, wick_status status, const char *says) {
    wick_error error = {.status = WICK_OK};
    wick_lora *lora = (wick_lora *)1;
    wick_model_info before, after;
    wick_model_get_info(r->model, &before);
    assert_int_equal(wick_lora_open(r->model, r->path, &lora, &error), status);
    assert_null(lora);
    print_message("%s\n", error.message);
    assert_non_null(strstr(error.message, says));
    assert_int_equal(wick_model_add_adapter(r->model, r->path, 1, NULL), status);
    wick_model_get_info(r->model, &after);
    assert_int_equal(after.weight_bytes, before.weight_bytes);
}

static void check_bad(refusal *r, double alpha, const wick_value *more, wick_status status,
                      const char *says) {
    lora_write(r->model, &r->bad, alpha, more, r->path);
    check_refused(r, status, says);
    r->bad = r->good;
}

static void check_shapes(refusal *r) {
    lora_pair *const pair = &r->bad.pairs[2];
    pair->n -= 1;
    check_bad(r, 1, NULL, WICK_ERR_MISMATCH, pair->weight.text);
    pair->k -= 2;
    check_bad(r, 1, NULL, WICK_ERR_MISMATCH, pair->weight.text);
    pair->weight = lora_text("blk.0.attn_norm.weight");
    check_bad(r, 1, NULL, WICK_ERR_UNSUPPORTED, "blk.0.attn_norm.weight");
    pair->weight = lora_text("blk.70000.attn_q.weight");
    check_bad(r, 1, NULL, WICK_ERR_UNSUPPORTED, "blk.70000.attn_q.weight");
    r->bad.n = 0;
    check_bad(r, 1, NULL, WICK_ERR_FORMAT, "no tensors");
    lora_values *const huge = malloc(sizeof *huge);
    lora_make(r->model, 5000, 0, 1000, huge);
    lora_write(r->model, huge, 1, NULL, r->path);
    check_refused(r, WICK_ERR_VALUE, "rank");
    lora_free(huge);
    free(huge);
}

static void check_settings(refusal *r) {
    const wick_value unknown = {
        .key = lora_text("adapter.alora.invocation_tokens"), .type = WICK_VALUE_U32, .u = 1};
    const wick_value no_flag = lora_text_value("adapter.lora.use_rslora", "yes");
    check_bad(r, (double)NAN, NULL, WICK_ERR_FORMAT, "alpha");
    check_bad(r, (double)INFINITY, NULL, WICK_ERR_FORMAT, "alpha");
    check_bad(r, 1, &unknown, WICK_ERR_UNSUPPORTED, "adapter.alora.invocation_tokens");
    check_bad(r, 1, &no_flag, WICK_ERR_FORMAT, "use_rslora");
}

/* At many lengths; and the second tensor of a pair under another name. */
static void check_cut(refusal *r) {
    lora_write(r->model, &r->good, 1, NULL, r->path);
    FILE *file = fopen(r->path, "rb+");
    static char bytes[1 << 21];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size > 1000 && size < sizeof bytes);
    char *other = bytes; /* the first name that ends so */
    while (memcmp(other, ".lora_b", 7) != 0) other++;
    other[6] = 'c';
    rewind(file);
    fwrite(bytes, 1, size, file);
    fclose(file);
    check_refused(r, WICK_ERR_FORMAT, "the other one of the pair");
    other[6] = 'b';
    for (size_t n = 0; n < size; n = n * 5 / 4 + 1) {
        file = fopen(r->path, "wb");
        fwrite(bytes, 1, n, file);
        fclose(file);
        wick_error error = {.status = WICK_OK};
        wick_lora *lora;
        assert_true(wick_lora_open(r->model, r->path, &lora, &error) < 0);
        assert_true(error.message[0] != '\0');
    }
}

static void check_misuse(const refusal *r) {
    wick_lora *lora;
    const wick_lora_use none = {NULL, 1};
    wick_error error;
    wick_session *session;
    assert_int_equal(wick_lora_open(r->model, r->path, &lora, NULL), WICK_OK);
    assert_int_equal(wick_session_open(r->model, NULL, &session, NULL), WICK_OK);
    wick_lora_use uses[9];
    for (int i = 0; i < 9; i++) uses[i] = (wick_lora_use){lora, i == 8 ? NAN : 1};
    assert_int_equal(wick_session_set_loras(session, uses, 9), WICK_ERR_VALUE);
    assert_int_equal(wick_session_set_loras(session, uses + 8, 1), WICK_ERR_VALUE);
    assert_int_equal(wick_session_set_loras(session, &none, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_set_loras(session, NULL, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_error(session, &error), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_set_loras(NULL, NULL, 0), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_session_set_loras(session, uses, 8), WICK_OK);
    wick_session_close(session);
    assert_int_equal(wick_lora_close(lora, NULL), WICK_OK);
    assert_int_equal(wick_lora_close(NULL, NULL), WICK_ERR_ARGUMENT);
}

static void test_refused(void **state) {
    (void)state;
    static refusal r;
    wick_device *device;
    char path[1024];
    if (!fixture_path("WICK_SHARED_DATA", "families/llama.gguf", path, sizeof path)) skip();
    r.model = open_model(path, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device);
    snprintf(r.path, sizeof r.path, "/tmp/wick-refused-%ld.gguf", (long)getpid());
    lora_make(r.model, 4, 0, 1, &r.good);
    r.bad = r.good;
    check_shapes(&r);
    check_settings(&r);
    check_cut(&r);
    lora_write(r.model, &r.good, 1, NULL, r.path);
    check_misuse(&r);
    lora_free(&r.good);
    unlink(r.path);
    wick_model_close(r.model);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
