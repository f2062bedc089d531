"""What `--json` prints, as a JSON Schema: `inprofile schema --output`.

Every object has `format`. It grows when a key goes or comes to mean something else; a program passes over
keys that it does not know, as new ones may come at any time.
"""

from __future__ import annotations

from typing import Any

FORMAT = 1
"""What `format` is."""

_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_WHOLE = {"type": "integer"}
_NUMBER = {"type": "number"}
_MAYBE_NUMBER = {"type": ["number", "null"]}
_TABLE = {"type": "object"}
_MAYBE_TABLE = {"type": ["object", "null"]}
_MAYBE_TABLES = {"type": ["array", "null"], "items": {"type": "object"}}
_TEXTS = {"type": "array", "items": _TEXT}
_TABLES = {"type": "array", "items": _TABLE}
_SEEDS = {"type": "array", "items": {"type": "integer", "minimum": 0}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _of(said: str, keys: dict[str, dict[str, Any]], **optional: dict[str, Any]) -> dict[str, Any]:
    """An object with these keys, all there but the optional ones."""
    properties = {"format": {"const": FORMAT}, **keys, **optional}
    return {"description": said, "type": "object", "properties": properties, "required": ["format", *keys]}


_EFFORT: dict[str, dict[str, Any]] = {"runs": _WHOLE, "cpu_seconds": _NUMBER}
_RUN: dict[str, dict[str, Any]] = {
    "scenario": _TABLE,
    "seeds": _SEEDS,
    "metrics": {"type": "object", "additionalProperties": _ref("metric")},
    "contracts": _TABLE,
    "groups": _TABLES,
    # Null of many flows, where each of them was not asked for: their groups are there.
    "flows": _MAYBE_TABLES,
    "queues": _TABLES,
    "markers": _TABLES,
    "flow_times": _TABLES,
    "delays": _TABLES,
    "conservation": _FLAG,
    "provenance": _TABLE,
}
_COMMANDS: dict[str, list[dict[str, Any]]] = {
    "new": [_of("What was written.", {"file": _TEXT})],
    "new-paper": [_of("What was written.", {"folder": _TEXT, "files": _TEXTS})],
    "new-mechanism": [_of("What was written.", {"folder": _TEXT, "crates": _TEXT, "files": _TEXTS})],
    "check": [
        _of(
            "The experiment with every value, what looks odd, and how much running it is.",
            {
                "effective": _TABLE,
                "warnings": {"type": "array", "items": _ref("problem")},
                "expected": {"type": "object", "additionalProperties": _WHOLE},
            },
            extends=_TEXTS,
        )
    ],
    "run": [
        _of(
            "Every metric over the seeds.",
            {**_RUN, "warnings": {"type": "array", "items": _ref("problem")}, "expected_packets": _WHOLE},
            levels=_TABLES,
            kinds=_TABLES,
        )
    ],
    "live": [_of("As of run, and how well the time was kept.", {**_RUN, "live": _TABLE})],
    "sweep": [
        _of(
            "Every setting with its metrics.",
            {
                "scenario": _TABLE,
                "out": _TEXT,
                "plot": _MAYBE_TEXT,
                "version": _TEXT,
                "axes": {"type": "array"},
                "keys": _TEXTS,
                "design": _TEXT,
                "seeds": _SEEDS,
                "until": {"type": ["array", "object"]},
                "runs": _WHOLE,
                "settings": _TABLES,
            },
        )
    ],
    "explain": [
        _of(
            "Why a flow, or a group, got what it got.",
            {
                "flow": _MAYBE_TEXT,
                "group": _MAYBE_TEXT,
                "flows": _TEXTS,
                "peers": _TEXTS,
                "seeds": _SEEDS,
                "contract": {"type": ["number", "null"]},
                "contract_kept": _MAYBE_TABLE,
                "throughput": _TABLE,
                "against_peers": _MAYBE_TABLE,
                "packets": _TABLES,
                "figures": _TABLES,
                "findings": _TEXTS,
                "goal": {"type": ["number", "null"]},
                "because": _TEXT,
                "together": _FLAG,
                "causes": _TABLES,
                "window": _TABLE,
                "cwnd": {"type": "array"},
            },
            tried=_TABLES,
        )
    ],
    "diagnose": [
        _of(
            "Policer, shaper or neither, with its rate and burst, and what would mend it.",
            {
                "file": _TEXT,
                "kind": {"enum": ["policer", "shaper", "queue", "either", "possible", "loss", "none"]},
                "rate": _MAYBE_NUMBER,
                "rate_interval": {"type": ["array", "null"], "items": _NUMBER},
                "burst": _MAYBE_NUMBER,
                "burst_interval": {"type": ["array", "null"], "items": _NUMBER},
                "sure": _NUMBER,
                "because": _TEXTS,
                "unknown": _TEXTS,
                "goodput": _NUMBER,
                "loss": _NUMBER,
                "mend": _TEXTS,
                "notes": _TEXTS,
            },
            packets=_WHOLE,
            side={"enum": ["before", "after", "either"]},
            rtt=_MAYBE_NUMBER,
            flows=_TEXTS,
            token_bucket=_MAYBE_TABLE,
            delay_slope=_MAYBE_TABLE,
            queue=_MAYBE_TABLE,
        )
    ],
    "view": [
        _of("Where the page is.", {"address": _TEXT}),
        _of("The page as a file.", {"file": _TEXT, "left_out": {}}),
    ],
    "trace": [_of("What was written.", {"file": _TEXT})],
    "export": [_of("What was written.", {"folder": _TEXT, "files": _TEXTS, "rows": {}}, unsaid=_TEXTS)],
    "plot": [_of("What was drawn.", {"file": _TEXT, "inches": {}})],
    "pack": [
        _of(
            "What was packed.",
            {"file": _TEXT, "files": _WHOLE, "sha256": _TEXT, "results": _TABLES, "reports": _TEXTS},
        )
    ],
    "unpack": [
        _of(
            "What was unpacked; with --verify what running it again gave.",
            {"folder": _TEXT, "verified": {"type": ["array", "null"]}},
            results=_TABLES,
            again=_TEXT,
            not_compared=_TEXTS,
        )
    ],
    "compare": [
        _of(
            "Every scheme on every study.",
            {
                "quick": _FLAG,
                "version": _TEXT,
                "schemes": _TABLES,
                "measures": _TABLES,
                "tally": _TABLES,
                "studies": _TABLES,
            },
        ),
        _of("With --plan.", {"schemes": _TEXTS, "studies": _TEXTS, "experiments": _WHOLE, **_EFFORT}),
    ],
    "suite": [
        _of(
            "Every scenario's figures.",
            {"suite": _TEXT, "title": _TEXT, "version": _TEXT, "contestants": _TABLES, "scenarios": _TABLES},
        ),
        _of("With --plan.", {"suite": _TEXT, "scenarios": _TEXTS, "contestants": _TEXTS, **_EFFORT}),
        _of("The files that --files wrote.", {"written": _TEXTS}),
    ],
    "plan": [
        _of(
            "The settings that keep the contracts, or what comes nearest.",
            {
                "title": _TEXT,
                "file": _TEXT,
                "goal": _TABLE,
                "met": _FLAG,
                "chosen": _MAYBE_TABLE,
                "nearest": _MAYBE_TABLE,
                "schemes": _TABLES,
                "files": _TABLE,
            },
        )
    ],
    "plan sell": [
        _of(
            "How many contracts may be sold, and the curve around it.",
            {
                "title": _TEXT,
                "file": _TEXT,
                "groups": _TABLES,
                "kept": _NUMBER,
                "activity": _TABLE,
                "margin": _NUMBER,
                "met": _FLAG,
                "sell": _WHOLE,
                "shown": _MAYBE_TABLE,
                "shown_to_miss": {"type": ["integer", "null"]},
                "tested": _TABLES,
                "curve": _TABLES,
                "runs": _WHOLE,
                "files": _TABLE,
            },
        )
    ],
    "plan tree": [
        _of(
            "How many more customers fit at each level of a tree, and which link breaks first.",
            {
                "title": _TEXT,
                "file": _TEXT,
                "tree": _TEXT,
                "kept": _NUMBER,
                "met": _FLAG,
                "runs": _WHOLE,
                "places": _TABLES,
                "files": _TABLE,
            },
        )
    ],
    "plan policer": [
        _of(
            "The burst, and the curve that it was chosen from.",
            {
                "rate": {},
                "rtt": {},
                "goal": _NUMBER,
                "chosen": _MAYBE_TABLE,
                "curve": _TABLES,
                "commands": {},
            },
        )
    ],
    "wred": [
        _of(
            "Each profile, what is found in it, and what it does to TCP.",
            {"profiles": _TABLES, "pauses": _TABLES},
        )
    ],
    "reproduce": [
        _of("Each paper with its claims and verdicts; with --plan its effort.", {"papers": _TABLES})
    ],
    "atlas": [_of("Each paper with where its claims hold; with --plan its effort.", {"papers": _TABLES})],
    "validate": [
        _of(
            "Where the two runs part.",
            {"identical": _FLAG, "events": _WHOLE, "packets": _WHOLE, "first_divergence": _MAYBE_TABLE},
        ),
        _of("What differs in distribution.", {}),
    ],
    "list": [_of("What there is.", {"mechanisms": _TABLES, "tcp": _TABLES})],
    "glossary": [_of("The entries.", {"glossary": _TABLES})],
    "refused": [
        _of(
            "Of any command with exit code 2.",
            {"error": _TEXT, "problems": {"type": "array", "items": _ref("problem")}},
        )
    ],
}
_PARTS = {
    "metric": {
        "description": "A figure over the seeds, with its 95 % interval (nulls where one seed has none).",
        "type": "object",
        "properties": {
            "unit": _TEXT,
            "mean": {"type": ["number", "null"]},
            "ci95": {"type": ["array", "null"], "items": {"type": ["number", "null"]}},
            "n": _WHOLE,
            "values": {"type": "array", "items": {"type": ["number", "null"]}},
            "seeds": _SEEDS,
            "point": _TEXT,
            "window": _TABLE,
            "header": _TEXT,
        },
        "required": ["unit", "mean", "ci95", "n", "values", "seeds"],
    },
    "problem": {
        "description": "What is wrong, where, and what to write instead.",
        "type": "object",
        "properties": {"file": _MAYBE_TEXT, "line": {"type": ["integer", "null"]}},
    },
}


def output_schema() -> dict[str, Any]:
    """JSON Schema of what `--json` prints: a definition for each command, and one for a refusal."""
    commands = {name: forms[0] if len(forms) == 1 else {"anyOf": forms} for name, forms in _COMMANDS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What inprofile prints with --json",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in commands],
        "$defs": {**commands, **_PARTS},
    }
