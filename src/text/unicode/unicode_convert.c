/* text/unicode/unicode_convert.c: looks characters up in the tables of unicode_case.c. */
#include "text/unicode/unicode_case.h"

#include "text/unicode/unicode.h"

bool wk_unicode_is(uint32_t code, wk_unicode_property property) {
    const wk_unicode_set *const set = &wk_unicode_sets[property];
    const bool is_of_class = set->classes >> wk_char_class_of(code) & 1;
    uint32_t end = 0; /* of the stretches so far */
    bool is_exception = true;
    for (size_t i = 0; i < set->size && end <= code; is_exception = !is_exception)
        end += wk_unicode_stretch(set, &i);
    return is_of_class != (is_exception && code < end);
}

/* Ranges may interlock where case alternates, so they are searched by their first characters, and a
 * few back. */
static uint32_t shifted(const wk_unicode_mapping *mapping, uint32_t code) {
    size_t low = 0, high = mapping->n_shifts;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (mapping->shifts[middle].first <= code)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && i + 4 > low; i--) {
        const wk_unicode_shift *const s = &mapping->shifts[i - 1];
        if (code - s->first <= s->span && (code - s->first) % s->step == 0)
            return (uint32_t)((int32_t)code + s->offset);
    }
    return code;
}

/* What casefold() gives is the lower case of the upper case, except for Cherokee, whose small
 * letters came later, and two letters whose pairs have no single answer. */
static size_t fold(uint32_t code, uint32_t out[3]) {
    enum { DOTLESS_I = 0x131, CAPITAL_SHARP_S = 0x1E9E };
    const bool is_cherokee =
        (code >= 0x13A0 && code <= 0x13FD) || (code >= 0xAB70 && code <= 0xABBF);
    if (code == CAPITAL_SHARP_S) code = 0xDF;
    const size_t n = wk_unicode_convert(code, WK_UNICODE_TO_UPPER, out);
    if (code == DOTLESS_I) out[0] = code;
    if (code == DOTLESS_I || is_cherokee) return n;
    if (n == 1) return wk_unicode_convert(out[0], WK_UNICODE_TO_LOWER, out);
    for (size_t i = 0; i < n; i++)
        out[i] = shifted(&wk_unicode_mappings[WK_UNICODE_TO_LOWER], out[i]);
    return n;
}

size_t wk_unicode_convert(uint32_t code, wk_unicode_case to, uint32_t out[3]) {
    if (to == WK_UNICODE_FOLD) return fold(code, out);
    const wk_unicode_mapping *const mapping = &wk_unicode_mappings[to];
    size_t low = 0, high = mapping->n_expansions, n = 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (mapping->expansions[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == mapping->n_expansions || mapping->expansions[low].code != code) {
        out[0] = shifted(mapping, code);
        return 1;
    }
    for (; n < 3 && mapping->expansions[low].text[n] != 0; n++)
        out[n] = mapping->expansions[low].text[n];
    return n;
}
