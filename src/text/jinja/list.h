/* text/jinja/list.h: what filters over items share. */
#ifndef WK_TEXT_JINJA_LIST_H
#define WK_TEXT_JINJA_LIST_H

#include "text/jinja/state.h"

/* Of the value that is filtered. */
wick_status wk_jself_items(wk_jinja *j, const wk_jargs *args, wk_jlist *out);
/* The item, or the attribute of it that path ("a.b.0" or a number) names; absent or None: the item
 * itself. fallback stands for each part that is undefined; NULL, absent or None: nothing does. */
wick_status wk_jpath(wk_jinja *j, const wk_jvalue *item, const wk_jvalue *path,
                     const wk_jvalue *fallback, wk_jvalue *out);
/* What a key is compared as: a string in lower case, unless case_sensitive. */
wick_status wk_jfolded(wk_jinja *j, wk_jvalue *key, bool case_sensitive);
typedef struct wk_jsorting {
    const wk_jvalue *path, *fallback; /* of wk_jpath */
    bool case_sensitive, reverse;
    bool skips_equal; /* equal keys are not compared: none and what is undefined have no order */
} wk_jsorting;
/* A new list; equal items stay in their order. */
wick_status wk_jsorted(wk_jinja *j, const wk_jlist *items, const wk_jsorting *by, wk_jvalue *out);

#endif
