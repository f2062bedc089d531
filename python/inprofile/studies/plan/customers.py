"""Customers as a provider keeps them: a CSV file, a line each, which the router reads as well.

    name,prefix,vlan,session,contract,plan
    alice,10.0.1.0/24 2001:db8:1::/48,,,4 Mbit/s,gold
    bob,,100 100.7,,2 Mbit/s,home

`plan` is the group of flows of the experiment, and the router's template. There is one way to write a file
(no quotes, line feeds, no byte order mark): what is read and written again is the same, byte for byte.
"""

from __future__ import annotations

import difflib
import ipaddress
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..._input import read_file
from ...metrics.quantity import bits_per_second

__all__ = ["COLUMNS", "Customer", "CustomerError", "Customers", "parse_customers", "read_customers"]

COLUMNS = ("name", "prefix", "vlan", "session", "contract", "plan")
_IDENTITY = ("prefix", "vlan", "session")
_NAME = 64
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Key = tuple[str | None, str | None, str | None]


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
    contract: str
    """Empty: that of the plan."""
    plan: str

    def field(self, column: str) -> str:
        """As the file has it."""
        lists = {"prefix": self.prefixes, "vlan": self.vlans, "session": self.sessions}
        return " ".join(lists[column]) if column in lists else str(getattr(self, column))

    def known_by(self) -> Iterator[_Key]:
        """What its packets are known by: each prefix in each VLAN in each session."""
        parts = (self.prefixes or (None,), self.vlans or (None,), self.sessions or (None,))
        return itertools.product(*parts)


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
            if len({bits_per_second(c) for c in contracts}) > 1:
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
    if not line.isprintable():
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
        if h not in COLUMNS
    ]
    faults += [
        f'{file}:1: "{h}": the column is there twice\n  keep one of the two'
        for h in COLUMNS
        if headings.count(h) > 1
    ]
    faults += [f"{file}:1: there is no column {h}\n  add it" for h in ("name", "plan") if h not in headings]
    if not any(h in headings for h in _IDENTITY):
        faults.append(
            f"{file}:1: nothing says whose packets are meant\n  add a column prefix, vlan or session"
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
    if (
        not name
        or len(name) > _NAME
        or not all(c.isalnum() or c in "-_." for c in name)
        or not name.isascii()
    ):
        raise wrong("name", name, "this is no name", 'write letters, digits, "-", "_" and ".", such as alice')
    for prefix in words["prefix"]:
        _prefix(prefix, wrong)
    for vlan in words["vlan"]:
        if not all(n.isdigit() and 1 <= int(n) <= 4094 for n in vlan.split(".")) or vlan.count(".") > 1:
            raise wrong("vlan", vlan, "no such VLAN", "write 100, or 100.7 for VLAN 7 in 100; from 1 to 4094")
    for session in words["session"]:
        if not session.isdigit() or not 1 <= int(session) <= 65_535:
            raise wrong("session", session, "no such session", "write a number from 1 to 65535")
    if not any(words.values()):
        raise CustomerError(
            f"{where} nothing says whose packets are {name}'s\n  write a prefix, VLAN or session"
        )
    if contract := row.get("contract", ""):
        try:
            rate = bits_per_second(contract)
        except (KeyError, ValueError):
            rate = 0.0
        if not 0 < rate < float("inf"):
            raise wrong("contract", contract, "this is no rate", "write a number and its unit: 4 Mbit/s")
    return Customer(at, name, words["prefix"], words["vlan"], words["session"], contract, row["plan"])


def _prefix(text: str, wrong: object) -> Network:
    assert callable(wrong)  # noqa: S101
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        pass
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise wrong(
            "prefix", text, "not an address or prefix", "write 10.0.1.0/24 or 2001:db8::/48"
        ) from None
    raise wrong(
        "prefix", text, f"the address has bits beyond its prefix of {network.prefixlen}", f"write {network}"
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
            plain = (str(ipaddress.ip_network(key[0])) if key[0] else None, *key[1:])
            if (other := owners.setdefault(plain, row)) is not row:
                column = next(c for c, part in zip(_IDENTITY, key, strict=True) if part)
                which = next(part for part in key if part)
                remedy = "give each packets of its own: a longer prefix goes before a shorter one"
                faults.append(
                    found._fault(
                        row.line, column, which, f"it is {other.name}'s already, line {other.line}", remedy
                    )
                )
                break
    return faults
