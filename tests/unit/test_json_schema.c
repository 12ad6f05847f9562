/* grammar/json_schema and grammar/json_pattern: JSON that schemas accept and do not, what is
 * refused. That all that is generated is valid, is tested by tests/cli/test_grammar.py with a
 * validator of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "core/compiler.h"
#include "grammar_reading.h"
#include "grammar/json_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct schema_case {
    const char *schema;
    const char *has[8], *has_not[10]; /* NULL at the end */
} schema_case;

/* As Zod 4 writes it. */
#define ZOD_EMAIL                                                                                  \
    "\"^(?!\\\\.)(?!.*\\\\.\\\\.)([A-Za-z0-9_'+\\\\-\\\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9]"           \
    "[A-Za-z0-9\\\\-]*\\\\.)+[A-Za-z]{2,}$\""

static const schema_case cases[] = {
    {"{}",
     {"{}", "[]", "[1, {\"a\":null}]", "\"x\\n\\u00e9\"", "-1.5e+7", "true", "{ \"a\":\"b\" }"},
     {"", "{", "[1,]", "{a:1}", "01", "\"\n\"", "\"\\ud800\"", "nul", "1 "}},
    {"true", {"1", "null"}, {""}},
    {"{\"type\":\"null\"}", {"null"}, {"0", "nulll"}},
    {"{\"type\":[\"boolean\",\"integer\"]}", {"true", "false", "-12", "0"}, {"1.0", "-0", "\"\""}},
    {"{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
     {"\"ab\"", "\"\\n\xC3\xA9z\"", "\"\\u00e9\\\\\""},
     {"\"a\"", "\"abcd\"", "ab"}},
    {"{\"minLength\":2}", {"\"ab\"", "\"abcdefgh\""}, {"\"a\"", "1", "{}"}},
    {"{\"enum\":[\"a\\\"b\",1,0.5,null,[1,{\"k\":\"v\"}]]}",
     {"\"a\\\"b\"", "1", "0.5", "null", "[1,{\"k\":\"v\"}]"},
     {"\"a\"", "0", "[1]"}},
    {"{\"type\":\"integer\",\"enum\":[\"a\",1]}", {"1"}, {"\"a\""}},
    {"{\"const\":-12.25}", {"-12.25"}, {"12.25", "-12"}},
    {"{\"enum\":[0.50,1.0,2.5E+3,-0.0,{\"a\":[1.0]}]}",
     {"0.50", "1.0", "2.5E+3", "-0.0", "{\"a\":[1.0]}"},
     {"0.5", "1", "1e0", "2500"}},
    {"{\"type\":[\"integer\",\"null\"],\"minimum\":2,\"maximum\":1}", {"null"}, {"1", "2"}},
    {"{\"type\":[\"null\",\"string\"],\"minLength\":2,\"maxLength\":1}", {"null"}, {"\"\""}},
    {"{\"const\":12345678901234567890}", {"12345678901234567890"}, {"12345678901234567e3"}},
    {"{\"type\":\"integer\",\"enum\":[1.0,1.5,12345678901234567890]}",
     {"1.0", "12345678901234567890"},
     {"1.5"}},
    {"{\"const\":\"a\",\"enum\":[\"a\",\"b\"],\"nullable\":true}", {"\"a\""}, {"\"b\"", "null"}},
    {"{\"const\":{\"a\":[1,2]}}",
     {"{\"a\":[1,2]}", "{\"a\": [1, 2]}", "{\n  \"a\": [ 1,2 ]\n}"},
     {"{}"}},
    {"{\"oneOf\":[{\"type\":\"integer\",\"x-a\":1},{\"type\":\"null\"}],\"discriminator\":{}}",
     {"1", "null"},
     {"\"a\""}},
    {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"},"
     "\"c\":{}},\"required\":[\"b\"]}",
     {"{\"b\":null}", "{\"a\":1,\"b\":null}", "{ \"a\": 1, \"b\": null, \"c\": [] }",
      "{\n  \"b\": null\n}"},
     {"{}", "{\"a\":1}", "{\"b\":null,\"a\":1}", "{\"b\":null,\"d\":1}", "{\"b\":null,}",
      "{,\"b\":null}", "{\"a\":1 \"b\":null}", "{\"b\":0}"}},
    {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}",
     {"{}", "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}"},
     {"{\"b\":2,\"a\":1}", "[]"}},
    {"{\"properties\":{\"ab\":{\"const\":1},\"ac\":false,\"q\\\"\":true},"
     "\"additionalProperties\":{\"type\":\"null\"}}",
     {"{\"ab\":1,\"x\":null}", "{\"a\":null}", "{\"abc\":null,\"\":null}", "{\"b\":null}",
      "{\"q\\\"\":5}"},
     {"{\"ab\":null}", "{\"ac\":null}", "{\"x\":1}", "{\"x\":null,\"ab\":1}", "{\"\\u0061b\":null}",
      "{\"q\\\"\":1,\"q\\\"\":null}"}},
    {"{\"type\":\"object\",\"required\":[\"a\"]}",
     {"{\"a\":1}", "{\"a\":1,\"b\":2}"},
     {"{}", "{\"b\":1}"}},
    {"{\"type\":\"object\",\"additionalProperties\":false}", {"{}", "{ }"}, {"{\"a\":1}"}},
    {"{\"patternProperties\":{\"^[a-z]{2}$\":{\"type\":\"integer\"}},\"additionalProperties\":"
     "false}",
     {"{}", "{\"ab\":1,\"cd\":2}"},
     {"{\"a\":1}", "{\"ab\":null}", "{\"AB\":1}"}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":2}",
     {"[1]", "[1,2]", "[ 1, 2 ]"},
     {"[]", "[1,2,3]", "[1,]", "[null]"}},
    {"{\"items\":false}", {"[]", "[ ]"}, {"[1]", "{}"}},
    {"{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"minItems\":1}",
     {"[1]", "[1,2]"},
     {"[]", "[2]", "[1,2,3]", "[1,1]"}},
    {"{\"prefixItems\":[{\"const\":1}],\"items\":{\"const\":0},\"minItems\":2,\"maxItems\":3}",
     {"[1,0]", "[1,0,0]"},
     {"[1]", "[1,0,0,0]", "[0,0]"}},
    {"{\"items\":[{\"const\":1}],\"maxItems\":0}", {"[]"}, {"[1]"}},
    {"{\"anyOf\":[{\"const\":1},{\"type\":\"string\",\"maxLength\":1}]}",
     {"1", "\"a\""},
     {"\"ab\""}},
    {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},"
     "\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
     {"{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}"},
     {"{}"}},
    {"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"const\":1}}"
     ","
     "\"required\":[\"k\"]},{\"$ref\":\"#/$defs/b\"}],\"$defs\":{\"b\":{\"type\":\"object\","
     "\"properties\":{\"k\":{\"enum\":[\"b\",\"c\"]}},\"required\":[\"k\"]}}}",
     {"{\"k\":\"a\",\"x\":1}", "{\"k\":\"c\"}"},
     {"{\"k\":\"b\",\"x\":1}", "{}"}},
    {"{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":3}},\"required\":[\"a\"]},"
     "{\"properties\":{\"a\":{\"type\":\"integer\",\"maximum\":5},\"b\":{\"const\":1}}},"
     "{\"required\":[\"b\"]}]}",
     {"{\"a\":4,\"b\":1}"},
     {"{\"a\":2,\"b\":1}", "{\"a\":6,\"b\":1}", "{\"a\":4}"}},
    {"{\"allOf\":[{\"type\":[\"number\",\"string\"]},{\"type\":[\"integer\",\"null\"]},"
     "{\"minimum\":1},{\"minimum\":2}]}",
     {"2"},
     {"1", "2.5", "null", "\"\""}},
    {"{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/"
     "b\"}],\"$defs\":{\"a\":{\"properties\":{"
     "\"x\":{\"const\":1}},\"required\":[\"x\"]},\"b\":{\"$ref\":\"#/$defs/"
     "c\",\"required\":[\"y\"]},"
     "\"c\":{\"properties\":{\"y\":{\"const\":2}}}}}",
     {"{\"x\":1,\"y\":2}"},
     {"{\"x\":1}", "{\"y\":2}", "{}"}},
    {"{\"$ref\":\"#/definitions/n~0o~1d\",\"definitions\":{\"n~o/d\":{\"properties\":{"
     "\"next\":{\"anyOf\":[{\"$ref\":\"#/definitions/n~0o~1d\"},{\"type\":\"null\"}]}},"
     "\"required\":[\"next\"]}}}",
     {"{\"next\":null}", "{\"next\":{\"next\":{\"next\":null}}}"},
     {"{}", "{\"next\":{}}"}},
    {"{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", {"[]", "[[],[[]]]"}, {"[1]"}},
    {"{\"$ref\":\"#/$defs/a\",\"maxLength\":2,\"$defs\":{\"a\":{\"type\":\"string\"}}}",
     {"\"ab\""},
     {"\"abc\""}},
    {"{\"prefixItems\":[{\"const\":1},{\"const\":2},{\"$ref\":\"#/prefixItems/"
     "1\"}],\"minItems\":3}",
     {"[1,2,2]"},
     {"[1,2,1]", "[1,2,3]"}},
    {"{\"prefixItems\":[{\"const\":0},true,true,true,true,true,true,true,true,{\"const\":7},"
     "{\"$ref\":\"#/prefixItems/9\"}],\"minItems\":11}",
     {"[0,0,0,0,0,0,0,0,0,7,7]"},
     {"[0,0,0,0,0,0,0,0,0,7,0]"}},
    /* Constants of a type. */
    {"{\"type\":[\"null\",\"boolean\"],\"enum\":[null,true,1,\"a\",[1],{\"a\":1}]}",
     {"null", "true"},
     {"1", "\"a\"", "[1]", "{\"a\":1}", "false"}},
    {"{\"type\":[\"array\",\"number\"],\"enum\":[null,true,1.5,\"a\",[1],{\"a\":1}]}",
     {"1.5", "[1]"},
     {"null", "true", "\"a\"", "{\"a\":1}"}},
    {"{\"type\":\"object\",\"enum\":[\"object\",[1],{\"a\":1}]}",
     {"{\"a\":1}"},
     {"[1]", "\"object\""}},
    {"{\"type\":\"integer\",\"enum\":[1,1.5]}", {"1"}, {"1.5"}},
    {"{\"const\":true,\"enum\":[false,true,null]}", {"true"}, {"false", "null"}},
    {"{\"const\":[1,{\"a\":null}],\"enum\":[[1,{\"b\":null}],[1],[1,{\"a\":null}]]}",
     {"[1,{\"a\":null}]"},
     {"[1]", "[1,{\"b\":null}]"}},
    /* One of several, told apart by their values. */
    {"{\"oneOf\":[{\"const\":\"a\",\"title\":\"b\"},{\"const\":\"b\",\"title\":\"a\"}]}",
     {"\"a\"", "\"b\""},
     {"\"c\""}},
    {"{\"oneOf\":[{\"enum\":[\"a\",1]},{\"enum\":[2,\"b\"]},{\"const\":3}]}",
     {"\"a\"", "1", "2", "\"b\"", "3"},
     {"4"}},
    /* Patterns. */
    {"{\"pattern\":\"^[a-c]+\\\\d{2}$\"}",
     {"\"a12\"", "\"abc99\""},
     {"\"12\"", "\"a123\"", "\"d12\""}},
    {"{\"pattern\":\"b\"}", {"\"b\"", "\"abc\"", "\"\\nb\\n\""}, {"\"a\"", "\"\""}},
    {"{\"pattern\":\"^a|b$\"}", {"\"axx\"", "\"xxb\""}, {"\"xa\"", "\"bx\""}},
    {"{\"pattern\":\"^(?:x|\\\\W)*?.\\\\S[^\\\\w\\\\s-]$\"}",
     {"\"xx+a!\"", "\"ab\xC3\xA9\""},
     {"\"ab \"", "\"abc\"", "\"ab-\""}},
    {"{\"pattern\":\"^\\\"\\\\\\\\\\\\x41\\\\u00e9\\\\t\\\\/$\"}",
     {"\"\\\"\\\\A\xC3\xA9\\t/\""},
     {"\"A\""}},
    {"{\"pattern\":\"^$\"}", {"\"\""}, {"\"a\""}},
    /* Lengths beside patterns and formats. */
    {"{\"format\":\"uri\",\"minLength\":1,\"maxLength\":2083}",
     {"\"https://example.org/a\""},
     {"\"\"", "\"a\""}},
    {"{\"pattern\":\"^[a-z]+$\",\"maxLength\":3}",
     {"\"a\"", "\"abc\""},
     {"\"\"", "\"abcd\"", "\"aB\""}},
    {"{\"pattern\":\"^[a-z]+-[a-z]*$\",\"minLength\":4,\"maxLength\":9}",
     {"\"abc-\"", "\"abcde-abc\""},
     {"\"a-b\"", "\"abcdef-abcd\""}},
    {"{\"pattern\":\"^(\\\\d\\\\d|x|abcdef)+$\",\"minLength\":2,\"maxLength\":4}",
     {"\"xx\"", "\"12x\"", "\"x12\""},
     {"\"x\"", "\"12345\"", "\"abcdef\""}},
    {"{\"pattern\":\"b\",\"minLength\":3,\"maxLength\":4}",
     {"\"aab\"", "\"aaba\""},
     {"\"b\"", "\"ab\"", "\"abaaa\""}},
    {"{\"pattern\":\"^\\\\S+@x$\",\"maxLength\":4,\"format\":\"email\"}",
     {"\"a@x\"", "\"ab@x\""},
     {"\"abc@x\"", "\"@x\""}},
    {"{\"format\":\"uuid\",\"maxLength\":4}", {"\"abcd\"", "\"\""}, {"\"abcde\""}},
    {"{\"format\":\"duration\",\"minLength\":1}", {"\"P1D\""}, {"\"\""}},
    {"{\"type\":\"string\",\"format\":\"password\"}", {"\"x\""}, {"1"}},
    /* What says nothing, or nothing that is enforced. */
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"multipleOf\":1},\"uniqueItems\":true,"
     "\"$anchor\":\"a\",\"unknown\":1}",
     {"[1,2]"},
     {"[1.5]"}},
    {"{\"items\":[{\"const\":1}],\"additionalItems\":false}", {"[1]", "[]"}, {"[1,2]"}},
    {"{\"items\":[{\"const\":1}],\"additionalItems\":{\"const\":2},\"minItems\":2}",
     {"[1,2,2]"},
     {"[1]", "[1,1]"}},
    {"{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\"},\"additionalProperties\":{"
     "\"type\":\"null\"},\"minProperties\":0}",
     {"{}", "{\"a\":null}"},
     {"{\"a\":1}"}},
    {"{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"a\",\"b\"]},\"minProperties\":1}",
     {"{\"a\":1}", "{\"b\":null,\"a\":1}"},
     {"{}", "{\"c\":1}"}},
    {"{\"propertyNames\":{\"maxLength\":2,\"minLength\":2},\"properties\":{\"a\":{},\"ab\":{},"
     "\"abc\":{},\"\u00e9\u00e9\":{}}}",
     {"{}", "{\"ab\":1}", "{\"ab\":1,\"\xC3\xA9\xC3\xA9\":2}"},
     {"{\"a\":1}", "{\"abc\":1}"}},
    {"{\"propertyNames\":{\"pattern\":\"^a\"},\"properties\":{\"b\":{},\"ax\":{}}}",
     {"{}", "{\"ax\":1}"},
     {"{\"b\":1}", "{\"ay\":1}"}},
    {"{\"propertyNames\":{\"type\":\"string\",\"anyOf\":[{\"const\":\"a\\\"\"},{\"$ref\":\"#/$defs/"
     "x\"}]},\"properties\":{\"b\":{},\"a\\\"\":{},\"c\":{}},\"$defs\":{\"x\":{\"enum\":[1,\"c\"]}}"
     "}",
     {"{}", "{\"a\\\"\":1}", "{\"a\\\"\":1,\"c\":1}"},
     {"{\"b\":1}", "{\"a\":1}"}},
    {"{\"propertyNames\":false,\"properties\":{\"b\":{}}}", {"{}"}, {"{\"b\":1}", "{\"c\":1}"}},
    {"{\"propertyNames\":{\"not\":{}},\"additionalProperties\":true}", {"{}"}, {"{\"b\":1}"}},
    {"{\"propertyNames\":{\"enum\":[]},\"properties\":{\"b\":{}}}", {"{}"}, {"{\"b\":1}"}},
    {"{\"propertyNames\":{\"enum\":[\"b\",\"c\"]},\"properties\":{\"a\":{},\"b\":{}}}",
     {"{}", "{\"b\":1}"},
     {"{\"a\":1}", "{\"c\":1}"}},
    {"{\"type\":\"integer\",\"minimum\":-9007199254740991,\"maximum\":9223372036854775807}",
     {"0", "-9000000000000000", "9000000000000000"},
     {"-9007199254740992", "1.5"}},
    {"{\"type\":\"number\",\"minimum\":-3.4028234663852886e38,\"maximum\":1.797e308}",
     {"0.5", "-999999999999999", "999999999999999"},
     {"1e39"}},
    {"{\"type\":\"number\",\"multipleOf\":0.0001,\"minimum\":0,\"maximum\":3.4028234663852886e38}",
     {"0.0001", "12"},
     {"-0.0001", "0.00001"}},
    {"{\"type\":\"string\",\"format\":\"email\",\"pattern\":" ZOD_EMAIL "}",
     {"\"a.b@example.org\""},
     {"\".a@example.org\"", "\"a..b@example.org\""}},
    {"{\"anyOf\":[{\"not\":{}},{\"const\":1}]}", {"1"}, {"2"}},
    {"{\"prefixItems\":[{\"const\":1}],\"items\":{\"not\":{}}}", {"[]", "[1]"}, {"[1,1]"}},
    {"{\"properties\":{\"a\":{\"not\":{}},\"b\":{\"const\":1}}}",
     {"{}", "{\"b\":1}"},
     {"{\"a\":1}"}},
    {"{\"propertyNames\":{\"pattern\":\"^[a-z]$\"},\"required\":[\"x\"],\"additionalProperties\":{"
     "\"const\":1}}",
     {"{\"x\":1}"},
     {"{}", "{\"x\":1,\"y\":1}"}},
    {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"minProperties\":1}",
     {"{\"a\":1}", "{\"b\":2}"},
     {"{}"}},
    /* Constants that other keywords leave, and alternatives that accept nothing. */
    {"{\"enum\":[\"a\",\"\\u00e9\\u20ac\",\"abc\",5],\"minLength\":2,\"maxLength\":2,\"maximum\":"
     "4}",
     {"\"é€\""},
     {"\"a\"", "\"abc\"", "5"}},
    {"{\"const\":\"a\",\"pattern\":\"^a$\"}", {"\"a\""}, {"\"b\""}},
    {"{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[3,2,5]}]}", {"2", "3"}, {"1", "5"}},
    {"{\"type\":\"string\",\"anyOf\":[{\"type\":\"string\",\"maxLength\":1},{\"type\":\"null\"}]}",
     {"\"a\""},
     {"null", "\"ab\""}},
    {"{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"$ref\":\"#/$defs/"
     "n\"},{\"const\":1}],\"$defs\":{\"n\":{\"enum\":[]}}}",
     {"1"},
     {"2"}},
    /* Tags that are not required, and objects that others' names exclude. */
    {"{\"prefixItems\":[{\"$ref\":\"#/$defs/cat\"},{\"oneOf\":[{\"$ref\":\"#/$defs/"
     "cat\"},{\"$ref\":\"#/$defs/"
     "dog\"}]}],\"minItems\":2,\"$defs\":{\"cat\":{\"properties\":{\"k\":{\"const\":\"cat\"}}},"
     "\"dog\":{\"properties\":{\"k\":{\"const\":\"dog\",\"default\":\"dog\"},\"n\":{\"oneOf\":[{\"$"
     "ref\":\"#/$defs/cat\"},{\"$ref\":\"#/$defs/dog\"}]}}}}}",
     {"[{\"k\":\"cat\"},{\"k\":\"dog\"}]",
      "[{\"k\":\"cat\"},{\"k\":\"dog\",\"n\":{\"k\":\"dog\",\"n\":{\"k\":\"cat\"}}}]"},
     {"[{\"k\":\"cat\"},{}]", "[{},{\"k\":\"cat\"}]",
      "[{\"k\":\"cat\"},{\"k\":\"dog\",\"n\":{}}]"}},
    {"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"],"
     "\"additionalProperties\":false},{\"type\":\"object\",\"properties\":{\"b\":{\"const\":2}},"
     "\"required\":[\"b\"],\"additionalProperties\":false}]}",
     {"{\"a\":1}", "{\"b\":2}"},
     {"{}", "{\"a\":1,\"b\":2}"}},
    {"{\"$ref\":\"#/$defs/a%20b\",\"$defs\":{\"a b\":{\"const\":1}}}", {"1"}, {"2"}},
    /* Patterns as ECMA-262, annex B has them. */
    {"{\"pattern\":\"^[\\\\w-\\\\.]+@[a-\\\\d]{2}$\"}",
     {"\"a-.@a1\"", "\"_@-a\""},
     {"\"a!@aa\"", "\"a@bc\""}},
    {"{\"pattern\":\"^[\\\\d-x]$\"}", {"\"1\"", "\"-\"", "\"x\""}, {"\"w\"", "\".\""}},
    {"{\"pattern\":\"^\\\\cJ(?<name>a|b)\\\\uD83D\\\\uDE00$\"}",
     {"\"\\na😀\""},
     {"\"Ja😀\"", "\"\\na\""}},
    /* Formats. */
    {"{\"format\":\"date\"}",
     {"\"2024-02-28\"", "\"1999-12-31\""},
     {"\"2024-02-30\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"24-01-01\""}},
    {"{\"format\":\"date-time\"}",
     {"\"2024-02-28T23:59:59.123Z\"", "\"2024-01-01T00:00:00+01:30\""},
     {"\"2024-02-28\"", "\"2024-02-28T24:00:00Z\"", "\"2024-02-28T10:00:00\""}},
    {"{\"format\":\"uuid\"}",
     {"\"123e4567-e89b-12d3-a456-426614174000\""},
     {"\"123e4567e89b12d3a456426614174000\""}},
    {"{\"format\":\"email\"}", {"\"a.b@example.org\""}, {"\"a@b\"", "\"@b.de\"", "\"a b@c.de\""}},
    {"{\"format\":\"ipv4\"}",
     {"\"192.168.0.255\""},
     {"\"256.1.1.1\"", "\"01.1.1.1\"", "\"1.1.1\""}},
    {"{\"format\":\"uri\"}", {"\"https://example.org/a/b\""}, {"\"example.org\""}},
};

static wick_status try_schema(reading *r, const char *schema, wick_error *error) {
    begin_reading(r, NULL);
    return start_reading(r, wk_json_schema_parse(&r->rules, wk_str_of(schema), error), error);
}

static void open_schema(reading *r, const char *schema) {
    wick_error error = {0};
    if (try_schema(r, schema, &error) != WICK_OK) fail_msg("%s: %s", schema, error.message);
}

static void test_schemas(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const schema_case *const c = &cases[i];
        reading r;
        open_schema(&r, c->schema);
        for (size_t k = 0; c->has[k]; k++)
            if (!reads(&r, wk_str_of(c->has[k]))) fail_msg("%s: not %s", c->schema, c->has[k]);
        for (size_t k = 0; c->has_not[k]; k++)
            if (reads(&r, wk_str_of(c->has_not[k])))
                fail_msg("%s: has %s", c->schema, c->has_not[k]);
        close_reading(&r);
    }
}

/* --- Refusals --- */

static const struct {
    const char *schema, *said;
    wick_status status;
} refusals[] = {
    {"", "JSON, byte 0", WICK_ERR_FORMAT},
    {"{\"type\":", "JSON, byte", WICK_ERR_FORMAT},
    {"[]", "must be an object", WICK_ERR_FORMAT},
    {"{\"const\":NaN}", "not finite", WICK_ERR_FORMAT},
    {"false", "accepts nothing", WICK_ERR_VALUE},
    {"{\"type\":[\"integer\",\"number\"],\"minimum\":2,\"maximum\":1}",
     "no number within the bounds", WICK_ERR_VALUE},
    {"{\"type\":\"text\"}", "there is no type 'text'", WICK_ERR_FORMAT},
    {"{\"type\":[]}", "'type' must be", WICK_ERR_FORMAT},
    {"{\"type\":[1]}", "'type' must be", WICK_ERR_FORMAT},
    {"{\"items\":{\"dependentRequired\":{}}}", "'dependentRequired' is not", WICK_ERR_UNSUPPORTED},
    {"{\"not\":{\"const\":1}}", "'not' is not supported", WICK_ERR_UNSUPPORTED},
    {"{\"minLength\":-1}", "'minLength' must be a whole number", WICK_ERR_FORMAT},
    {"{\"minLength\":1000000}", "more than 100000", WICK_ERR_UNSUPPORTED},
    {"{\"minLength\":2,\"maxLength\":1}", "'maxLength' is less", WICK_ERR_VALUE},
    {"{\"pattern\":\"^(ab)*$\",\"minLength\":3,\"maxLength\":3}", "cannot be held to",
     WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"^ab$\",\"minLength\":3}", "cannot be held to", WICK_ERR_UNSUPPORTED},
    {"{\"minProperties\":1,\"additionalProperties\":false}", "'minProperties' is more",
     WICK_ERR_VALUE},
    {"{\"pattern\":1}", "'pattern' must be a text", WICK_ERR_FORMAT},
    {"{\"format\":1}", "'format' must be a text", WICK_ERR_FORMAT},
    {"{\"minimum\":\"1\"}", "'minimum' must be a number", WICK_ERR_FORMAT},
    {"{\"minimum\":2,\"maximum\":1}", "no number within", WICK_ERR_VALUE},
    {"{\"type\":\"integer\",\"minimum\":1.2,\"maximum\":1.8}", "no whole number", WICK_ERR_VALUE},
    {"{\"minimum\":1e20}", "more than 15 digits", WICK_ERR_UNSUPPORTED},
    {"{\"multipleOf\":0}", "'multipleOf' must be a number above 0", WICK_ERR_FORMAT},
    {"{\"multipleOf\":\"2\"}", "'multipleOf' must be a number above 0", WICK_ERR_FORMAT},
    {"{\"type\":\"integer\",\"multipleOf\":9973}", "'multipleOf' is too large",
     WICK_ERR_UNSUPPORTED},
    {"{\"type\":\"number\",\"multipleOf\":1e-10}", "9 after the point", WICK_ERR_UNSUPPORTED},
    {"{\"type\":\"integer\",\"multipleOf\":1e15}", "more than 15 digits", WICK_ERR_UNSUPPORTED},
    {"{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":8,\"maximum\":13}", "no whole number",
     WICK_ERR_VALUE},
    {"{\"multipleOf\":0.0001,\"minimum\":999999999999999}", "beside 'multipleOf'",
     WICK_ERR_UNSUPPORTED},
    {"{\"allOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", "'multipleOf' in two schemas",
     WICK_ERR_UNSUPPORTED},
    {"{\"type\":\"integer\",\"minimum\":1e17}", "more than 9e15", WICK_ERR_UNSUPPORTED},
    {"{\"type\":\"integer\",\"maximum\":-1e17}", "more than 9e15", WICK_ERR_UNSUPPORTED},
    {"{\"type\":\"number\",\"maximum\":-1e17}", "more than 15 digits", WICK_ERR_UNSUPPORTED},
    {"{\"required\":[\"zz\"],\"propertyNames\":{\"enum\":[\"a\",\"b\"]}}",
     "a name that is required", WICK_ERR_VALUE},
    {"{\"required\":[\"ab\"],\"propertyNames\":{\"pattern\":\"^.$\"}}", "a name that is required",
     WICK_ERR_VALUE},
    {"{\"properties\":{\"a\":{}},\"propertyNames\":{\"pattern\":\"^(?!b)\"}}", "look-around",
     WICK_ERR_UNSUPPORTED},
    {"{\"allOf\":[{\"prefixItems\":[{\"type\":\"string\"}]},{\"items\":{\"type\":\"integer\"}}]}",
     "beside 'items' of another", WICK_ERR_UNSUPPORTED},
    {"{\"not\":{}}", "accepts nothing", WICK_ERR_VALUE},
    {"{\"patternProperties\":{\"^a\":{}},\"additionalProperties\":false,\"propertyNames\":{"
     "\"maxLength\":3}}",
     "'propertyNames' beside 'patternProperties'", WICK_ERR_UNSUPPORTED},
    {"{\"format\":\"email\",\"minLength\":500,\"pattern\":" ZOD_EMAIL "}", "cannot be held",
     WICK_ERR_UNSUPPORTED},
    {"{\"minItems\":3,\"maxItems\":2}", "'minItems' is more", WICK_ERR_VALUE},
    {"{\"items\":false,\"minItems\":1}", "'minItems' is more", WICK_ERR_VALUE},
    {"{\"prefixItems\":1}", "'prefixItems' must be", WICK_ERR_FORMAT},
    {"{\"properties\":1}", "'properties' must be", WICK_ERR_FORMAT},
    {"{\"properties\":{\"a\":1}}", "a schema must be", WICK_ERR_FORMAT},
    {"{\"required\":{}}", "'required' must be", WICK_ERR_FORMAT},
    {"{\"required\":[1]}", "'required' must be", WICK_ERR_FORMAT},
    {"{\"required\":[\"a\"],\"additionalProperties\":false}", "must not be there", WICK_ERR_VALUE},
    {"{\"properties\":{\"a\":false},\"required\":[\"a\"]}", "must not be there", WICK_ERR_VALUE},
    {"{\"patternProperties\":{\"a\":true,\"b\":true}}", "'patternProperties' of several",
     WICK_ERR_UNSUPPORTED},
    {"{\"patternProperties\":1}", "'patternProperties' must be", WICK_ERR_FORMAT},
    {"{\"patternProperties\":{\"a\":true},\"required\":[\"a\"]}", "'required' beside",
     WICK_ERR_UNSUPPORTED},
    {"{\"enum\":[]}", "'enum' leaves no value", WICK_ERR_VALUE},
    {"{\"enum\":1}", "'enum' must be a list", WICK_ERR_FORMAT},
    {"{\"enum\":[\"a\"],\"minLength\":3}", "'enum' leaves no value", WICK_ERR_VALUE},
    {"{\"allOf\":[{\"const\":1},{\"const\":2}]}", "'const' leaves no value", WICK_ERR_VALUE},
    {"{\"anyOf\":[{\"enum\":[]},false]}", "'false' accepts nothing", WICK_ERR_VALUE},
    {"{\"anyOf\":[{\"enum\":[]},{\"not\":{\"const\":1}}]}", "'not' is not", WICK_ERR_UNSUPPORTED},
    {"{\"const\":1,\"enum\":[2]}", "leaves no value", WICK_ERR_VALUE},
    {"{\"anyOf\":[]}", "'anyOf' must be", WICK_ERR_FORMAT},
    {"{\"$ref\":1,\"maxLength\":2}", "'$ref' must be a text", WICK_ERR_FORMAT},
    {"{\"allOf\":[{\"$ref\":1},{\"maxLength\":2}]}", "'$ref' must be a text", WICK_ERR_FORMAT},
    {"{\"prefixItems\":[{\"$ref\":\"#/prefixItems/1\"}]}", "'#/prefixItems/1'", WICK_ERR_FORMAT},
    {"{\"prefixItems\":[{\"$ref\":\"#/prefixItems/a\"}]}", "'#/prefixItems/a'", WICK_ERR_FORMAT},
    {"{\"prefixItems\":[{\"$ref\":\"#/prefixItems/\"}]}", "'#/prefixItems/'", WICK_ERR_FORMAT},
    {"{\"prefixItems\":[{\"$ref\":\"#/prefixItems/0000000\"}]}", "0000000", WICK_ERR_FORMAT},
    {"{\"allOf\":1}", "'allOf' must be", WICK_ERR_FORMAT},
    {"{\"allOf\":[1]}", "'allOf' must contain only object schemas", WICK_ERR_VALUE},
    {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", "'pattern' in two",
     WICK_ERR_UNSUPPORTED},
    {"{\"allOf\":[{\"type\":\"null\"},{\"type\":\"string\"}]}", "leaves no type", WICK_ERR_VALUE},
    {"{\"allOf\":[{\"additionalProperties\":false},{\"properties\":{\"a\":{}}}]}",
     "'additionalProperties' in one", WICK_ERR_UNSUPPORTED},
    {"{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "use 'anyOf'",
     WICK_ERR_UNSUPPORTED},
    {"{\"oneOf\":[{\"enum\":[\"a\",\"b\"]},{\"enum\":[\"c\",\"b\"]}]}", "use 'anyOf'",
     WICK_ERR_UNSUPPORTED},
    {"{\"oneOf\":[{\"const\":\"b\"},{\"enum\":[\"c\",\"b\"]}]}", "use 'anyOf'",
     WICK_ERR_UNSUPPORTED},
    {"{\"oneOf\":[{\"const\":[1]},{\"const\":[2]}]}", "use 'anyOf'", WICK_ERR_UNSUPPORTED},
    {"{\"$ref\":\"http://x/y\"}", "only those that begin with '#/'", WICK_ERR_UNSUPPORTED},
    {"{\"$ref\":\"#/nowhere/x\"}", "leads nowhere", WICK_ERR_FORMAT},
    {"{\"$ref\":1}", "'$ref' must be a text", WICK_ERR_FORMAT},
    {"{\"$ref\":\"#\"}", "left-recursive", WICK_ERR_VALUE},
    {"{\"allOf\":[{\"$ref\":\"#\"}]}", "leads to itself", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"a(?=b)\"}", "look-around", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"\\\\bx\"}", "this escape is not supported", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"(a)\\\\1\"}", "this escape is not supported", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"a$b\"}", "an anchor inside", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"a^\"}", "an anchor here", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"(a\"}", "a group does not end", WICK_ERR_FORMAT},
    {"{\"pattern\":\"a)\"}", "closes what was not opened", WICK_ERR_FORMAT},
    {"{\"pattern\":\"[a\"}", "the class does not end", WICK_ERR_FORMAT},
    {"{\"pattern\":\"[b-a]\"}", "ends before it begins", WICK_ERR_FORMAT},
    {"{\"pattern\":\"*\"}", "nothing to repeat", WICK_ERR_FORMAT},
    {"{\"pattern\":\"a{2,1}\"}", "fewer than the least", WICK_ERR_FORMAT},
    {"{\"pattern\":\"a{x}\"}", "a number is expected", WICK_ERR_FORMAT},
    {"{\"pattern\":\"a{2\"}", "'}' is expected", WICK_ERR_FORMAT},
    {"{\"pattern\":\"a{999999}\"}", "more than 100000", WICK_ERR_UNSUPPORTED},
    {"{\"pattern\":\"\\\\\"}", "ends in a backslash", WICK_ERR_FORMAT},
    {"{\"pattern\":\"\\\\x4\"}", "hexadecimal", WICK_ERR_FORMAT},
    {"{\"pattern\":\"\\\\ud800\"}", "surrogates", WICK_ERR_UNSUPPORTED},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(refusals); i++) {
        reading r;
        wick_error error = {0};
        const wick_status status = try_schema(&r, refusals[i].schema, &error);
        if (status != refusals[i].status || !strstr(error.message, refusals[i].said))
            fail_msg("%s: %d, %s", refusals[i].schema, status, error.message);
    }
}

/* The largest and the longest that is accepted, and the next one. */
static void test_limits(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"minimum\":999999999999999}", "{\"minimum\":1000000000000000}"},
        {"{\"maximum\":-999999999999999}", "{\"maximum\":-1000000000000000}"},
        {"{\"minimum\":1e-24}", "{\"minimum\":1e-25}"},
        {"{\"type\":\"integer\",\"minimum\":9000000000000000}",
         "{\"type\":\"integer\",\"minimum\":9000000000000001}"},
        {"{\"type\":\"integer\",\"maximum\":-9000000000000000}",
         "{\"type\":\"integer\",\"maximum\":-9000000000000001}"},
        {"{\"minLength\":100000}", "{\"minLength\":100001}"},
        {"{\"maxLength\":100000}", "{\"maxLength\":100001}"},
        {"{\"maxItems\":100000}", "{\"maxItems\":100001}"},
    };
    for (size_t i = 0; i < WK_COUNT(pairs); i++) {
        reading r;
        wick_error error = {0};
        open_schema(&r, pairs[i][0]);
        close_reading(&r);
        if (try_schema(&r, pairs[i][1], &error) != WICK_ERR_UNSUPPORTED)
            fail_msg("%s: %s", pairs[i][1], error.message);
    }
}

/* A class has at most 512 ranges; here each is a character by itself. */
static void test_ranges_are_bounded(void **state) {
    (void)state;
    static char text[8 * 514];
    for (uint32_t n = 511; n <= 513; n++) {
        size_t size = (size_t)snprintf(text, sizeof text, "{\"pattern\":\"^[");
        for (uint32_t i = 0; i < n; i++) size += wk_utf8_encode(0x4E00 + 2 * i, text + size);
        snprintf(text + size, sizeof text - size, "]$\"}");
        reading r;
        wick_error error = {0};
        const wick_status status = try_schema(&r, text, &error);
        assert_int_equal(status, n <= 512 ? WICK_OK : WICK_ERR_UNSUPPORTED);
        if (status == WICK_OK)
            close_reading(&r);
        else
            assert_non_null(strstr(error.message, "a class of too many ranges"));
    }
}

/* Merging may double at each level. */
static void test_size_is_bounded(void **state) {
    (void)state;
    static char text[16384];
    size_t size = (size_t)snprintf(text, sizeof text, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 60; i++)
        size += (size_t)snprintf(text + size, sizeof text - size,
                                 "\"%d\":{\"type\":\"array\",\"minItems\":1,\"anyOf\":"
                                 "[{\"items\":{\"$ref\":\"#/$defs/%d\",\"minItems\":%d}},"
                                 "{\"items\":{\"$ref\":\"#/$defs/%d\",\"maxItems\":%d}}]},",
                                 i, i + 1, i, i + 1, 100 + i);
    snprintf(text + size, sizeof text - size, "\"60\":{\"type\":\"array\"}}}");
    reading r;
    wick_error error = {0};
    assert_int_equal(try_schema(&r, text, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "too large"));
}

static void test_memory_runs_out(void **state) {
    (void)state;
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[\"x\",{"
                                 "\"y\":1.5}]},\"b\":{\"allOf\":"
                                 "[{\"minimum\":1},{\"maximum\":2}]},\"c\":{\"pattern\":\"^[a-z]$"
                                 "\"},\"d\":{\"$ref\":\"#\"},\"e\":{\"required\":[\"a\"],"
                                 "\"propertyNames\":{\"pattern\":\"a\"}}},"
                                 "\"additionalProperties\":true}";
    for (uint64_t n = 0;; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wick_error error = {0};
        reading r;
        begin_reading(&r, &checked.heap);
        const wick_status status =
            start_reading(&r, wk_json_schema_parse(&r.rules, wk_str_of(schema), &error), &error);
        if (status == WICK_OK) close_reading(&r);
        assert_true(checked_heap_is_clean(&checked));
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        assert_int_equal(error.status, WICK_ERR_OUT_OF_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schemas),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_memory_runs_out), cmocka_unit_test(test_ranges_are_bounded),
    };
    return cmocka_run_group_tests_name("json_schema", tests, NULL, NULL);
}
