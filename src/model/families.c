/* model/families.c: the table of families. */
#include "model/families.h"

#include "core/status.h"

static const wk_family *const families[] = {
    &wk_family_llama,
};

wick_status wk_family_find(wk_str architecture, const wk_family **out, wick_error *err) {
    for (size_t i = 0; i < WK_COUNT(families); i++) {
        if (!wk_str_is(architecture, families[i]->architecture)) continue;
        *out = families[i];
        return WICK_OK;
    }
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "models of the architecture '%s' are not supported yet",
                   wk_str_show(architecture).text);
}
