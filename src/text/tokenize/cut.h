/* text/tokenize/cut.h: the patterns of the pre-tokenizers, as scanners (wk_cut in
 * text/tokenize/pretokenize.h).
 *
 * \p{...} is a general category of Unicode, \s is White_Space, (?i:...) ignores case.
 * What no alternative matches is a gap. */
#ifndef WK_TEXT_TOKENIZE_CUT_H
#define WK_TEXT_TOKENIZE_CUT_H

#include "core/str.h"

/* --- Whole patterns: words, numbers, symbols, white space --- */

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
size_t wk_cut_gpt2(wk_str text);
/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
size_t wk_cut_llama3(wk_str text);
/* The same, but \p{N} alone. */
size_t wk_cut_qwen2(wk_str text);
/* The same as that, but marks belong to words: [\p{L}\p{M}]+ and ' '?[^\s\p{L}\p{M}\p{N}]+. */
size_t wk_cut_qwen35(wk_str text);
/* As wk_cut_qwen2, but nothing after symbols: ' '?[^\s\p{L}\p{N}]+. */
size_t wk_cut_seed_coder(wk_str text);
/* As wk_cut_qwen2 without contractions. */
size_t wk_cut_ufakzeka(wk_str text);
/* C|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?
 * |\s*[\r\n]|\s+(?!\S)|\s+ with C as below */
size_t wk_cut_exaone_moe(wk_str text);
/* With U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W for [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C for the
 * contractions (?i:'s|'t|'re|'ve|'m|'ll|'d):
 * [^\r\n\p{L}\p{N}]?U*W+C?|[^\r\n\p{L}\p{N}]?U+W*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
size_t wk_cut_gpt4o(wk_str text);
/* The same without contractions, and \p{N} alone. */
size_t wk_cut_tekken(wk_str text);
/* As wk_cut_gpt4o, but \p{N} alone. */
size_t wk_cut_youtu(wk_str text);
/* As wk_cut_gpt4o, but \p{Han}+ before all, none of \p{Han} in U and W, and [\r\n]* after symbols.
 */
size_t wk_cut_kimi_k2(wk_str text);
/* [!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
size_t wk_cut_deepseek_v3(wk_str text);
/* ' '?[^(\s|.,!?U+2026 U+3002 U+FF0C U+3001 U+0964 U+06D4 U+060C)]+ */
size_t wk_cut_bloom(wk_str text);

/* --- One kind of characters: the first cuts of several --- */

size_t wk_cut_number(wk_str text);             /* \p{N} */
size_t wk_cut_numbers(wk_str text);            /* \p{N}+ */
size_t wk_cut_three_numbers(wk_str text);      /* \p{N}{1,3} */
size_t wk_cut_three_digits(wk_str text);       /* [0-9][0-9][0-9] */
size_t wk_cut_punctuation(wk_str text);        /* [\p{P}$+<=>^~|]+ */
size_t wk_cut_punctuation_falcon(wk_str text); /* [\p{P}$+<=>^~|`]+ */
size_t wk_cut_line_end(wk_str text);           /* [\r\n] */
size_t wk_cut_lines(wk_str text);              /* [^\n]+|\n+ */
size_t wk_cut_last_digits(wk_str text);        /* \d+\b */
/* Of numbers alone, as other cuts leave them: three, and what is left over first: 1|234|567. */
size_t wk_cut_thousands(wk_str text);
size_t wk_cut_last_space(wk_str text);         /* \s+$ */
size_t wk_cut_spaced_word(wk_str text);        /* \s?\p{L}+ */
size_t wk_cut_spaced_punctuation(wk_str text); /* \s?\p{P}+ */
/* \s?[...]+, the cased letters of the scripts that had cases when the pattern was written */
size_t wk_cut_cased_word(wk_str text);
/* \s?[!-/:-~U+FF01-U+FF0F U+FF1A-U+FF5E U+2018-U+201F U+3000-U+3002]+ */
size_t wk_cut_ascii_punctuation(wk_str text);
/* [U+4E00-U+9FA5 U+0800-U+4E00 U+AC00-U+D7FF]+ */
size_t wk_cut_cjk_hangul(wk_str text);
/* [U+4E00-U+9FA5 U+3040-U+309F U+30A0-U+30FF]+ */
size_t wk_cut_cjk_kana(wk_str text);
/* Runs of Hangul, of full-width signs, of Bopomofo, and of [U+4E00-U+9FA5 U+3040-U+30FF] */
size_t wk_cut_youtu_scripts(wk_str text);
/* Runs of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese characters */
size_t wk_cut_asian(wk_str text);
/* Of what wk_cut_llama3 cuts, white space that no line end follows is cut again, by
 * \s{512}(?!\S)|\s{256}(?!\S) and so on to \s{4}(?!\S)|\s{1,2}(?!\S)|\s */
size_t wk_cut_halved_space(wk_str text);
size_t wk_cut_tab_or_spaces(wk_str text); /* [\t\n]|'    '|'  ' */
size_t wk_cut_sign(wk_str text);          /* [\p{P}!-/:-@\[-`{-~] */
bool wk_is_han(uint32_t code);            /* of the script Han */

#endif
