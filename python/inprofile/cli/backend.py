"""Where runs are made: `--backend`, the same for every command that makes many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Refused

if TYPE_CHECKING:
    from ..run.pool import Backend

__all__ = ["SlurmSet", "Where", "made_by"]

Where = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="threads|ADDRESS|slurm",
        help="Where runs are made: on this machine's threads, on the Dask cluster with this scheduler"
        " (tcp://host:8786), or as SLURM array jobs. Does not change any result.",
    ),
]
SlurmSet = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm-set",
        metavar="KEY=VALUE",
        help="What submitit takes: slurm_partition=short, timeout_min=60; cluster=local tries it here."
        " Repeatable.",
        show_default=False,
    ),
]


@contextmanager
def made_by(where: str, jobs: int | None, slurm_set: Sequence[str] | None, place: Path) -> Iterator[Backend]:
    """The back end that `--backend` names; SLURM's jobs leave their runs beside `place`.

    What it refuses, or finds wrong elsewhere, is refused here.
    """
    from ..run.pool import BackendError

    try:
        with closing(_backend(where, jobs, slurm_set, place)) as backend:
            yield backend
    except BackendError as error:
        raise Refused(str(error)) from None


def _backend(where: str, jobs: int | None, slurm_set: Sequence[str] | None, place: Path) -> Backend:
    slurm = where == "slurm" or (where == "threads" and bool(slurm_set))
    if where == "threads" and not slurm:
        from ..run.pool import Local

        return Local(jobs)
    if slurm_set and not slurm:
        raise Refused(f"--slurm-set is for --backend slurm, and --backend is {where}: choose one")
    if jobs is not None:
        raise Refused("--jobs is for this machine's threads: elsewhere the cluster says how many there are")
    if not slurm and ":" not in where:
        raise Refused(
            f'--backend "{where}" is no place: write threads, slurm, or the address of a Dask scheduler,'
            " such as tcp://host:8786"
        )
    from ..run import clusters

    if not slurm:
        return clusters.Dask(where)
    settings: dict[str, Any] = {}
    for text in slurm_set or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise Refused(f"--slurm-set {text}: write KEY=VALUE, such as --slurm-set slurm_partition=short")
        settings[key.strip()] = int(value) if value.strip().isdigit() else value.strip()
    return clusters.Slurm(place, **settings)
