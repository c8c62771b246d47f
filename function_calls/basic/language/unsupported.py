"""Statements of other languages and dialects, with the advice shown to authors who write them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from function_calls.basic.language.tokens import Cursor, Kind

_BY_CLOCK = "use SET SCHEDULE to run a script at given times"
_FUNCTION = "write a Python function and CALL it"
_CATCH = "write ON ERROR RESUME NEXT before it, and IF ERROR THEN after it"
_SAY = "use TALK to send a message"
_FILES = "use READ and WRITE for files, FIND and SAVE for tables"
_KNOWLEDGE = "write USE KB, and CALL knowledge_search to search it"
_PERSON = "use TALK TO to notify a member, or CREATE TASK"
_NOT_NEEDED = "delete this line"
_OTHERS = "use TALK TO to send a message to one member or to the chat"
_TABLE = "tables are created automatically; delete these lines and SAVE a row"
FOREIGN: Mapping[str, str] = {
    **dict.fromkeys(("ON INSERT OF", "ON UPDATE OF", "ON DELETE OF", "ON INSERT", "ON UPDATE"), _BY_CLOCK),
    **dict.fromkeys(("ON EVENT", "ON TIMEOUT", "ON MESSAGE", "ON SCHEDULE", "SCHEDULE IN"), _BY_CLOCK),
    **dict.fromkeys(("ON DELETE", "ON EMAIL", "ON FORM SUBMIT", "ON CHANGE", "WEBHOOK"), _BY_CLOCK),
    **dict.fromkeys(("ADD KB", "THINK KB", "SET KB"), _KNOWLEDGE),
    **dict.fromkeys(("USE WEBSITE", "ADD WEBSITE"), "use GET to read a page"),
    "USE MODEL": "the operator selects the model in the settings",
    "SEND WHATSAPP": _OTHERS,
    **dict.fromkeys(("TABLE", "BEGIN TABLE", "NEW TABLE", "CREATE TABLE"), _TABLE),
    "ADD SWITCHER": "use ADD SUGGESTION to offer choices",
    "SET USER": "a script runs for the member who called it",
    "UPLOAD": "use WRITE to create a file, SEND FILE to send one",
    **dict.fromkeys(("COMPRESS", "EXTRACT", "GENERATE PDF", "MERGE PDF"), _FUNCTION),
    **dict.fromkeys(("QRCODE", "QR CODE", "BARCODE"), _FUNCTION),
    **dict.fromkeys(("RUN PYTHON", "RUN JS", "RUN JAVASCRIPT", "RUN BASH", "SHELL", "EXEC", "SYSTEM"), _FUNCTION),
    **dict.fromkeys(("CREATE SITE", "BOOK", "SOAP"), _FUNCTION),
    **dict.fromkeys(("DELEGATE", "ADD BOT", "USE BOT"), "use CALL to run another script"),
    "BROADCAST": _OTHERS,
    **dict.fromkeys(("TRANSFER", "TRANSFER TO", "TRANSFER CONVERSATION", "ESCALATE"), _PERSON),
    "ADD MEMBER": "members are added in the chat itself",
    **dict.fromkeys(("OPEN", "CLOSE", "LOAD"), _FILES),
    **dict.fromkeys(("POKE", "PEEK", "CLS", "LOCATE", "BEEP", "RESTORE", "DATA"), ""),
    **dict.fromkeys(("IMPORT", "INCLUDE", "REQUIRE"), "use CALL to run another script or a function"),
    **dict.fromkeys(("TRY", "CATCH", "FINALLY", "EXCEPT", "END TRY"), _CATCH),
    "REPEAT": "write DO … LOOP UNTIL condition",
    "UNTIL": "write DO … LOOP UNTIL condition",
    **dict.fromkeys(("OPTION EXPLICIT", "OPTION BASE", "OPTION"), _NOT_NEEDED),
    **dict.fromkeys(("VAR", "STATIC", "GLOBAL", "LOCAL", "PUBLIC", "PRIVATE"), "write name = value"),
    "DEF": "write FUNCTION name(a) … END FUNCTION",
    "ELIF": "write ELSEIF condition THEN",
    **dict.fromkeys(("MSGBOX", "ALERT", "ECHO", "WRITELN", "PUTS", "PRINTF", "COUT", "CONSOLE", "DOCUMENT"), _SAY),
}
"""Suggested alternative by the first words of the statement; empty if there is none."""
NO_EFFECT = frozenset(("SET ANSWER MODE", "SET MAX LINES", "PUBLISH"))
"""Keywords that are accepted and ignored."""
COMPANIONS: Mapping[str, str] = {
    **dict.fromkeys(("CATCH", "FINALLY", "EXCEPT", "END TRY"), "TRY"),
    "UNTIL": "REPEAT",
    "TABLE": "TABLE",
    **dict.fromkeys(("END ON",), "ON EVENT"),
    "END SCHEDULE": "SCHEDULE IN",
}
"""Statements that continue another one, which has already been reported, by their words."""
_BEYOND_A_KEYWORD = frozenset(("MERGE PDF",))
"""Foreign statements whose first word is a keyword of this language."""
_MOST_WORDS = 3


def foreign_phrase(words: Sequence[str], keywords: Collection[str]) -> str:
    """The longest prefix of `words` (in upper case) that is a statement of another language only; empty if there is
    none. Prefixes in `keywords`, such as keywords added by an operator, are not foreign."""
    if words and "_" in words[0] and words[0] not in keywords:
        # CREATE_DRAFT is as common as CREATE DRAFT.
        words = [*words[0].split("_"), *words[1:]]
    for count in range(min(len(words), _MOST_WORDS), 0, -1):
        phrase = " ".join(words[:count])
        if phrase in keywords:
            return ""
        if phrase in FOREIGN:
            return phrase if phrase in _BEYOND_A_KEYWORD or words[0] not in keywords else ""
    return ""


def unsupported_message(phrase: str) -> str:
    """Message for a phrase of FOREIGN."""
    instead = FOREIGN[phrase]
    return f"{phrase} is not supported{'; ' if instead else ''}{instead}"


def words_at(cursor: Cursor) -> list[str]:
    """Up to _MOST_WORDS words at the cursor, in upper case."""
    words: list[str] = []
    while len(words) < _MOST_WORDS:
        token = cursor.ahead(len(words)) if words else cursor.now
        if token.kind is not Kind.WORD:
            break
        words.append(str(token.value))
    return words
