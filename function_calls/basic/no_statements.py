"""What is told where a line is no statement, or goes on behind one: what was meant, and what to write instead."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from function_calls.basic.brackets import unknown_phrase
from function_calls.basic.characters import plain
from function_calls.basic.codes import Code, ScriptFault
from function_calls.basic.foreign import belongs_to, foreign_phrase, told_of, words_at
from function_calls.basic.keyword_forms import KeywordForms
from function_calls.basic.mistaken import mistaken_word
from function_calls.basic.reading import Reading
from function_calls.basic.tokens import Cursor, Kind, Token

OVER_LINES = frozenset(("IF", "FOR", "FOREACH", "WHILE", "DO", "SELECT", "SWITCH", "WITH"))
"""The words with which a block begins."""
_OPERATORS = ("+", "-", "*", "/", "\\", "^", "&")
_BEGINS_VALUE = (Kind.TEXT, Kind.NUMBER, Kind.WORD)
_NO_NAMES = frozenset((
    "IF", "THEN", "ELSE", "ELSEIF", "ENDIF", "END", "FOR", "WHILE", "WEND", "LOOP", "DO", "GOTO", "GOSUB", "LET", "DIM",
    "TALK", "PRINT", "HEAR", "SUB", "FUNCTION", "RETURN", "AND", "OR", "NOT", "MOD", "CONST",
))  # fmt: skip
"""Before `=` these are a slip; all other words of the language are names there: next, error, description."""
_FENCE = "``"
_LONGEST_SHOWN = 60
_MOST_BEGUN = 8


class NoStatements:
    """Tells it of one script. The methods that say what is wrong raise ScriptFault."""

    __slots__ = ("_forms", "_reading")

    def __init__(self, forms: KeywordForms, reading: Reading) -> None:
        self._forms = forms
        self._reading = reading

    def check_foreign(self, cursor: Cursor, words: list[str]) -> None:
        """Raise ScriptFault if the statement at the cursor begins as one of another language."""
        if phrase := foreign_phrase(words, self._forms.names):
            self._reading.foreign.add(phrase)
            cursor.fail(told_of(phrase), Code.UNKNOWN_STATEMENT)

    def belongs_to_told(self, cursor: Cursor) -> bool:
        """Whether this is a part of a statement of another language that was told: CATCH of TRY."""
        words = words_at(cursor)
        return any(belongs_to(" ".join(words[:count])) in self._reading.foreign for count in (1, 2))

    def check_name(self, cursor: Cursor, token: Token) -> None:
        """Refuse what nobody calls a variable. Raises ScriptFault."""
        if token.value in _NO_NAMES:
            cursor.fail(f"{token.value} is a word of the language and cannot receive a value; choose another name")

    def no_statement(self, cursor: Cursor) -> NoReturn:
        """A line that begins with no word."""
        token = cursor.now
        following = cursor.ahead()
        if following.kind is Kind.SYMBOL and following.text == "=" and token.kind is not Kind.SYMBOL:
            self.no_name(cursor)
        if token.kind is Kind.TEXT and token.text.startswith(_FENCE):
            cursor.fail("the fence ``` is not part of a script; delete this line, and the one at the end of the script")
        if token.kind is Kind.TEXT:
            cursor.fail(f"a text alone does nothing; to say it, write TALK {token.text.splitlines()[0][:40]}")
        if token.kind is Kind.SYMBOL and token.text == "=":
            cursor.fail("a name is missing before `=`; write `name = value`, all on one line")
        if token.kind is Kind.SYMBOL and token.text in (*_OPERATORS, ","):
            right = "put it at the end of the line before, or end that line with ` _`"
            cursor.fail(f"a line cannot begin with `{token.text}`; {right}")
        if token.kind is Kind.SYMBOL and token.text == ".":
            cursor.fail("`.key = value` stands between WITH and END WITH only")
        if token.kind is Kind.SYMBOL and token.text in (")", "]", "}"):
            cursor.fail(f"`{token.text}` closes no bracket; delete it, or look where its bracket is")
        cursor.fail(f"a statement begins with a word, {cursor.found()}")

    def no_name(self, cursor: Cursor) -> NoReturn:
        """What stands before `=` is no name."""
        cursor.fail(f"only a name can receive a value, {cursor.found()}; a name begins with a letter, as in total = 3")

    def more(self, cursor: Cursor, first: Token) -> NoReturn:
        """The statement is complete, but the line goes on."""
        token = cursor.now
        if first.value in OVER_LINES and first.at.line < token.at.line:
            told = f"the {first.value} of line {first.at.line} is over before this, {cursor.found()}"
            cursor.fail(f"{told}; what follows begins on a line of its own")
        if token.kind is Kind.SYMBOL and token.text in (")", "]", "}"):
            cursor.fail(f"`{token.text}` closes no bracket; delete it, or look where its bracket is")
        if token.kind is Kind.SYMBOL and token.text == ";":
            cursor.fail("statements on one line are separated with `:`, where `;` stands")
        if token.kind is Kind.WORD and token.value == "THEN":
            cursor.fail("THEN belongs to an IF, but none is before it on this line")
        if fault := mistaken_word(cursor, self._reading):
            raise ScriptFault(*fault[:3])
        if phrase := unknown_phrase(cursor):
            first_word = phrase.split()[0]
            if begun := self._begun_with(first_word):
                cursor.index -= 1
                cursor.fail(f"{first_word} goes on as one of {begun}; this is none of them", Code.UNKNOWN_STATEMENT)
            known = (*self._forms.names, *(name.upper() for name in self._reading.functions))
            hint = self._reading.nearest.hint((phrase, phrase.split()[0]), known)
            cursor.index -= 1
            cursor.fail(f"there is no keyword {phrase}{hint}", Code.UNKNOWN_STATEMENT)
        if token.kind in _BEGINS_VALUE:
            shown = token.text.splitlines()[0][:40]
            cursor.fail(f"something is missing before `{shown}`: an operator such as `+`, a comma, or a new line")
        right = _in_parentheses(cursor, first) if cursor.is_symbol(",") else ""
        cursor.fail(f"{first.text} is complete before this, {cursor.found()}{right}")

    def unknown(self, cursor: Cursor, token: Token, following: Token, language: Collection[str]) -> NoReturn:
        """No statement begins with this word. `language`: those with which one does."""
        if following.kind is Kind.SYMBOL and following.text == "(":
            raise ScriptFault(*self._reading.no_function(token.at, token.text.lower())[:3])
        name = token.text if len(token.text) <= _LONGEST_SHOWN else f"{token.text[:_LONGEST_SHOWN]}…"
        if token.text.lower() in self._reading.variables or (
            following.kind is Kind.SYMBOL and following.text in _OPERATORS
        ):
            cursor.fail(f"`{name}` begins no statement; write `{name} = …` to change it, or `TALK {name}` to say it")
        if token.value == "THEN":
            cursor.fail("THEN stands on the line of its IF, behind the condition")
        word = plain(token.text)
        if word != token.text:
            cursor.fail(f"`{token.text}` is written in full-width letters; write {word}", Code.UNKNOWN_STATEMENT)
        words = words_at(cursor)
        self.check_foreign(cursor, words)
        phrases = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
        if begun := self._begun_with(str(token.value)):
            longer = [one for one in phrases if " " in one]
            if hint := self._reading.nearest.hint(longer, begun.split(", ")):
                cursor.fail(f"there is no statement {longer[-1]}{hint}", Code.UNKNOWN_STATEMENT)
            message = f"{token.value} goes on as one of {begun}; this is none of them"
            if token.value == "SET" and following.kind is Kind.WORD and len(following.text) <= _LONGEST_SHOWN // 4:
                message += f". To give a variable a value, write SET {following.text} = …"
            cursor.fail(message, Code.UNKNOWN_STATEMENT)
        known = (*self._forms.names, *language, *(name.upper() for name in self._reading.definitions))
        hint = self._reading.nearest.hint(phrases, known)
        cursor.fail(f"there is no statement {name.upper()}{hint}", Code.UNKNOWN_STATEMENT)

    def _begun_with(self, word: str) -> str:
        """The keywords of more than one word that begin with this one."""
        return ", ".join([name for name in self._forms.names if name.startswith(f"{word} ")][:_MOST_BEGUN])


def _in_parentheses(cursor: Cursor, first: Token) -> str:
    """A hint where the comma belongs to a FORMAT without parentheses: `y = FORMAT x, "0.00"`."""
    count = 1
    while count <= cursor.index and (token := cursor.ahead(-count)).at > first.at and token.kind is not Kind.LINE:
        if token.value == "FORMAT" and token.kind is Kind.WORD:
            return '; write FORMAT(value, "0.00")'
        count += 1
    return ""
