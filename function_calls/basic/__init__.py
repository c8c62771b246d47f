"""BASIC scripts.

The language, its keywords and the runs of scripts; README.md describes the parts. Other rooms import what this
package exports.
"""

from __future__ import annotations

from function_calls.basic.codes import Code as ScriptCode
from function_calls.basic.codes import Profile
from function_calls.basic.compiler import BasicCompiler
from function_calls.basic.functions import ARITIES
from function_calls.basic.keyword_modules._rows import RowSources
from function_calls.basic.keyword_modules.schedules import KEYWORD as SCHEDULE_KEYWORD
from function_calls.basic.keywords import Grants, marked_functions
from function_calls.basic.language.form_parts import LiteralCheck
from function_calls.basic.language.forms import Forms, form_of
from function_calls.basic.library.compiled_tools import (
    LibraryTool,
    ScriptPlace,
    WorkFolder,
    bot_of,
    no_such_bot,
    place_of,
    storage_of,
)
from function_calls.basic.library.library import NameOwner, Names, duplicate_tool
from function_calls.basic.library.specs import KEYWORDS, LoadProgram
from function_calls.basic.run.answer_parsers import Answer
from function_calls.basic.run.answer_parsers import read as read_heard
from function_calls.basic.run.driver import RunScheduler
from function_calls.basic.run.handler import ScriptHandler, script_seconds
from function_calls.basic.run.keyword_table import KeywordTable
from function_calls.basic.run.model import ModelOfScripts
from function_calls.basic.run.script_calls import STOPPED_AT, tool_name
from function_calls.basic.run.session import NOTE_KEYWORDS
from function_calls.basic.run.web import WebOfScripts
from function_calls.basic.source import BasicScripts

__all__ = [
    "ARITIES",
    "KEYWORDS",
    "NOTE_KEYWORDS",
    "SCHEDULE_KEYWORD",
    "STOPPED_AT",
    "Answer",
    "BasicCompiler",
    "BasicScripts",
    "Forms",
    "Grants",
    "KeywordTable",
    "LibraryTool",
    "LiteralCheck",
    "LoadProgram",
    "ModelOfScripts",
    "NameOwner",
    "Names",
    "Profile",
    "RowSources",
    "RunScheduler",
    "ScriptCode",
    "ScriptHandler",
    "ScriptPlace",
    "WebOfScripts",
    "WorkFolder",
    "bot_of",
    "duplicate_tool",
    "form_of",
    "marked_functions",
    "no_such_bot",
    "place_of",
    "read_heard",
    "script_seconds",
    "storage_of",
    "tool_name",
]
