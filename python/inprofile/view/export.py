"""One HTML file with everything in it, to send: no server, no network, no what-if."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ..run.storage import ResultError, check_folder, write_whole
from . import answers, sweeps
from .folder import Entry, Folder
from .server import page_files

LARGEST = 64 << 20
"""Bytes of figures in a file, compressed: what goes beyond is left out, and the page says so."""


def export(folder: Folder, file: Path, page: dict[str, bytes] | None = None) -> list[str]:
    """Write the page with the folder's figures into one file; give what was left out.

    Raises OSError where it can't be written.
    """
    check_folder(file.parent)
    page = page_files() if page is None else page
    kept: dict[str, str] = {}
    size = 0
    left_out: list[str] = []

    def keep(path: str, answer: Callable[[], bytes], what: str) -> None:
        nonlocal size
        try:
            data = base64.b64encode(zlib.compress(answer(), 6)).decode()
        except (ResultError, LookupError, OSError) as error:
            left_out.append(f"{what}: {error}")
            return
        if size + len(data) > LARGEST:
            left_out.append(f"{what}: the file would be too large")
            return
        size += len(data)
        kept[path] = data

    keep("index", lambda: answers.index(folder), "the list")
    entries = [entry for entry in folder.entries() if entry.kind != "broken"]
    for entry in entries:
        _keep_summary(folder, entry, keep)
    # The first seed of every run before the second of any.
    runs = [entry for entry in entries if entry.kind == "run"]
    seeds = {entry.id: folder.result(entry.id, ()).seeds for entry in runs}
    for i in range(max((len(s) for s in seeds.values()), default=0)):
        for id_, seed in ((id_, which[i]) for id_, which in seeds.items() if i < len(which)):
            path = f"series?id={quote(id_, safe='')}&seed={seed}"
            keep(path, partial(answers.series, folder, id_, seed), f"{id_}, seed {seed}")
    write_whole(file, _document(page, {"answers": kept, "leftOut": left_out}).encode())
    return left_out


def _keep_summary(
    folder: Folder, entry: Entry, keep: Callable[[str, Callable[[], bytes], str], None]
) -> None:
    id_ = quote(entry.id, safe="")
    if entry.kind == "run":
        keep(f"run?id={id_}", lambda: answers.run(folder, entry.id), entry.id)
        keep(f"flows?id={id_}", lambda: answers.flows(folder, entry.id), f"{entry.id}, flows")
        for name in _explained(folder, entry.id):
            path = f"explain?id={id_}&flow={quote(name, safe='')}"
            keep(path, partial(answers.explained, folder, entry.id, name), f"{entry.id}, why {name}")
        return
    keep(f"sweep?id={id_}", lambda: sweeps.sweep(folder, entry.id), entry.id)
    keep(f"means?id={id_}", lambda: sweeps.means(folder, entry.id), f"{entry.id}, means")
    for name in sweeps.metric_names(folder, entry.id):
        keep(
            f"curve?id={id_}&metric={quote(name, safe='')}",
            partial(sweeps.curve, folder, entry.id, name),
            f"{entry.id}, {name}",
        )


def _explained(folder: Folder, id_: str) -> list[str]:
    """The flows whose explanations are kept; none where their table can't be read, which is said already."""
    try:
        names = list(dict.fromkeys(folder.result(id_, ("flows",)).flows["flow"].to_pylist()))
    except (ResultError, LookupError, OSError):
        return []
    return names if len(names) <= answers.MOST_EXPLAINED else []


def _document(page: dict[str, bytes], data: object) -> str:
    """The page with its script, style and data inside; a policy that allows exactly these."""
    script, style = page["page.js"].decode(), page["page.css"].decode()
    script = script.replace("</script", "<\\/script")
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    offline = f'<script type="application/json" id="offline">{text}</script>'
    html = page["index.html"].decode()
    for old, new in (
        ('<meta charset="utf-8">', f'<meta charset="utf-8">{meta}'),
        ('<link rel="stylesheet" crossorigin href="./page.css">', f"<style>{style}</style>"),
        ('<script type="module" crossorigin src="./page.js"></script>', ""),
        ("</body>", f'{offline}<script type="module">{script}</script></body>'),
    ):
        if old not in html:
            raise ResultError(f"the built page lacks {old}: build it again")
        html = html.replace(old, new, 1)
    return html


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
