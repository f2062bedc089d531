"""Runs on other machines: on a Dask cluster, or as SLURM's array jobs. The results are those of this machine.

A batch is the text of the experiment with the values and seeds of some runs; what comes back are the tables
as bytes. Whoever runs it has to be the same version of Inprofile with the same build of the simulator. What
a batch's worker does not finish (it was killed, or its machine left) is given to another one, up to three
times.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..own.engine import __version__, engine_digest
from ..own.registry import files, load_classes
from .pieces import Gathered, pack, unpack
from .pool import Backend, BackendError, Beat, Done, Names, Runnable, Task, Tasks, chunked, run_each
from .storage import write_whole

if TYPE_CHECKING:
    from .. import _internal

#: Data packets of the runs of a batch, about: seconds of computing, and minutes of it.
_DASK_PACKETS, _SLURM_PACKETS = 3_000_000, 60_000_000
#: Jobs of one array: below SLURM's default MaxArraySize.
_ARRAY = 1000
_TRIES = 3


class VersionSkew(BackendError):
    """A worker that has another version of Inprofile: its runs might differ."""


@dataclass(frozen=True)
class Batch:
    """Runs for a worker, in words that any process understands."""

    texts: tuple[str, ...]
    """Of experiments, as their files have them."""
    tasks: tuple[tuple[int, int, tuple[tuple[str, str], ...], tuple[int, ...]], ...]
    """Of each setting: number, which text, overrides, seeds."""
    version: str
    engine: str
    own: tuple[tuple[str, str], ...] = ()
    """Files of mechanisms written in Python that the experiments name: name and text."""
    tables: tuple[str, ...] = ()
    """The outputs wanted of every run."""
    trace: bool = False
    read: type[Any] | None = None
    """The function that reads an experiment from its text, name and overrides."""

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return sum(len(seeds) for *_, seeds in self.tasks)

    @property
    def name(self) -> str:
        """A name that follows from all of it."""
        parts = [self.texts, self.tasks, self.version, self.engine, self.own, self.tables, self.trace]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def identity() -> tuple[str, str, str]:
    """Version, digest of the simulator, and name of this machine."""
    return __version__, engine_digest(), socket.gethostname()


def run_batch(batch: Batch) -> bytes:
    """Make a batch's runs on one thread; its piece as bytes. Raises VersionSkew."""
    _same(batch.version, batch.engine, identity())
    gathered = Gathered(batch.tables)
    _load(batch.own)
    assert batch.read is not None  # noqa: S101
    work: list[tuple[Runnable, Sequence[int]]] = [
        (batch.read(batch.texts[which], "experiment", pairs), seeds) for _, which, pairs, seeds in batch.tasks
    ]

    def take(index: int, raw: _internal.Results) -> None:
        setting, _, _, seeds = batch.tasks[index]
        gathered.add(setting, seeds, raw)

    run_each(work, 1, take, trace=batch.trace)
    return pack(gathered.piece())


def _load(brought: Sequence[tuple[str, str]]) -> None:
    """Register the mechanisms that a batch brings."""
    with tempfile.TemporaryDirectory(prefix="inprofile-") as folder:
        for name, text in brought:
            (Path(folder) / name).write_text(text, encoding="utf-8")
            load_classes(Path(folder) / name)


def _same(version: str, engine: str, there: tuple[str, str, str]) -> None:
    if there[0] != version:
        raise VersionSkew(
            f"the worker on {there[2]} has Inprofile {there[0]}, and this is {version}:"
            " install the same there"
        )
    if there[1] != engine:
        raise VersionSkew(
            f"the worker on {there[2]} has another build of Inprofile {version}: install the same wheel there"
        )


def batches(
    tasks: Sequence[Task], tables: Sequence[str], packets: float, most: int, *, trace: bool = False
) -> Iterator[Batch]:
    """The same runs in batches of about so many data packets, and at most so many runs, each."""
    some: list[Task] = []
    weight, size = 0.0, 0
    for task in chunked(tasks, packets, most):
        each = task.packets * len(task.seeds)
        if some and (weight + each > packets or size + len(task.seeds) > most):
            yield _batch(some, tables, trace=trace)
            some, weight, size = [], 0.0, 0
        some.append(task)
        weight, size = weight + each, size + len(task.seeds)
    if some:
        yield _batch(some, tables, trace=trace)


def _batch(tasks: Sequence[Task], tables: Sequence[str], *, trace: bool = False) -> Batch:
    texts = {text: which for which, text in enumerate(dict.fromkeys(t.scenario._text for t in tasks))}
    made = tuple((t.setting, texts[t.scenario._text], t.scenario._overrides, t.seeds) for t in tasks)
    names = sorted({name for task in tasks for name in task.scenario.own})
    try:
        brought = tuple(files(names))
    except ValueError as error:
        raise BackendError(str(error)) from None
    read = type(tasks[0].scenario)
    return Batch(tuple(texts), made, __version__, engine_digest(), brought, tuple(tables), trace, read)


class Dask(Backend):
    """The workers of a Dask cluster, by its scheduler's address."""

    together = 16_384

    def __init__(self, address: str) -> None:
        """Connect.

        Raises BackendError without `distributed`, a scheduler there, or a worker, and VersionSkew.
        """
        try:
            import distributed
        except ImportError:
            raise BackendError(
                "a Dask cluster needs the package distributed: pip install 'distributed>=2026.1'"
                " into Inprofile's environment, here and on the workers"
            ) from None
        try:
            self._client: Any = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise BackendError(
                f"there is no Dask scheduler at {address}: {error}. Give its address, such as tcp://host:8786"
            ) from None
        try:
            self._check()
        except BaseException:
            self._client.close()
            raise

    def _check(self) -> None:
        """Whether there are workers, and all of them are as we are."""
        try:
            there = self._client.run(identity)
        except ModuleNotFoundError as error:
            raise BackendError(f"a worker cannot import {error.name}: install Inprofile there") from None
        if not there:
            raise BackendError("the cluster has no workers: start some (dask worker ADDRESS)")
        for found in there.values():
            _same(__version__, engine_digest(), tuple(found))

    def run(
        self, tasks: Tasks, tables: Names, done: Done, beat: Beat, *, trace: bool = False, whole: bool = False
    ) -> None:
        """See `pool.Backend`. A batch whose worker dies goes to another one."""
        import distributed

        threads = max(1, sum(self._client.nthreads().values()))
        runs = sum(len(task.seeds) for task in tasks)
        waiting = batches(tasks, tables, _DASK_PACKETS, max(1, -(-runs // (4 * threads))), trace=trace)
        sent: dict[Any, Batch] = {}
        made = 0

        def send() -> None:
            for batch in waiting:
                # A worker's death counts against every batch it had: by itself a batch kills nobody.
                future = self._client.submit(run_batch, batch, key=f"inprofile-{batch.name}", retries=_TRIES)
                sent[future] = batch
                if len(sent) >= 3 * threads:
                    break

        try:
            # `wait` asks for the current client, and leaves whatever client the user has alone.
            with self._client.as_current():
                send()
                while sent:
                    for future in _finished(list(sent)):
                        batch = sent.pop(future)
                        done(unpack(future.result(), f"what a worker made of batch {batch.name}"))
                        future.release()
                        made += batch.runs
                    send()
                    beat(made)
        except (distributed.KilledWorker, distributed.CancelledError) as error:
            raise OSError(f"the cluster gave up: {error}") from error
        finally:
            for future in sent:
                future.cancel()

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


def _finished(futures: list[Any]) -> list[Any]:
    """Those that have finished, after a moment at most."""
    import distributed

    try:
        return list(distributed.wait(futures, timeout=0.2, return_when="FIRST_COMPLETED").done)
    except TimeoutError:
        return []


def run_into(batch: Batch, inbox: str) -> str:
    """Make a batch's runs and put them, whole or not at all, into a folder that the sender sees too."""
    place = Path(inbox) / f"{batch.name}.arrow"
    if not place.exists():
        write_whole(place, run_batch(batch))
    return str(place)


class Slurm(Backend):
    """SLURM's array jobs, by submitit; the folder beside `out`, where they leave their runs, all nodes share.

    What the jobs have made is taken up by the same command also where it was killed while they ran.
    """

    together = 100_000

    def __init__(self, out: str | Path, **settings: Any) -> None:
        """With `settings` as submitit's AutoExecutor takes them: `slurm_partition`, `timeout_min`, ….

        `cluster="local"` runs the jobs as processes of this machine. Raises BackendError without submitit or
        SLURM.
        """
        try:
            import submitit
        except ImportError:
            raise BackendError(
                "SLURM needs the package submitit: pip install 'submitit>=1.5'"
                " into Inprofile's environment, here and on the nodes"
            ) from None
        # Beside the dataset, which tells nothing of where it was made.
        place = Path(out).resolve()
        self._place = place.with_name(f"{place.name}.slurm")
        self._place.mkdir(parents=True, exist_ok=True)
        self._inbox = self._place
        kind = settings.pop("cluster", "slurm")
        self._children: list[Any] | None = [] if kind == "local" else None
        try:
            self._executor: Any = submitit.AutoExecutor(folder=self._place / "logs", cluster=kind)
            known = {"name": "inprofile", "cpus_per_task": 1, "timeout_min": 60}
            array = {} if kind != "slurm" else {"slurm_array_parallelism": _ARRAY}
            self._executor.update_parameters(**{**known, **array, **settings})
        except (RuntimeError, NameError, TypeError, ValueError, KeyError) as error:
            raise BackendError(f"submitit refuses: {error}") from None

    def begin(self, work: str, done: Done) -> None:
        """Take up what jobs of the same work made after its command had been killed."""
        self._inbox = self._place / work[:16]
        self._inbox.mkdir(parents=True, exist_ok=True)
        for place in sorted(self._inbox.glob("*.arrow")):
            done(unpack(place.read_bytes(), str(place)))

    def run(
        self, tasks: Tasks, tables: Names, done: Done, beat: Beat, *, trace: bool = False, whole: bool = False
    ) -> None:
        """See `pool.Backend`. A batch whose job fails is sent again."""
        packets = sum(task.packets * len(task.seeds) for task in tasks)
        runs = sum(len(task.seeds) for task in tasks)
        work = list(batches(tasks, tables, max(_SLURM_PACKETS, packets / _ARRAY), runs, trace=trace))
        tries = 0
        while work:
            tries += 1
            sent: list[Any] = []
            try:
                for i in range(0, len(work), _ARRAY):
                    some = work[i : i + _ARRAY]
                    sent += self._executor.map_array(run_into, some, [str(self._inbox)] * len(some))
                before = runs - sum(batch.runs for batch in work)
                pairs = list(zip(sent, work, strict=True))
                failed = _collect(pairs, self._inbox, done, lambda made, n=before: beat(n + made))  # type: ignore[misc]
            except BaseException:
                for job in sent:
                    job.cancel()
                raise
            if self._children is not None:
                self._children += sent
            if failed and tries == _TRIES:
                raise OSError(f"{len(failed)} batches failed {_TRIES} times; the last said: {failed[-1][1]}")
            work = [batch for batch, _ in failed]

    def end(self) -> None:
        """Remove what jobs left beside the dataset, their logs too."""
        # A process of this machine has left its results, and may still be about to end.
        for job in self._children or ():
            job.wait()
        if self._children:
            self._children.clear()
        shutil.rmtree(self._place, ignore_errors=True)


def _collect(sent: list[tuple[Any, Batch]], inbox: Path, done: Done, beat: Beat) -> list[tuple[Batch, str]]:
    """Take what the jobs put into the inbox; the batches that failed, each with the reason."""
    failed = []
    made = 0
    while sent:
        left = []
        for job, batch in sent:
            place = inbox / f"{batch.name}.arrow"
            if place.exists():
                done(unpack(place.read_bytes(), str(place)))
                made += batch.runs
            elif not job.done():
                left.append((job, batch))
            elif place.exists():
                # It came between the two looks.
                left.append((job, batch))
            else:
                failed.append((batch, _reason(job)))
        sent = left
        beat(made)
        if sent:
            time.sleep(0.1)
    return failed


def _reason(job: Any) -> str:
    """Why a job failed; raise VersionSkew where that is it."""
    error = job.exception()
    text = str(error)
    if "VersionSkew" in text:
        last = [line for line in text.splitlines() if "VersionSkew" in line][-1]
        raise VersionSkew(last.partition(": ")[2])
    return text.strip().splitlines()[-1] if text.strip() else f"job {job.job_id} left nothing"
