"""Which commands there are, in groups, each imported when it is given; and completions of keys."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, MutableMapping
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


def _spared(of_command: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    return lambda ctx: spared(of_command(ctx))


class Command(NamedTuple):
    """A command as the list of all shows it."""

    group: str
    help: str
    module: str
    function: str

    def load(self, name: str) -> Any:
        """The command itself, from its module's function (or group)."""
        found = getattr(import_module(f".{self.module}", __package__), self.function)
        if not isinstance(found, typer.Typer):
            made = typer.Typer(add_completion=False, rich_markup_mode=None)
            made.command(name)(found)
            found = made
        command = get_command(found)
        command.name = name
        for one in (command, *getattr(command, "commands", {}).values()):
            one.get_params = _spared(one.get_params)
        return command


#: In which module a command is that has none of its own name.
_BESIDE = {
    "new": "reference",
    "new_mechanism": "reference",
    "new_paper": "reference",
    "validate": "check",
    "suite": "compare",
    "atlas": "reproduce",
    "trace": "export",
    "plot": "export",
    "unpack": "pack",
    "list_": "reference",
    "glossary": "reference",
    "schema": "reference",
}


def _of(group: str, **commands: str) -> Iterator[tuple[str, Command]]:
    for function, said in commands.items():
        module = _BESIDE.get(function, function)
        yield function.rstrip("_").replace("_", "-"), Command(group, said, module, function)


COMMANDS = dict(
    [
        *_of(
            "Experiments",
            new="Write a commented experiment file, ready to run.",
            check="Check an experiment: draw its topology, print every value, and warn of what looks odd.",
            run="Run an experiment once per seed; print metrics with 95 % confidence intervals.",
            sweep="Run an experiment over the values of some keys; what is finished is kept.",
            trace="Put a trace of a link in mahimahi's format into an experiment, or write a link as one.",
            live="Run an experiment with real hosts: the kernel's TCP, in wall time.",
        ),
        *_of(
            "Results",
            explain="Explain why a flow got the rate it got: contract, marking, losses, RTOs.",
            diagnose="Tell from a capture whether a policer or a shaper is on the way, and what mends it.",
            view="Show runs and sweeps, or a running inprofiled, in a browser.",
            plot="Draw what a folder holds for a paper: PDF, fonts embedded, units on the axes.",
            pack="Pack a folder of experiments, mechanisms and results into one file to be verified.",
            unpack="Unpack such a file; with --verify run it again, and compare.",
            export="Write the tables of a result, a sweep or an ns-2 trace as CSV.",
        ),
        *_of(
            "Studies",
            compare="Compare marker/AQM schemes with the same tuning budget, at equal mean queueing delay.",
            suite="Run RFC 7928's scenarios, or L4S's coexistence map, for every queue discipline.",
            plan="Find settings that keep a promise: plan FILE for a link and its contracts.",
            wred="Check WRED profiles of a switch, draw them, and simulate what they do to TCP.",
        ),
        *_of(
            "Evidence",
            reproduce="Reproduce papers: run their experiments, judge every claim, write a report.",
            atlas="Map where each claim holds, over readings of the text × unstated inputs.",
            new_paper="Write a folder in which a paper of your own is answered claim by claim.",
            validate="Run an experiment here and in ns-2 2.35, and compare.",
        ),
        *_of(
            "Reference",
            list_="List every marker, queue discipline and scheduler with its parameters.",
            glossary="Define every metric, column and word that is printed.",
            schema="Print the JSON Schema of the experiment file, or of what --json prints.",
            new_mechanism="Write a crate with a mechanism of your own in Rust.",
        ),
    ]
)


class _Loaded(MutableMapping[str, Any]):
    """The commands by name, each imported once it is asked for."""

    def __init__(self) -> None:
        self._there: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._there:
            self._there[name] = COMMANDS[name].load(name)
        return self._there[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._there[name] = command

    def __delitem__(self, name: str) -> None:
        del self._there[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS


class Commands(TyperGroup):
    """`inprofile`: lists its commands, and completes their names, without importing one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": None})
        self.commands = _Loaded()

    def get_params(self, ctx: Any) -> list[Any]:
        """See `click.Command.get_params`."""
        return spared(super().get_params(ctx))

    def _listed(self) -> TyperGroup:
        """The same, of commands that can only be listed."""
        listed = copy(self)
        listed.commands = {name: TyperCommand(name, help=c.help) for name, c in COMMANDS.items()}
        return listed

    def list_commands(self, ctx: Any) -> list[str]:
        """See `click.Group.list_commands`."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See `click.Group.format_commands`."""
        wide = max(map(len, COMMANDS))
        for group in dict.fromkeys(c.group for c in COMMANDS.values()):
            with formatter.section(group):
                formatter.write_dl(
                    [(name.ljust(wide), c.help) for name, c in COMMANDS.items() if c.group == group]
                )

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """See `click.Command.shell_complete`."""
        ctx.command = self._listed()
        return TyperGroup.shell_complete(ctx.command, ctx, incomplete)


def spared(parameters: list[Any]) -> list[Any]:
    """The parameters of a command, each of which converts only what is to be converted.

    Typer converts with pydantic, whose import takes longer than everything else at the start. Texts, paths,
    whole numbers that are defaults and what is not given are what they are; a number that is given, a choice
    or a path that has to exist is left to Typer.
    Of a Typer that converts in another way nothing changes.
    """
    for parameter in parameters:
        build = getattr(parameter, "get_runtime_param", None)
        if build is not None and not isinstance(build, _Value):
            parameter.get_runtime_param = _Value(parameter, build)
    return parameters


class _Value:
    """In place of a parameter's converter, which is built where there is something to convert."""

    def __init__(self, parameter: Any, build: Any) -> None:
        self._build = build
        self._text = parameter.type_descriptor.annotation in (str, list[str])
        self._whole = parameter.type_descriptor.annotation is int
        info = parameter.type_descriptor.parameter_info
        checked = info.exists or info.resolve_path or info.path_type
        self._path = parameter.type_descriptor.annotation in (Path, list[Path]) and not checked

    def __call__(self) -> _Value:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """See `typer._coercion.RuntimeParam.coerce`."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if self._whole and type(value) is int:
            return value
        given = list(value) if several and not isinstance(value, str) else value
        if all(isinstance(one, str) for one in (given if isinstance(given, list) else [given])):
            if self._text:
                return given
            if self._path:
                return [Path(one) for one in given] if isinstance(given, list) else Path(given)
        return self._build().coerce(value, param=param, ctx=ctx)


_MOST = 1 << 20
"""Bytes of a file that are read for its names; a larger one is no experiment that somebody writes."""


def complete_key(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """`KEY=` with what it means; behind the sign the words it may be."""
    from ..experiment.mechanisms import keys

    name, equals, begun = incomplete.partition("=")
    # An option that still has no value leaves what precedes it unread.
    for key in keys(_tree([ctx.params.get("file"), *ctx.args])):
        if not equals and key.name.startswith(name):
            yield f"{key.name}=", key.doc
        elif equals and key.name == name:
            yield from ((f"{name}={word}", "") for word in key.values if word.startswith(begun))


def _tree(words: list[object]) -> dict[str, Any]:
    """The tables of the first of these that is a file; none where none is, as running it will say."""
    for word in words:
        try:
            with Path(str(word)).open("rb") as opened:
                return tomllib.loads(opened.read(_MOST).decode())
        except (OSError, ValueError):
            continue
    return {}
