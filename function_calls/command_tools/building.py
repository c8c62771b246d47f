"""Builds FunctionSpecs from command tools in YAML and reports all errors that can be detected before a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from config.diagnostics import Code as SettingsCode
from config.diagnostics import Diagnostic, Position, did_you_mean
from config.sections.command_tools import OWN_KEYS, CommandTool, StepSettings, WordingSettings
from config.sections.processes import SandboxSettings
from config.wording import diagnostic_of
from config.yaml_document import Location, YamlDocument
from function_calls.command_tools.callables import BadReference, PythonNames, name_of
from function_calls.command_tools.code_arguments import code_with_variables, end_of_options
from function_calls.command_tools.machine import Machine
from function_calls.command_tools.outcomes import WORDS
from function_calls.command_tools.request import RequestArguments
from function_calls.command_tools.run import CommandToolHandler
from function_calls.command_tools.word_templates import (
    BadTemplate,
    Definition,
    Ending,
    Step,
    Template,
    Variable,
    Wording,
    digest_of,
    known_variables,
    template_of,
)
from function_calls.declaration import error_text, parameters_of
from function_calls.schema.arguments import ModelArguments
from function_calls.schema.definition import DefinitionError, build_spec, schema_arguments
from function_calls.schema.schema import EMPTY, UnusableSchema
from function_calls.spec import ArgumentParser, FunctionSpec
from services.llm.model import OfferedFunction
from services.llm.protocols.text_protocol import sample_arguments
from services.llm.text_calls import write_xml_calls
from services.refs import JsonObject
from services.sandbox.sandbox import Isolation

_TYPES: tuple[tuple[type, str], ...] = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))


class BadParameters(ValueError):
    """Parameters without a usable schema; the message has the reason."""


def parameters_for(tool: CommandTool, names: PythonNames) -> tuple[JsonObject, ArgumentParser]:
    """JSON Schema and parser of the arguments: from the sample call, the schema, or a referenced model. Raises
    BadParameters, BadReference and DefinitionError if it is invalid."""
    if tool.sample is not None:
        return schema_arguments(tool.name, _from_sample(tool.name, tool.sample))
    if tool.parameters is None or isinstance(tool.parameters, Mapping):
        return schema_arguments(tool.name, parameters_of(tool.parameters))
    model = names.find(tool.parameters)
    if not (inspect.isclass(model) and (issubclass(model, BaseModel) or is_dataclass(model))):
        raise BadReference(f"{tool.parameters} is neither a pydantic model nor a dataclass")
    try:
        arguments = ModelArguments(model)
    except UnusableSchema as error:
        raise BadParameters(str(error)) from None
    except (Exception, SystemExit) as error:
        raise BadReference(f"{tool.parameters} cannot be asked for its schema: {error_text(error)}") from error
    return arguments.schema, arguments


def _from_sample(name: str, written: Mapping[str, Any]) -> Any:
    """Parameters from a sample call or from an OpenAI definition, as JSON Schema. Raises BadParameters if the name is
    not `name`, or `parameters` is not a mapping."""
    sample = written
    if written.get("type") == "function" and isinstance(written.get("function"), Mapping):
        sample = written["function"]
    if sample.get("name", name) != name:
        raise BadParameters(f"the schema is that of {sample['name']!r}, but the tool is called {name!r}")
    parameters = sample.get("parameters")
    if not isinstance(parameters, Mapping):
        raise BadParameters("the schema has no mapping `parameters`")
    if parameters.get("type") == "object" and isinstance(parameters.get("properties", {}), Mapping):
        return dict(parameters)
    return _schema_of(parameters)


def _schema_of(value: Any) -> JsonObject:
    """Schema inferred from the sample `value`: every part is required, and shown to models as an example. Raises
    BadParameters for a part of no known type, such as None."""
    if isinstance(value, Mapping):
        properties = {str(name): _schema_of(one) for name, one in value.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    if isinstance(value, list):
        return {"type": "array", "items": _schema_of(value[0]) if value else {}, "examples": [value]}
    for kind, called in _TYPES:
        if isinstance(value, kind):
            return {"type": called, "examples": [value]}
    raise BadParameters("a sample value is empty: its type is unknown")


class Sensitive:
    """Tracks which variables contain values of sensitive parameters."""

    def __init__(self, parameters: Iterable[str]) -> None:
        self._holds: dict[str, tuple[str, ...]] = {name: (name,) for name in parameters}

    def within(self, template: Template) -> tuple[str, ...]:
        """Sensitive parameters whose values occur in `template`."""
        return tuple(dict.fromkeys(name for one in template.variables for name in self._holds.get(one.root, ())))

    def made(self, variable: str, template: Template) -> None:
        """Record that `variable` has the value of `template`."""
        self._holds[variable] = self.within(template)


class Code(StrEnum):
    """Codes of problems with command tools. Closed list."""

    UNKNOWN_KEY = "commands.unknown_key"
    BAD_VALUE = "commands.bad_value"
    MISSING = "commands.missing"
    UNKNOWN_VARIABLE = "commands.unknown_variable"
    BAD_PYTHON = "commands.bad_python"
    BAD_PARAMETERS = "commands.bad_parameters"
    DUPLICATE_NAME = "commands.duplicate_name"
    UNUSABLE = "commands.unusable"


_CODES: dict[str, Code] = {
    SettingsCode.UNKNOWN_KEY: Code.UNKNOWN_KEY,
    SettingsCode.BAD_VALUE: Code.BAD_VALUE,
    SettingsCode.MISSING: Code.MISSING,
}


@dataclass(slots=True)
class Entry:
    """An entry of a file, with its diagnostics."""

    document: YamlDocument
    at: Location
    faults: list[Diagnostic] = field(default_factory=list)

    @property
    def where(self) -> str:
        """`file:line` of the entry."""
        return f"{self.document.file}:{self.document.key_at(self.at).line}"

    def add_diagnostic(self, inner: Sequence[str | int], code: Code, message: str) -> None:
        """Add a diagnostic for the value at `inner`, a path relative to the entry."""
        place = self._place(self._written(inner))
        self.faults.append(Diagnostic(self.document.file, place.line, place.column, code.value, message))

    def add_validation_errors(self, error: ValidationError, root: type[BaseModel]) -> None:
        """Add the errors of pydantic's validation of the entry as a `root`."""
        for details in error.errors(include_url=False):
            written = self._written(details["loc"])
            if self.document.is_unknown((*self.at, *written)):
                continue
            found = diagnostic_of(self.document, details, root, self.at, "known here")
            place = self._place(written, is_key=details["type"] in ("extra_forbidden", "missing"))
            code = _CODES.get(found.code, Code.BAD_VALUE)
            self.faults.append(replace(found, code=code.value, line=place.line, column=place.column))

    def without_unknown(self, value: object, error: ValidationError) -> object:
        """`value` without the unknown keys in `error`, so that the rest can be validated too."""
        rest = deepcopy(value)
        for details in error.errors(include_url=False):
            if details["type"] != "extra_forbidden":
                continue
            *above, key = self._written(details["loc"])
            holder: Any = rest
            for step in above:
                holder = holder[step]
            if isinstance(holder, dict):
                holder.pop(key, None)
        return rest

    def _place(self, written: Location, *, is_key: bool = False) -> Position:
        location = (*self.at, *written)
        return self.document.key_at(location) if is_key else self.document.value_at(location)

    def _written(self, inner: Sequence[str | int]) -> Location:
        """`inner` as a path in the document, without the steps that pydantic adds for short forms."""
        value = self._value()
        written: list[str | int] = []
        for step in inner:
            if step == "[key]" or (isinstance(step, str) and not isinstance(value, dict)):
                continue
            written.append(step)
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                value = None
        return tuple(written)

    def _value(self) -> object:
        value: object = self.document.value
        for step in self.at:
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
        return value


_MOST_SECONDS = 3600.0
_SPARE_SECONDS = 15.0
_ASKED = ["model", "command"]
Path_ = tuple[str | int, ...]


def spec_of(entry: Entry, tool: CommandTool, names: PythonNames, folder: Path, machine: Machine) -> FunctionSpec | None:
    """Build the spec. Returns None and adds diagnostics to `entry` on errors. Relative paths start in `folder`."""
    return _Builder(entry, tool, names, folder).spec(machine)


class _Builder:
    """Builds one spec and collects its diagnostics."""

    def __init__(self, entry: Entry, tool: CommandTool, names: PythonNames, folder: Path) -> None:
        self._entry = entry
        self._tool = tool
        self._names = names
        self._folder = folder
        self._known: dict[str, Any] = {}
        """Variables by name: arguments with their schemas, those of `env` without."""
        self._may_be_more = callable(tool.env) or isinstance(tool.env, str)
        self._required: frozenset[str] = frozenset()
        self._sensitive = Sensitive(tool.sensitive if tool.opts.approval == "each_step" else ())

    def spec(self, machine: Machine) -> FunctionSpec | None:
        parameters, arguments = self._parameters()
        definition = self._definition(parameters)
        if parameters["properties"] and self._tool.is_open_to_models:
            self._check_isolation(machine.sandbox.settings)
        self._check_offered_to()
        prompt = self._system_prompt(parameters)
        if self._entry.faults or definition is None or arguments is None:
            return None
        handler = CommandToolHandler(definition, machine)
        try:
            spec = build_spec(
                name=self._tool.name,
                description=self._tool.description,
                handler=handler.handle,
                arguments=RequestArguments(arguments),
                parameters=parameters,
                options={**self._options(), "system_prompt": prompt},
                source=self._entry.where,
                version=definition.digest,
            )
        except DefinitionError as error:
            self._add_definition_errors(error)
            return None
        handler.spec = spec
        return spec

    def _check_isolation(self, settings: SandboxSettings) -> None:
        """Reject commands whose arguments a model fills, and which could reach any host or the bot's own files."""
        if self._tool.opts.network:
            message = (
                "a model fills the parameters and could send data to any host: say `offered_to: [command]`, or remove "
                "`network`"
            )
            self._entry.add_diagnostic(["opts", "network"], Code.BAD_VALUE, message)
        if self._tool.opts.sandbox == "off" and self._tool.name not in settings.unisolated:
            message = (
                "a model fills the parameters of a command with access to this machine: use the sandbox, or add "
                f"{self._tool.name} to `sandbox.unisolated` in the settings"
            )
            self._entry.add_diagnostic(["opts", "sandbox"], Code.BAD_VALUE, message)

    def _check_offered_to(self) -> None:
        """Reject scheduled calls of tools that ask for each step: they cannot be checked in advance."""
        offered_to = self._tool.offered_to or ()
        if self._tool.opts.approval == "each_step" and "timer" in offered_to:
            message = (
                "opts.approval asks for each step, and a timer has nobody to ask: remove timer, or set `approval: none`"
            )
            self._entry.add_diagnostic(["offered_to", offered_to.index("timer")], Code.BAD_VALUE, message)

    def _parameters(self) -> tuple[JsonObject, ArgumentParser | None]:
        """Schema and parser of the arguments; an empty schema and None, with diagnostics, if they cannot be used."""
        key = "schema" if self._tool.sample is not None else "parameters"
        try:
            parameters, arguments = parameters_for(self._tool, self._names)
        except BadReference as error:
            self._entry.add_diagnostic([key], Code.BAD_PYTHON, str(error))
        except BadParameters as error:
            self._entry.add_diagnostic([key], Code.BAD_PARAMETERS, str(error))
        except DefinitionError as error:
            for problem in error.problems:
                self._entry.add_diagnostic([key], Code.BAD_PARAMETERS, problem)
        else:
            self._known = known_variables(parameters["properties"])
            self._required = frozenset(parameters["required"])
            return parameters, arguments
        self._may_be_more = True  # variables cannot be checked then
        return EMPTY, None

    def _definition(self, parameters: JsonObject) -> Definition | None:
        tool = self._tool
        env = self._env()
        steps = tuple(self._step(one, ("cmds", index)) for index, one in enumerate(tool.cmds))
        handlers = tool.handlers
        on_exit = None
        if handlers.on_exit is not None:
            on_exit = self._step(handlers.on_exit, ("handlers", "on_exit"))
        definition = Definition(
            name=tool.name,
            steps=steps,
            opts=tool.opts,
            isolation=self._isolation(parameters),
            names=self._names,
            readable=self._readable(),
            env=env,
            setup=self._hook(handlers.setup, 1, ("handlers", "setup")),
            approved=self._hook(handlers.approved, 2, ("handlers", "approved")),
            on_exit=on_exit,
            output=self._output(),
            digest=digest_of(tool.model_dump(mode="python"), parameters, self._names.digests),
        )
        return None if self._entry.faults else definition

    def _isolation(self, parameters: JsonObject) -> Isolation:
        tool = self._tool
        if tool.opts.sandbox is not None:
            return Isolation(tool.opts.sandbox)
        return Isolation.REQUIRED if parameters["properties"] and tool.is_open_to_models else Isolation.PREFERRED

    def _env(self) -> Mapping[str, Template] | Callable[..., Any] | None:
        env = self._tool.env
        if env is None:
            return None
        if not isinstance(env, Mapping):
            return self._hook(env, 1, ("env",))
        templates: dict[str, Template] = {}
        for name, text in env.items():
            if name in self._known:
                self._entry.add_diagnostic(["env", name], Code.BAD_VALUE, f"env.{name} has the name of a parameter")
            templates[name] = self._without_sensitive(self._template(text, ("env", name)), ("env", name))
            self._sensitive.made(name, templates[name])
            self._known[name] = None
        return templates

    def _step(self, step: StepSettings, at: Path_) -> Step:
        if step.when and not self._is_known(step.when):
            self._unknown(step.when, (*at, "when"))
        if step.python is not None:
            function = self._hook(step.python, 2, (*at, "python"))
            return Step(function=function, name=name_of(step.python), when=step.when)
        words = tuple(self._word(text, (*at, "argv", index)) for index, text in enumerate(step.argv))
        if words and words[0].variables:
            message = "the program has to be written out; what is chosen at run time is for `handlers.setup`"
            self._entry.add_diagnostic([*at, "argv", 0], Code.BAD_VALUE, message)
        is_allowed = step.dash == "allowed"
        code = code_with_variables(words, dash_allowed=is_allowed)
        if code is not None:
            message = (
                "a program reads this word as code, or runs it, so nothing may be put into it: give it the value as an "
                'argument, as in [sh, -c, \'echo "$1"\', sh, "${word}"]'
            )
            self._entry.add_diagnostic([*at, "argv", code], Code.BAD_VALUE, message)
        stdin = None
        if step.stdin:
            stdin = self._without_sensitive(self._template(step.stdin, (*at, "stdin"), {"input"}), (*at, "stdin"))
        end = 0 if is_allowed else end_of_options(words)
        return Step(words, stdin=stdin, when=step.when, options_end=end, succeeds_with=step.succeeds_with)

    def _word(self, text: str, at: Path_) -> Template:
        """Template of a command's word. Every variable must have exactly one value, or a form for other cases."""
        template = self._without_sensitive(self._template(text, at), at)
        for variable in template.variables:
            schema = self._known.get(variable.name)
            if variable.is_each or not isinstance(schema, Mapping):
                continue
            each = f"${{{variable.name}...}}"
            if schema.get("type") == "array":
                message = f"{variable.name} is a list: {each} makes a word of each of its items"
                self._entry.add_diagnostic(at, Code.BAD_VALUE, message)
            elif schema.get("type") == "object":
                message = f"{variable.name} has several parts: name one of them, as ${{{variable.name}.part}}"
                self._entry.add_diagnostic(at, Code.BAD_VALUE, message)
            elif variable.root not in self._required and "default" not in schema and not self._may_be_more:
                message = f"{variable.name} may be absent: give it a default, or write {each} for no word then"
                self._entry.add_diagnostic(at, Code.BAD_VALUE, message)
        return template

    def _without_sensitive(self, template: Template, at: Path_) -> Template:
        """Reject sensitive values in a template that a question before a step shows or stores."""
        for name in self._sensitive.within(template):
            message = (
                f"{name} is sensitive, but each step is shown before it runs, and what is known by then is kept with "
                "the question: say `approval: once`"
            )
            self._entry.add_diagnostic(at, Code.BAD_VALUE, message)
        return template

    def _template(self, text: str, at: Path_, more: frozenset[str] | set[str] = frozenset()) -> Template:
        try:
            template = template_of(text)
        except BadTemplate as error:
            self._entry.add_diagnostic(at, Code.BAD_VALUE, str(error))
            return Template(())
        for variable in template.variables:
            if variable.name not in more and not self._is_known(variable.name):
                self._unknown(variable.name, at)
        return template

    def _is_known(self, name: str) -> bool:
        if self._may_be_more or name in self._known:
            return True
        # Parts of an argument without declared properties are unknown and may exist.
        schema = self._known.get(Variable(name).root)
        return "." in name and isinstance(schema, Mapping) and "properties" not in schema

    def _unknown(self, name: str, at: Path_) -> None:
        known = ", ".join(self._known) or "none"
        near = did_you_mean(name, self._known)
        others = f"; there are: {known}. Those of the process's environment are not among them"
        self._entry.add_diagnostic(at, Code.UNKNOWN_VARIABLE, f"there is no variable {name!r}{near or others}")

    def _hook(self, reference: object, takes: int, at: Path_) -> Callable[..., Any] | None:
        if reference is None:
            return None
        try:
            return self._names.function(reference, takes)
        except BadReference as error:
            self._entry.add_diagnostic(at, Code.BAD_PYTHON, str(error))
            return None

    def _output(self) -> Mapping[Ending, Wording]:
        output = self._tool.output
        wordings = {
            Ending.SUCCESS: (output.success, 3),
            Ending.ERROR: (output.error, 3),
            Ending.REJECTED: (output.rejected, 2),
        }
        return {
            ending: self._wording(wording, takes, ("output", ending.value))
            for ending, (wording, takes) in wordings.items()
            if wording is not None
        }

    def _wording(self, wording: WordingSettings, takes: int, at: Path_) -> Wording:
        texts = {
            key: self._template(text, (*at, key), WORDS)
            for key, text in (("model", wording.model), ("chat", wording.chat))
            if text is not None
        }
        if at[-1] == Ending.SUCCESS:  # the other texts are sent after the last step
            for key, template in texts.items():
                self._without_sensitive(template, (*at, key))
        return Wording(texts.get("model"), texts.get("chat"), self._hook(wording.python, takes, at))

    def _readable(self) -> tuple[Path, ...]:
        paths = [(self._folder / one).resolve() for one in self._tool.opts.readable]
        for index, path in enumerate(paths):
            if not path.exists():
                self._entry.add_diagnostic(["opts", "readable", index], Code.BAD_VALUE, f"{path} is not there")
        return tuple(paths)

    def _system_prompt(self, parameters: JsonObject) -> str:
        """The prompt with `{schema}` in place of the sample call, which each protocol formats in its own way. Empty if
        its function cannot be used, which is a diagnostic."""
        prompt = self._tool.system_prompt
        if prompt.python is None:
            return prompt.text.replace("${schema}", "{schema}")
        function = self._hook(prompt.python, 1, ("system_prompt",))
        if function is None:
            return ""
        offered = OfferedFunction(self._tool.name, self._tool.name, self._tool.description, parameters)
        sample = write_xml_calls([(self._tool.name, sample_arguments(offered))])
        try:
            text = function(sample)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any exception of author code is reported as an error of the file
            self._entry.add_diagnostic(["system_prompt"], Code.BAD_PYTHON, f"it fails: {error_text(error)}")
            return ""
        if not isinstance(text, str):
            self._entry.add_diagnostic(["system_prompt"], Code.BAD_PYTHON, "it has to return a text")
            return ""
        return text.replace(sample, "{schema}")

    def _options(self) -> dict[str, Any]:
        """Options of functions in general, unchanged, with `touches`, `effect`, the approval, and a default for
        `timeout_seconds` from the number of steps."""
        tool = self._tool
        written = tool.model_dump(mode="python", exclude=set(OWN_KEYS), exclude_none=True, exclude_defaults=True)
        options: dict[str, Any] = {"touches": self._touches(), **written, "effect": tool.effect}
        if tool.opts.approval == "once":
            options["approval"] = tool.opts.approved_by
        if tool.opts.approval == "each_step":
            options.setdefault("offered_to", _ASKED)
        count = tool.opts.max_steps if tool.handlers.setup is not None else len(tool.cmds)
        options.setdefault("timeout_seconds", min(tool.opts.timeout_seconds * count + _SPARE_SECONDS, _MOST_SECONDS))
        return options

    def _touches(self) -> list[str]:
        """Default data labels of a command without declared ones."""
        reaches = [] if self._tool.effect == "read" else ["reaches_out"]
        return ["reads_outside", *reaches, *(["sends_out"] if self._tool.opts.network else [])]

    def _add_definition_errors(self, error: DefinitionError) -> None:
        for problem in error.problems:
            key = problem.partition(":")[0]
            at: Sequence[str] = [key] if key in CommandTool.model_fields else ["examples"] if "example" in key else []
            self._entry.add_diagnostic(at, Code.UNUSABLE, problem)
