/* api/lora.c: low-rank adapters: those of the server, and those that a request chooses. See api.h.
 */
#include "api/api.h"

/* [{"id": N, "scale": X}]; those that are not named have scale 0. */
static wick_status read_scales(const wick_exchange *x, const wk_json *given, float *scales,
                               wick_error *err) {
    if (given->kind != WK_JSON_ARRAY)
        return wk_fail(err, WICK_ERR_VALUE, "adapters must be an array of objects");
    for (size_t i = 0; i < x->api->n_loras; i++) scales[i] = 0;
    for (const wk_json *item = given->child; item; item = item->next) {
        const wk_json *const id = wk_json_get(item, "id"), *const scale =
                                                               wk_json_get(item, "scale");
        if (!id || id->kind != WK_JSON_NUMBER || !id->is_integer || id->integer < 0 ||
            (uint64_t)id->integer >= x->api->n_loras)
            return wk_fail(err, WICK_ERR_VALUE, "there is no adapter of this id");
        if (!scale || scale->kind != WK_JSON_NUMBER || !(scale->number > -1e6) ||
            !(scale->number < 1e6))
            return wk_fail(err, WICK_ERR_VALUE, "scale must be a number");
        scales[id->integer] = (float)scale->number;
    }
    return WICK_OK;
}

wick_status wk_request_loras(wick_exchange *x, wick_error *err) {
    const wick_api *const api = x->api;
    const wk_json *const given = wk_request_field(x, "lora");
    if (!given && api->n_loras == 0) return WICK_OK;
    float *const scales = wk_arena_array(&x->arena, api->n_loras + 1, sizeof *scales);
    x->loras = wk_arena_array(&x->arena, api->n_loras + 1, sizeof *x->loras);
    if (!scales || !x->loras) return wk_fail_memory(err, 0, "a request");
    for (size_t i = 0; i < api->n_loras; i++) scales[i] = api->loras[i].use.scale;
    if (given) WK_TRY(read_scales(x, given, scales, err));
    for (size_t i = 0; i < api->n_loras; i++)
        if (scales[i] != 0)
            x->loras[x->n_loras++] = (wick_lora_use){api->loras[i].use.lora, scales[i]};
    return WICK_OK;
}

wick_status wk_answer_loras(wick_exchange *x, wick_error *err) {
    wk_strbuf *const to = &x->part;
    (void)err;
    wk_write_open(to, '[');
    for (size_t i = 0; i < x->api->n_loras; i++) {
        wk_write_open(to, '{');
        wk_write_put_whole(to, "id", i);
        wk_write_put(to, "path", x->api->loras[i].path);
        wk_write_key(to, "scale");
        wk_write_number(to, x->api->loras[i].use.scale);
        wk_write_close(to, '}');
    }
    wk_write_close(to, ']');
    wk_exchange_end(x, 200);
    return WICK_OK;
}

wick_status wk_answer_set_loras(wick_exchange *x, wick_error *err) {
    wick_api *const api = x->api;
    float *const scales = wk_arena_array(&x->arena, api->n_loras + 1, sizeof *scales);
    if (!scales) return wk_fail_memory(err, 0, "a request");
    WK_TRY(read_scales(x, x->body, scales, err));
    for (size_t i = 0; i < api->n_loras; i++) api->loras[i].use.scale = scales[i];
    wk_write_raw(&x->part, "{\"success\":true}");
    wk_exchange_end(x, 200);
    return WICK_OK;
}
