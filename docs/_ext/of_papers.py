"""A paper on the site's pages: its reference, its claims, their verdicts, and where each holds.

Directives, from the paper's folder: `advice NAME`, `paper NAME`, `boundary NAME` and `claims NAME`; `papers`,
a table of all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive
from from_code import html, table

from inprofile.cli.execution import minutes
from inprofile.metrics.glossary import lookup
from inprofile.papers import Paper, advice, gallery, load, names, rerun, verdicts
from inprofile.papers.claim import Verdict
from inprofile.papers.verdicts import Answered, Verdicts
from inprofile.studies.atlas.store import committed
from inprofile.studies.reproduce.report.atlas import atlas_context
from inprofile.studies.reproduce.report.page import today_context

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]

SECTION = "Words of the reproductions"
LEGEND = (
    "holds",
    "opposite",
    "no effect",
    "undecidable",
    "open",
    "reproduced",
    "mostly",
    "in part",
    "mixed",
    "not shown",
)
PRINTED = (
    " Of the paper's printed numbers it says how many lie where one more run of ours would fall; they"
    " change no verdict, and where the rival's figure lies there, too, a number is not counted."
)
EARLIER = " They were judged by earlier rules than the verdicts above, so that words may differ."


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the directives known to Sphinx."""
    app.add_directive("advice", AdviceDirective)
    app.add_directive("paper", PaperDirective)
    app.add_directive("papers", PapersDirective)
    app.add_directive("boundary", BoundaryDirective)
    app.add_directive("claims", Claims)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class AdviceDirective(Directive):
    """What to make of a paper, in four sentences or five and a picture."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Take them from the paper's folder; raise ValueError where it has none."""
        paper = load(self.arguments[0])
        found = advice.committed(paper)
        if found is None:
            raise ValueError(f"{paper.name} has no advice with figures: make renew")
        about, figures = found
        first, *others = [
            f"<dt>{escape(s.heading)}</dt><dd>{_marked(s)}{_ready(paper, about, s.id)}</dd>"
            for s in advice.sentences(paper, about, figures)
        ]
        picture = nodes.image(uri=f"/images/papers/{paper.name}.svg", alt=about["caption"])
        shown = nodes.figure("", picture, nodes.caption("", about["caption"]))
        answer, rest = (html(f"<dl>{''.join(some)}</dl>") for some in ([first], others))
        return [nodes.container("", answer, shown, rest, classes=["advised"])]


def _marked(sentence: advice.Sentence) -> str:
    """Its text, and what of it the last whole run does not bear out."""
    said = "".join(f"<code>{escape(x)}</code>" if code else escape(x) for code, x in sentence.parts)
    unmet = escape(", ".join(sentence.unmet))
    return f"{said}<br><em>The last whole run does not bear this out: {unmet}.</em>" if unmet else said


def _ready(paper: Paper, about: Mapping[str, Any], sentence: str) -> str:
    """Settings to be taken as they are, below the sentence that speaks of them."""
    if sentence != "settings":
        return ""
    pastes = "".join(
        f"<details><summary>{escape(p['title'])}</summary><pre>{escape(p['text'].strip())}</pre></details>"
        for p in about.get("pastes", ())
    )
    return (
        f"<p>As an experiment: <code>inprofile reproduce {paper.name} --quick</code> writes"
        f" <code>reports/{paper.name}/experiment.toml</code>.</p>{pastes}"
    )


class PapersDirective(Directive):
    """A row a paper: whether to use what it proposes, and how many claims came to what."""

    def run(self) -> list[nodes.Node]:
        """Take them from the papers' folders; raise ValueError where one has no verdicts or advice."""
        papers = sorted((load(name) for name in names()), key=lambda paper: paper.claims[0].id)
        heads = ("paper", "use it?", "its claims, in the primary set-up")
        return [html(table(heads, [_row(paper) for paper in papers], "papers"))]


def _row(paper: Paper) -> tuple[str, str, str]:
    about, judged = advice.committed(paper), verdicts.committed(paper)
    if about is None or judged is None:
        raise ValueError(f"{paper.name} has no verdicts or no advice with figures: make renew")
    answer = advice.sentences(paper, *about)[0].text.split(". ")[0].rstrip(".")
    found = Counter(c["verdict"] for c in judged["claims"] if c["setup"] == paper.setups[0].id)
    counts = ", ".join(f"{found[v]} {v.words}" for v in Verdict if found[v])
    said = f"{found.total()}: {counts}"
    who = f"{paper.about['authors'][0].split()[-1]} {paper.about['year']}"
    link = f"{paper.claims[0].id[0]}. <a href='{paper.name}.html'>{escape(who)}</a>, {escape(paper.short)}"
    return link, f"{escape(answer)}.", escape(said)


class PaperDirective(Directive):
    """A paper's reference, and what it is about."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Take them from the paper's folder."""
        paper = load(self.arguments[0])
        about = paper.about
        *others, last = about["authors"]
        authors = f"{', '.join(others)} and {last}" if others else last
        cite = f"{authors}, “{about['title']}”, {about.get('source', about['year'])}."
        return [html(f"<p class='cite'>{escape(cite)}</p><p>{escape(about['summary'])}</p>{_takes(paper)}")]


def _takes(paper: Paper) -> str:
    """How long a paper of the gallery takes, by what its runs are said to cost."""
    if paper.name not in gallery():
        return ""
    jobs = [job for batch in paper.module("experiments").jobs(paper) for job in batch]
    runs, seconds = sum(job.seeds for job in jobs), sum(job.cost * job.seeds for job in jobs)
    command = f"<code>inprofile reproduce {paper.name}</code>"
    return f"<p>{command}: {runs} runs, about {minutes(seconds)} of one core.</p>"


class BoundaryDirective(Directive):
    """Where what a paper proposes pays: the tables that its `boundary` keeps."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Take them from the paper's folder."""
        boundary = load(self.arguments[0]).module("boundary")
        made = []
        for t in boundary.tables(boundary.kept()):
            rows = [[escape(cell) for cell in row] for row in t.rows]
            made.append(html(f"<p>{escape(t.caption)}</p>{table(t.heads, rows, 'shares')}"))
        return made


class Claims(Directive):
    """A paper's claims: their verdicts by set-up, and at how many points of its atlas, if any, each holds."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Take them from the paper's folder; raise ValueError where it has neither verdicts nor an atlas."""
        paper = load(self.arguments[0])
        found, judged = committed(paper), verdicts.committed(paper)
        if found is None and (judged is None or paper.name not in gallery()):
            raise ValueError(f"{paper.name} has no atlas: make renew")
        told = [] if judged is None else [html(_legend(judged)), html(_verdicts(paper, judged))]
        sent = rerun.committed(paper)
        told += [] if found is None else [html(_shares(paper, found, judged is None))]
        return told if sent is None else [*told, html(_today(paper, sent))]


def _legend(judged: Verdicts) -> str:
    """What the verdicts' words and the outcomes of comparisons mean, folded: the glossary's own rows.

    Of printed numbers only where one is counted.
    """
    rows = [entry for word in LEGEND for entry in lookup(word) if entry.section == SECTION]
    meant = "".join(f"<dt>{escape(row.words[-1])}</dt><dd>{_emphasised(row.meaning)}</dd>" for row in rows)
    said = (
        "A claim is taken apart into comparisons, and its word follows from what becomes of them. Where it is"
        " not the word that the counts alone would give, it says why: a placebo, which acts as often but"
        " blindly, does as well, or Holm's correction for the number of comparisons and claims leaves less."
        f"{PRINTED if any(c['numbers'] for c in judged['claims']) else ''}"
        " The small lines are placebos and other readings under which the word is another one; those that are"
        " not named have the same word, or were not run there."
        " Columns can differ in how many comparisons they have: those of the same values count once, and"
        " where a mechanism never acts, what it is said to do is not compared."
        " Bounds of our own are marked <em>ours</em>."
    )
    summary = "What the words mean, and why equal counts can have different words"
    return f"<details class='legend'><summary>{summary}</summary><p>{said}</p><dl>{meant}</dl></details>"


def _emphasised(text: str) -> str:
    """A cell of the glossary, whose only mark-up is emphasis."""
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escape(text))


def _verdicts(paper: Paper, judged: Verdicts) -> str:
    """A row a claim, a column a set-up; how many comparisons hold of all, and how many are opposite."""
    answers = {(c["id"], c["setup"]): c for c in judged["claims"]}
    rows = [
        (
            f"<b>{escape(claim.id)}</b> {escape(claim.text)}",
            *(
                "the same" if claim.flag("once") and i else _answer(paper, answers.get((claim.id, setup)))
                for i, setup in enumerate(judged["setups"])
            ),
        )
        for claim in paper.claims
    ]
    setups = {s.id: s for s in paper.setups}
    heads = ["claim", *(f"{setups[s].title}{' *' * setups[s].fitted}" for s in judged["setups"])]
    said = f"Verdicts by set-up, with up to {judged['seeds']} seeds, and how many comparisons they rest on."
    if any(s.fitted for s in setups.values()):
        said += " *: found after seeing the paper's numbers."
    meant = "".join(
        f"<dt>{escape(setups[s].title)}</dt><dd>{escape(setups[s].word('text'))}</dd>"
        for s in judged["setups"]
    )
    listed = f"<details class='legend'><summary>What the set-ups are</summary><dl>{meant}</dl></details>"
    return f"<p>{said}</p>{listed}{table(heads, rows, 'claims')}"


def _answer(paper: Paper, answered: Answered | None) -> str:
    """A verdict with its counts, and those under variants that differ."""
    if answered is None:
        return "–"
    total, left = verdicts.total(answered), answered["undecidable"]
    counted = f", {_of(answered['holds'], total, answered['opposite'])}" if total else ""
    counted += f", {answered['no_effect']} without effect" if 0 < answered["no_effect"] < total else ""
    counted += f", {left} undecidable" if 0 < left < total else ""
    if why := verdicts.BECAUSE.get(answered.get("because", "")):
        counted += f" ({why})"
    if answered["numbers"]:
        counted += f"; printed numbers: {answered['inside']} of {answered['numbers']}"
    if told := answered.get("told"):
        counted += f"; {escape(told)}"
    others = "".join(
        f"<br><small>{escape(paper.find('variants', v).title)}: {Verdict(verdict).words}</small>"
        for v, verdict in answered["variants"].items()
        if verdict != answered["verdict"]
    )
    return f"{Verdict(answered['verdict']).words}{counted}{others}"


def _shares(paper: Paper, found: dict[str, Any], texts: bool) -> str:
    """The atlas: at which share of its points each claim holds, and what decides.

    With the claims' `texts` where no table above it has them.
    """
    atlas = atlas_context(found, paper)
    rows = [
        (
            f"<b>{escape(claim['id'])}</b> {escape(claim['text']) if texts else ''}",
            *(f"{share['percent']:.0f}\u00a0%" for share in claim["shares"]),
            escape("; ".join(claim["decisive"]) or "nothing alone"),
        )
        for claim in atlas["claims"]
    ]
    said = (
        f"Shares of the {atlas['sobol']} points of a Sobol design over all readings and unstated inputs,"
        f" {atlas['seeds']} seeds each{_left_out(atlas)}. Holds: reproduced or mostly; open: in part, mixed,"
        " not shown or without effect. With so few seeds much stays open, and a claim of many comparisons"
        " holds only where two thirds of them do. A factor decides a claim if it explains how many of its"
        " comparisons hold and are opposite, even where the verdict is the same everywhere."
        f"{EARLIER if atlas['earlier'] else ''}"
        f"{_missing(paper, [claim['id'] for claim in atlas['claims']])}"
    )
    heads = ("claim", "holds", "open", "opposite", "undecidable", "what decides")
    return (
        f"<p>{said}</p>{table(heads, rows, 'shares' if texts else 'ids')}<p>{escape(atlas['foremost'])}</p>"
    )


def _missing(paper: Paper, there: list[str]) -> str:
    """Which claims are not in a table of them, whose runs of their own are not made at its points.

    >>> from types import SimpleNamespace as S
    >>> _missing(S(claims=[S(id="A1"), S(id="A2"), S(id="A3")]), ["A2"])
    ' Not in it are A1 and A3, whose runs it does not have.'
    >>> _missing(S(claims=[S(id="A1")]), ["A1"])
    ''
    """
    *some, last = [claim.id for claim in paper.claims if claim.id not in there] or [""]
    if not last:
        return ""
    listed = f"are {', '.join(some)} and {last}" if some else f"is {last}"
    return f" Not in it {listed}, whose runs it does not have."


def _left_out(atlas: dict[str, Any]) -> str:
    """How many points an alternative that the reading rejects leaves out, at most."""
    most = max(claim["left_out"] for claim in atlas["claims"])
    return f", without up to {most} under alternatives that the reading rejects" if most else ""


def _today(paper: Paper, found: dict[str, Any]) -> str:
    """A row a claim, a column a sender."""
    shown = today_context(found, paper)
    rows = [
        (
            f"<b>{escape(claim['id'])}</b> {escape(claim['text'])}",
            *("not valid" if a is None else _counted(a) for a in claim["answers"]),
        )
        for claim in shown["claims"]
    ]
    shortened = f"; {shown['shortened']}" if shown["shortened"] else ""
    apart = (
        " beside no placebo (so that what one leaves undecidable above can hold here),"
        if any(v.flag("placebo") for v in paper.variants)
        else ""
    )
    said = (
        f"Verdicts in the primary set-up ({escape(paper.setups[0].title)}) under today's TCP senders, up to"
        f" {shown['seeds']} seeds. Each claim is judged by itself,{apart} without Holm's correction over the"
        " claims,"
        f" and figures with many points have fewer of them here than above{shortened}: the first column may"
        " differ from there."
        " Comparisons without effect, which keep a claim from the word <em>mostly</em>, are not counted here."
        f"{EARLIER if shown['earlier'] else ''}"
        f"{_missing(paper, [claim['id'] for claim in shown['claims']])}"
    )
    made = f"<p>{said}</p>{table(['claim', *(s['title'] for s in shown['senders'])], rows, 'today')}"
    return made if shown["advised"] is None else f"{made}{_advised(paper, shown['advised'])}"


def _advised(paper: Paper, shown: dict[str, Any]) -> str:
    """A row a figure of what is advised, a column a sender."""
    about = advice.read(paper)
    if about is None:
        raise ValueError(f"{paper.name} has figures of its advice under today's senders, and no advice.toml")
    setup = paper.find("setups", advice.advised(paper, about).setup)
    rows = [(escape(r["words"]), *map(escape, r["figures"])) for r in shown["rows"]]
    heads = ["measure", *(s["title"] for s in shown["senders"])]
    said = (
        f"The experiment behind the advice (set-up “{escape(setup.title)}”), and its rivals, under each"
        " sender: means with 95 % intervals."
    )
    return f"<p>{said}</p>{table(heads, rows, 'today')}"


def _counted(answer: dict[str, Any]) -> str:
    """A verdict with its counts, and why it is another word than they alone would give."""
    why = f" ({answer['why']})" if answer["why"] else ""
    return f"{answer['verdict'].words}, {_of(answer['holds'], answer['total'], answer['opposite'])}{why}"


def _of(holds: int, total: int, opposite: int) -> str:
    """How many comparisons hold, and how many are opposite.

    >>> _of(43, 60, 12), _of(1, 3, 0)
    ('43 of 60 hold, 12 opposite', '1 of 3 hold')
    """
    return f"{holds} of {total} hold{f', {opposite} opposite' if opposite else ''}"
