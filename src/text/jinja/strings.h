/* text/jinja/strings.h: what methods of str and the filters named like them share. */
#ifndef WK_TEXT_JINJA_STRINGS_H
#define WK_TEXT_JINJA_STRINGS_H

#include "text/jinja/state.h"

typedef enum wk_jletters {
    WK_J_UPPER_CASE,
    WK_J_LOWER_CASE,
    WK_J_FOLD_CASE,
    WK_J_TITLE_CASE, /* as str.title: letters that do not follow a letter */
    WK_J_CAPITALISE,
    WK_J_SWAP_CASE,
} wk_jletters;

/* All of these count what they look at. */
wick_status wk_jletters_of(wk_jinja *j, wk_jtext text, wk_jletters how, wk_jvalue *out);
/* Takes these characters from the ends of *text; chars NULL: white space. */
wick_status wk_jstrip(wk_jinja *j, wk_jtext *text, const wk_jtext *chars, bool left, bool right);
/* The first place of part in text from offset from on, or the last one before to; SIZE_MAX: none.
 */
wick_status wk_jfind_text(wk_jinja *j, wk_jtext text, wk_jtext part, size_t from, size_t *at);
wick_status wk_jfind_last(wk_jinja *j, wk_jtext text, wk_jtext part, size_t to, size_t *at);
/* most < 0: all. */
wick_status wk_jreplace(wk_jinja *j, wk_jtext text, wk_jtext old, wk_jtext new_text, int64_t most,
                        wk_jvalue *out);
/* Lines without their ends, or with them. */
wick_status wk_jsplit_lines(wk_jinja *j, wk_jtext text, bool keep_ends, wk_jvalue *out);
wick_status wk_jcenter(wk_jinja *j, wk_jtext text, int64_t width, wk_jtext fill, wk_jvalue *out);

#endif
