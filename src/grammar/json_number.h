/* grammar/json_number.h: numbers between bounds, as JSON. */
#ifndef WK_GRAMMAR_JSON_NUMBER_H
#define WK_GRAMMAR_JSON_NUMBER_H

#include "core/status.h"
#include "grammar/expr.h"

typedef struct wk_number_bound {
    bool is_set, is_exclusive;
    double value;
} wk_number_bound;

/* Whole numbers of at most 15 digits (18, where a bound has more than 15), none that is "-0". With
 * a bound, numbers have at most 15 digits before the point, 16 after it, and no exponent.
 * multiple > 0: multiples of it, of at most 15 digits in all, without exponent; 0: any.
 * WICK_ERR_VALUE: there is no such number; WICK_ERR_UNSUPPORTED: a bound or multiple of more
 * digits, or one whose multiples would take too many rules. */
wick_status wk_json_integer(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                            double multiple, wk_expr **out, wick_error *err);
wick_status wk_json_number(wk_rules *rules, wk_number_bound least, wk_number_bound most,
                           double multiple, wk_expr **out, wick_error *err);

#endif
