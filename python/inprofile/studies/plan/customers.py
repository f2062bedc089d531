"""Customers as a provider keeps them: a CSV file, a line each, which the router reads as well.

    name,prefix,vlan,session,contract,plan
    alice,10.0.1.0/24 2001:db8:1::/48,,,4 Mbit/s,gold
    bob,,100 100.7,,2 Mbit/s,home

`plan` is the group of flows of the experiment, and the router's template; a column `port` there may be, too.
There is one way to write a file (no quotes, line feeds, no byte order mark): what is read and written again
is the same, byte for byte. What a field means is what it means to the router; both are tested with the same
lines, crates/router/src/config/tests/customer_lines.txt.
"""

from __future__ import annotations

import difflib
import ipaddress
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..._input import read_file
from ...experiment.dump import STARTER
from ...experiment.scenario import ScenarioError, parse
from ...metrics.quantity import bits_per_second

COLUMNS = ("name", "prefix", "vlan", "session", "port", "contract", "plan")
_IDENTITY = ("prefix", "vlan", "session", "port")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_EVERYBODY = ("0.0.0.0/0", "::/0")
_Key = tuple[str, str | None, str | None, int | None]


class CustomerError(ValueError):
    """A file of customers with lines that cannot be used: each with file, line, value and remedy."""


@dataclass(frozen=True)
class Customer:
    """One line."""

    line: int
    name: str
    prefixes: tuple[str, ...]
    vlans: tuple[str, ...]
    """`100`, or `100.7` for VLAN 7 in VLAN 100."""
    sessions: tuple[str, ...]
    ports: tuple[str, ...]
    contract: str
    """Empty: that of the plan."""
    plan: str

    def field(self, column: str) -> str:
        """As the file has it."""
        lists = {"prefix": self.prefixes, "vlan": self.vlans, "session": self.sessions, "port": self.ports}
        return " ".join(lists[column]) if column in lists else str(getattr(self, column))

    def known_by(self) -> Iterator[_Key]:
        """What its packets are known by: each prefix in each VLAN in each session, at each port."""
        return itertools.product(
            [_plain(prefix) for prefix in self.prefixes] or _EVERYBODY,
            [".".join(str(int(n)) for n in vlan.split(".")) for vlan in self.vlans] or (None,),
            [str(int(session)) for session in self.sessions] or (None,),
            [int(port) for port in self.ports] or (None,),
        )


@dataclass(frozen=True)
class Customers:
    """All lines of a file."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[Customer, ...]

    def text(self) -> str:
        """The file, byte for byte as it was read."""
        lines = [",".join(self.columns)]
        lines += [",".join(row.field(column) for column in self.columns) for row in self.rows]
        return "".join(f"{line}\n" for line in lines)

    def of_plan(self, name: str) -> list[Customer]:
        """The customers of one plan, in the order of the file."""
        return [row for row in self.rows if row.plan == name]

    def values(self, groups: Mapping[str, str]) -> dict[str, object]:
        """Overrides that give an experiment's groups these customers; `groups` are they with their contracts.

        Raises CustomerError for a plan that is no group, and for one whose customers have several contracts.
        """
        faults: list[str] = []
        for row in self.rows:
            if row.plan not in groups:
                near = difflib.get_close_matches(row.plan, groups, n=1, cutoff=0.5)
                hint = f'did you mean "{near[0]}"? ' if near else ""
                faults.append(
                    self._fault(
                        row.line,
                        "plan",
                        row.plan,
                        "the experiment has no such group with a contract",
                        f"{hint}write one of {', '.join(groups)}",
                    )
                )
        values: dict[str, object] = {}
        for name in groups:
            rows = self.of_plan(name)
            values[f"flows.{name}.count"] = len(rows)
            contracts = {row.contract or groups[name]: row.line for row in reversed(rows)}
            if len({_rate(c) for c in contracts}) > 1:
                (one, first), (other, second) = sorted(contracts.items(), key=lambda item: item[1])[:2]
                faults.append(
                    self._fault(
                        second,
                        "contract",
                        other,
                        f"line {first} has {one}, and is of plan {name}, too",
                        "give customers with another contract a plan, and a group, of their own",
                    )
                )
            elif contracts:
                values[f"flows.{name}.contract"] = next(iter(contracts))
        if faults:
            raise CustomerError("\n".join(faults))
        return values

    def _fault(self, line: int, column: str, value: str, problem: str, remedy: str) -> str:
        return f'{self.file}:{line}: {column} = "{value}": {problem}\n  {remedy}'


def read_customers(path: str | Path) -> Customers:
    """Read a file of customers. Raises CustomerError, OSError."""
    return parse_customers(read_file(path), str(path))


def parse_customers(data: bytes, file: str = "customers.csv") -> Customers:
    """Customers from bytes; `file` is what messages call them. Raises CustomerError with every fault."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = data[: error.start].count(b"\n") + 1
        raise CustomerError(f"{file}:{at}: this is not UTF-8 text\n  save it as UTF-8") from None
    if text.startswith("\ufeff"):
        raise CustomerError(
            f"{file}:1: the file begins with a byte order mark\n"
            "  save it as UTF-8 without one: sed -i '1s/^\\xef\\xbb\\xbf//' FILE"
        )
    lines = text.split("\n")
    faults = [fault for at, line in enumerate(lines[:-1], 1) if (fault := _shape(file, at, line))]
    if lines[-1]:
        faults.append(
            f'{file}:{len(lines)}: "{lines[-1]}": the last line has no end\n'
            "  the file may have been cut short: end it with a line feed"
        )
    if not faults:
        faults = _header(file, lines[0])
    if faults:
        raise CustomerError("\n".join(faults[:20]))
    columns = tuple(lines[0].split(","))
    rows: list[Customer] = []
    for at, line in enumerate(lines[1:-1], 2):
        try:
            rows.append(_row(file, at, line, columns))
        except CustomerError as error:
            faults.append(str(error))
    found = Customers(file, columns, tuple(rows))
    faults += _twice(found)
    if faults:
        raise CustomerError("\n".join(faults[:20]))
    return found


def _shape(file: str, at: int, line: str) -> str | None:
    """What is wrong with a line, whatever its columns."""
    where = f"{file}:{at}:"
    if line.endswith("\r"):
        return f"{where} the line ends in CR LF\n  save it with line feeds alone: sed -i 's/\\r$//' FILE"
    if not line:
        return f"{where} the line is empty\n  remove it"
    if '"' in line:
        return f"{where} {line}: a quotation mark\n  write fields without quotation marks"
    if any(unicodedata.category(c) == "Cc" for c in line):
        return f"{where} a control character\n  remove it; fields have commas between, not tabs"
    return None


def _header(file: str, line: str) -> list[str]:
    if not line:
        return [f"{file}:1: the file is empty\n  begin it with the columns: {','.join(COLUMNS)}"]
    headings = line.split(",")
    if len(headings) == 1 and ";" in line:
        return [f'{file}:1: "{line}": there are semicolons between the fields\n  write commas']
    faults = [
        f'{file}:1: "{h}": there is no such column\n  write {",".join(COLUMNS)}, or some of these'
        for h in headings
        if h not in (*COLUMNS, "group")
    ]
    if "group" in headings:
        faults.append(
            f'{file}:1: "group": plan knows no groups of customers who share a contract\n'
            "  take the column out, and write the group into the router's file"
        )
    faults += [
        f'{file}:1: "{h}": the column is there twice\n  keep one of the two'
        for h in COLUMNS
        if headings.count(h) > 1
    ]
    faults += [f"{file}:1: there is no column {h}\n  add it" for h in ("name", "plan") if h not in headings]
    if not any(h in headings for h in _IDENTITY):
        faults.append(
            f"{file}:1: nothing says whose packets are meant\n  add a column prefix, vlan, session or port"
        )
    return faults


def _row(file: str, at: int, line: str, columns: Sequence[str]) -> Customer:
    fields = line.split(",")
    where = f"{file}:{at}:"
    if len(fields) != len(columns):
        raise CustomerError(
            f'{where} "{line}": {len(fields)} fields, and the header has {len(columns)}\n'
            f"  write {','.join(columns)}; a field may be empty"
        )
    row = dict(zip(columns, fields, strict=True))
    for column, field in row.items():
        if field != field.strip():
            raise CustomerError(f'{where} {column} = "{field}": spaces around it\n  write "{field.strip()}"')
    words = {column: tuple(row.get(column, "").split(" ")) if row.get(column) else () for column in _IDENTITY}

    def wrong(column: str, value: str, problem: str, remedy: str) -> CustomerError:
        return CustomerError(f'{where} {column} = "{value}": {problem}\n  {remedy}')

    name = row["name"]
    if not _NAME.fullmatch(name):
        raise wrong("name", name, "this is no name", 'write letters, digits, "-", "_" and ".", such as alice')
    for prefix in words["prefix"]:
        _prefix(prefix, wrong)
    for vlan in words["vlan"]:
        if vlan.count(".") > 1 or not all(_whole(n, 4094) for n in vlan.split(".")):
            raise wrong("vlan", vlan, "no such VLAN", "write 100, or 100.7 for VLAN 7 in 100; from 1 to 4094")
    for column in ("session", "port"):
        for number in words[column]:
            if not _whole(number, 65_535):
                raise wrong(column, number, f"no such {column}", "write a number from 1 to 65535")
    if not any(words.values()):
        raise CustomerError(
            f"{where} nothing says whose packets are {name}'s\n  write a prefix, VLAN, session or port"
        )
    contract = row.get("contract", "")
    if contract and (said := _no_rate(contract)):
        raise wrong("contract", contract, "this is no rate", said)
    prefixes, vlans, sessions, ports = (words[column] for column in _IDENTITY)
    return Customer(at, name, prefixes, vlans, sessions, ports, contract, row["plan"])


def _whole(text: str, most: int) -> bool:
    """Whether this is a number from 1 to `most`, in the digits 0 to 9."""
    return bool(re.fullmatch("0*[0-9]{1,6}", text)) and 1 <= int(text.lstrip("0") or "0") <= most


@cache
def _read_rate(text: str) -> str | ScenarioError:
    """A contract as the engine reads it, which the router does alike."""
    try:
        flow = parse(STARTER).with_({"flows.assured.contract": text}).check().effective["flows"][0]
        return str(flow["contract"])
    except ScenarioError as error:
        return error


def _rate(text: str) -> float:
    """bit/s of a contract that has been checked."""
    return bits_per_second(str(_read_rate(text)))


def _no_rate(text: str) -> str:
    """What to write instead of a contract; empty where it is one."""
    found = _read_rate(text)
    return str(found).splitlines()[-1].strip() if isinstance(found, ScenarioError) else ""


def _plain(prefix: str) -> str:
    """The one way to write a prefix that has been checked."""
    address, _, bits = prefix.partition("/")
    return str(ipaddress.ip_network(f"{address}/{int(bits)}" if bits else address))


def _prefix(text: str, wrong: Callable[[str, str, str, str], CustomerError]) -> None:
    address, slash, bits = text.partition("/")
    try:
        if "%" in address:
            raise ValueError
        at = ipaddress.ip_address(address)
    except ValueError:
        raise wrong(
            "prefix", text, "not an address or prefix", "write 10.0.1.0/24 or 2001:db8::/48"
        ) from None
    if not slash:
        return
    most = at.max_prefixlen
    if not re.fullmatch("[0-9]{1,3}", bits) or int(bits) > most:
        raise wrong(
            "prefix", text, "not the length of a prefix", f"write a length from 0 to {most}: {at}/{most}"
        )
    network = ipaddress.ip_network(f"{at}/{int(bits)}", strict=False)
    if network.network_address != at:
        raise wrong(
            "prefix", text, f"the address has bits beyond its prefix of {int(bits)}", f"write {network}"
        )


def _twice(found: Customers) -> list[str]:
    """Names that are there twice, and packets that would be two customers'."""
    faults = []
    names: dict[str, Customer] = {}
    owners: dict[_Key, Customer] = {}
    for row in found.rows:
        if (other := names.setdefault(row.name, row)) is not row:
            faults.append(
                found._fault(
                    row.line, "name", row.name, f"line {other.line} has this name", "give each its own"
                )
            )
        for key in row.known_by():
            if (other := owners.setdefault(key, row)) is not row:
                column = next(c for c in _IDENTITY if row.field(c))
                which = row.field(column)
                remedy = (
                    "give each packets of its own: a longer prefix goes before a shorter one, and equal ones"
                    " need ports of their own"
                )
                faults.append(
                    found._fault(
                        row.line, column, which, f"it is {other.name}'s already, line {other.line}", remedy
                    )
                )
                break
    return faults
