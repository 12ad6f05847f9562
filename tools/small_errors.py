"""Small errors in C code, for tools/mutants: a comparison the other way round or off by one, plus
for minus, && for ||, a number one larger, a condition negated, a call or an assignment left out,
break for continue, another result. Not in comments, strings, directives or assertions, nor where
nothing comes of it: in prefetches, and `a < b ? a : b` and `if (a > b) a = b` take the smaller one
by <= and >=, too.

By tokens alone, not by a grammar; clang-format's blanks tell a product from a pointer."""

import re

TOKEN = re.compile(r"""(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)|(?P<blank>\s|//[^\n]*|/\*.*?\*/)|
    (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<name>[A-Za-z_]\w*)|
    (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|
    (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|&&|\|\||[-+*/%&|^<>=!]=|.)""", re.S | re.M | re.X)
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
         "||": "&&", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<",
         "&": "|", "|": "&", "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|=",
         "<<=": ">>=", ">>=": "<<=", "++": "--", "--": "++", "true": "false", "false": "true",
         "break": "continue", "continue": "break"}
NONE = {"NULL": "(void *)1", "WICK_OK": "1"}
KEYWORDS = {"if", "for", "while", "do", "switch", "return", "goto", "case", "default", "else",
            "sizeof", "struct", "enum", "static", "const", "break", "continue"}
ASSIGNS = {"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="}


class Code:
    def __init__(self, text):
        self.text, self.pair, opened = text, {}, []
        found = [(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(text)
                 if m.lastgroup not in ("blank", "directive")]
        self.kinds, self.words, self.starts = zip(*found) if found else ((), (), ())
        for i, word in enumerate(self.words):
            if word in ("(", "[", "{"):
                opened.append(i)
            elif word in (")", "]", "}") and opened:
                self.pair[opened.pop()] = i
        self.opening = {end: begin for begin, end in self.pair.items()}
        self.left_out = set()
        for i, word in enumerate(self.words):
            if re.fullmatch(r"_?(static_)?assert|\w*prefetch", word, re.I) and i + 1 in self.pair:
                self.left_out.update(range(i, self.pair[i + 1] + 1))

    def word(self, i):
        return self.words[i] if 0 <= i < len(self.words) else ""

    def end(self, i):
        return self.starts[i] + len(self.words[i])

    def number(self, i):
        word = self.words[i]
        is_length = self.word(i - 1) == "[" and self.word(i + 1) == "]" and (
            self.kinds[i - 3] == "name" or self.word(i - 3) == "*")
        if is_length and self.word(i - 3) != "return":
            return None
        match = re.fullmatch(r"(\d+)([uUlL]*)", word)
        if match and (word[0] != "0" or match.group(1) == "0"):
            return f"{int(match.group(1)) + 1}{match.group(2)}"
        return f"({word} + 1)"

    def span(self, i, step):
        """The tokens of one operand, from i on: up to what binds less than a comparison."""
        ends, begin = {"", ",", ";", "=", "?", ":", "return", "&&", "||", "(", ")", "[", "]"}, i
        jump = self.pair if step > 0 else self.opening
        while i in jump or self.word(i) not in ends:
            i = jump.get(i, i) + step
        return i, self.words[begin:i] if step > 0 else self.words[i + 1:begin + 1]

    def is_extreme(self, i):
        """Whether token i compares two values of which the smaller or the larger one is taken: in
        `a < b ? a : b`, or in `if (a < b) a = b`."""
        (_, left), (end, right) = self.span(i - 1, -1), self.span(i + 1, 1)
        if self.word(end) not in ("?", ")"):
            return False
        middle, one = self.span(end + 1, 1)
        return self.word(middle) == {"?": ":", ")": "="}[self.word(end)] and (
            {one, self.span(middle + 1, 1)[1]} == {left, right})

    def statement_end(self, i):
        """The index of the semicolon, if a call or an assignment begins at token i."""
        before = self.word(i - 1)
        begins = before in (";", "{", "}", "else", "do") or before == ")" and (
            self.word(self.opening.get(i - 1, 0) - 1) in ("if", "for", "while"))
        if not begins or self.words[i] in KEYWORDS or not (
                self.kinds[i] == "name" or self.words[i] == "*"):
            return None
        at, is_assignment, last_call = i, False, None
        while self.word(at) not in (";", "", "{", "}", ":"):
            is_assignment |= self.words[at] in ASSIGNS
            declares = self.kinds[at] == "name" and at > i and (
                self.kinds[at - 1] == "name" or self.words[at - 1] == "*" and at - 1 > i)
            if declares and not is_assignment:
                return None
            last_call = self.pair[at] if self.words[at] == "(" else last_call
            at = self.pair.get(at, at) + 1
        return at if self.word(at) == ";" and (is_assignment or last_call == at - 1) else None

    def changes(self):
        """(where, what, [(begin, end, instead)]) of each small error."""
        for i, word in enumerate(self.words):
            if i in self.left_out:
                continue
            begin, end = self.starts[i], self.end(i)
            spaced = self.text[begin - 1].isspace() and self.text[end:end + 1].isspace()
            instead = SWAPS.get(word)
            if self.kinds[i] == "number":
                instead = self.number(i)
            elif self.kinds[i] == "sign" and not spaced and word not in ("++", "--"):
                instead = None
            elif word in ("<", "<=", ">", ">=") and self.is_extreme(i):
                instead = None
            if instead:
                yield begin, f"{word} to {instead}", [(begin, end, instead)]
            if word in ("if", "while") and i + 1 in self.pair:
                yield begin, f"{word} (!...)", [
                    (self.end(i + 1),) * 2 + ("!(",), (self.starts[self.pair[i + 1]],) * 2 + (")",)]
            if word == "return" and self.word(i + 1) != ";" and self.kinds[i + 1] != "number":
                last = next((k for k in range(i, len(self.words)) if self.words[k] == ";"), None)
                if last and self.word(i + 1) not in ("true", "false"):
                    value = self.text[self.starts[i + 1]:self.starts[last]]
                    instead = NONE.get(value, "0")
                    yield begin, f"return {instead}", [(self.starts[i + 1], self.starts[last],
                                                        instead)]
            last = self.statement_end(i)
            if last:
                gone = " ".join(self.text[begin:self.end(last)].split())
                yield begin, f"without {gone}", [(begin, self.starts[last], "")]
