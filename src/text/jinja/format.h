/* text/jinja/format.h: texts made by rule: % and format, JSON, HTML escapes, dates. */
#ifndef WK_TEXT_JINJA_FORMAT_H
#define WK_TEXT_JINJA_FORMAT_H

#include "text/jinja/jinja.h"
#include "text/jinja/state.h"

/* format % values, where values is a tuple, a dict or one value. */
wick_status wk_jformat_percent(wk_jinja *j, const wk_jvalue *format, const wk_jvalue *values,
                               wk_jvalue *out);
/* str.format */
wick_status wk_jformat_braces(wk_jinja *j, const wk_jargs *args, wk_jvalue *out);

/* With & < > " ' escaped. */
void wk_jput_html(wk_jbuilder *to, wk_jtext text);
/* The same as a text of its own. */
wick_status wk_jescape(wk_jinja *j, wk_jtext text, wk_jvalue *out);

/* Python's json.dumps. */
wick_status wk_jfilter_tojson(wk_jinja *j, const wk_jargs *args, wk_jvalue *out);

/* strftime in the C locale, without a time zone. */
void wk_jput_time(wk_jbuilder *to, wk_jtext format, const wk_jinja_time *time);

#endif
