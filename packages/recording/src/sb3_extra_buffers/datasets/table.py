"""Data sets that are tables: named columns with one row per step. The columns get their roles here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import NO_KEY, Block, Dataset, Episodes, Parts, Reader, reading
from sb3_extra_buffers.datasets.spaces import space_from_json
from sb3_extra_buffers.errors import FileContentError, FileVersionError, ParameterError

#: What to do with a truncated episode whose last transition has no next observation.
MissingFinal = Literal["error", "drop"]
#: A column for each role; ``None`` for a role that no column has.
Columns = Mapping[str, str | None]
#: Version of the metadata of exports.
FORMAT_VERSION = 1
#: Rows of the columns about episodes that are read at a time.
_INDEX_ROWS = 1 << 16
#: Names that columns of each role have in exports of this project, D4RL, LeRobot and other libraries.
_NAMES = {
    "observation": ("observation", "observations", "obs", "frame", "frames"),
    "next_observation": ("next_observation", "next_observations", "next_obs"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards", "next.reward"),
    "terminated": ("terminated", "terminations", "terminals", "terminal"),
    "truncated": ("truncated", "truncations", "timeouts", "timeout"),
    "done": ("done", "dones", "next.done"),
    "episode": ("episode", "episode_index", "episode_id"),
}
_PREFIXED = ("observation", "next_observation")


class Sparse(NamedTuple):
    """Values of some of the requested rows.

    :param rows: row numbers, increasing
    :param values: a value for each
    """

    rows: NDArray[np.int64]
    values: NDArray[Any]


class Table(ABC):
    """Columns of a file, by name, with the same number of rows."""

    #: Names of the columns.
    names: Sequence[str]
    #: Number of rows.
    rows: int
    #: Metadata of an export of this project; empty for other files.
    about: Mapping[str, Any] = {}

    @abstractmethod
    def read(self, names: Sequence[str], start: int, stop: int) -> dict[str, NDArray[Any] | Sparse]:
        """Read consecutive rows of some columns.

        :param names: names of the columns
        :param start: first row
        :param stop: end of the rows, exclusive
        """

    @abstractmethod
    def clone(self) -> Table:
        """Return a table with its own position in the file."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


@dataclass(frozen=True)
class Roles:
    """The column of each role.

    :param observations: by key of the observation
    :param next_observations: the same for next observations; empty if there are none
    :param others: the column of each other role
    """

    observations: dict[str, str]
    next_observations: dict[str, str]
    others: dict[str, str] = field(default_factory=dict)


def find_roles(source: str, names: Sequence[str], columns: Columns | None) -> Roles:
    """Find the role of each column by its name.

    :param source: name of the file, for errors
    :param names: names of the columns
    :param columns: columns of roles that have other names
    """
    given = dict(columns or {})
    for role, name in given.items():
        if role not in _NAMES and not role.startswith(tuple(f"{prefix}." for prefix in _PREFIXED)):
            allowed = f"a role must be one of {', '.join(_NAMES)}, or observation.KEY or next_observation.KEY"
            raise ParameterError("columns", "role", role, allowed)
        if name is not None and name not in names:
            allowed = f"{source} has the columns {', '.join(names)}"
            raise ParameterError("columns", role, name, allowed)
    parts = []
    for role in _PREFIXED:
        found = {key.partition(".")[2]: name for key, name in given.items() if key.partition(".")[0] == role}
        if not found:
            found = _by_prefix(_NAMES[role], names)
        parts.append({key: name for key, name in found.items() if name is not None})
    others = {}
    for role in _NAMES:
        if role not in _PREFIXED:
            name = given[role] if role in given else next((one for one in _NAMES[role] if one in names), None)
            if name is not None:
                others[role] = name
    missing = [
        role
        for role, is_there in (
            ("observation", bool(parts[0])),
            ("action", "action" in others),
            ("reward", "reward" in others or "reward" in given),
        )
        if not is_there
    ]
    if not missing and not others.keys() & {"terminated", "truncated", "done", "episode"}:
        missing = ["terminated, truncated, done or episode"]
    if missing:
        hint = f"Name it: columns={{{missing[0].split(',')[0]!r}: ...}}."
        if missing[0] == "reward":
            hint += " With None instead of a name, all rewards are 0."
        found_names = f"only {', '.join(names)}" if names else "no column"
        raise FileContentError(source, f"a column for {missing[0]}", found_names, hint)
    if parts[1] and set(parts[0]) != set(parts[1]):
        keys = ", ".join(sorted(parts[1]))
        raise FileContentError(source, f"next observations of {', '.join(sorted(parts[0]))}", f"only of {keys}")
    return Roles(parts[0], parts[1], others)


def _by_prefix(stems: Sequence[str], names: Sequence[str]) -> dict[str, str | None]:
    for stem in stems:
        if stem in names:
            return {NO_KEY: stem}
        found = {name[len(stem) + 1 :]: name for name in names if name.startswith((f"{stem}.", f"{stem}/"))}
        if found:
            return dict(found)
    return {}


class TableDataset(Dataset):
    """A data set of the rows of a table.

    Without columns of next observations, the observation of the following row is the next one. An episode then needs a
    row for its final observation, unless it was terminated: learning does not use that observation, and the last one
    is repeated. The last row of an episode that is still open is left out.

    :param source: path or id, for messages
    :param table: the table
    :param columns: columns of roles that have other names
    :param terminal_frames: whether the last row of an episode only holds its final observation
    :param missing_final: ``"drop"`` leaves out the last transition of truncated episodes without a final observation
    """

    def __init__(
        self,
        source: str,
        table: Table,
        columns: Columns | None = None,
        terminal_frames: bool = False,
        missing_final: MissingFinal = "error",
    ) -> None:
        super().__init__(source)
        if missing_final not in ("error", "drop"):
            raise ParameterError("open_dataset", "missing_final", missing_final, "it must be 'error' or 'drop'")
        self._table = table
        with reading(source):
            self.roles = find_roles(source, table.names, columns)
            self._take_metadata(table.about)
            self.episodes = self._index(terminal_frames, missing_final)

    def _take_metadata(self, about: Mapping[str, Any]) -> None:
        if not about:
            return
        if int(about["version"]) > FORMAT_VERSION:
            raise FileVersionError(self.source, int(about["version"]), FORMAT_VERSION)
        self.in_environment_units = bool(about["in_environment_units"])
        for name in ("observation_space", "action_space"):
            if about.get(name) is not None:
                setattr(self, name, space_from_json(about[name]))

    def close(self) -> None:
        """Close the file."""
        self._table.close()

    def _index(self, terminal_frames: bool, missing_final: MissingFinal) -> Episodes:
        """Find the episodes, and leave out rows that are no transitions."""
        stops, terminated, truncated = self._ends()
        starts = np.append(0, stops[:-1]).astype(np.int64)
        if not self.roles.next_observations:
            lacks_final = ~terminated if not terminal_frames else np.ones(len(stops), np.bool_)
            cut = lacks_final & truncated & (not terminal_frames)
            if cut.any() and missing_final == "error":
                number = int(np.flatnonzero(cut)[0])
                found = f"none for episode {number} and {int(cut.sum()) - 1} others, which were truncated"
                hint = "missing_final='drop' leaves out the last transition of such episodes."
                raise FileContentError(self.source, "a final observation of each episode", found, hint)
            stops = stops - lacks_final
        kept = stops > starts
        if not kept.any():
            raise FileContentError(self.source, "transitions", f"none in {self._table.rows} rows")
        return Episodes(starts[kept], stops[kept], terminated[kept], truncated[kept])

    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        others, rows = self.roles.others, self._table.rows
        names = {role: others[role] for role in ("terminated", "truncated", "done", "episode") if role in others}
        table, found = self._table.clone(), []
        for start in range(0, rows, _INDEX_ROWS):
            stop = min(start + _INDEX_ROWS, rows)
            # With the row after it, to see whether the episode changes.
            read = table.read(list(names.values()), start, min(stop + 1, rows))
            values = {role: np.asarray(read[name]).reshape(-1) for role, name in names.items()}
            none = np.zeros(stop - start, np.bool_)
            flags = {role: values[role][: len(none)].astype(np.bool_) for role in names if role != "episode"}
            truncated = flags.get("truncated", none)
            terminated = flags.get("terminated", flags.get("done", none) & ~truncated)
            if "terminated" in flags and "truncated" not in flags and "done" in flags:
                truncated = flags["done"] & ~terminated
            ends = terminated | truncated
            if "episode" in values:
                changes = values["episode"][1:] != values["episode"][:-1]
                ends[: len(changes)] |= changes
            if stop == rows:
                ends[-1] = True
            numbers = np.flatnonzero(ends)
            found.append((numbers + start + 1, terminated[numbers], truncated[numbers]))
        if not found:
            raise FileContentError(self.source, "transitions", "no rows")
        stops, terminated, truncated = (np.concatenate(parts) for parts in zip(*found))
        return stops.astype(np.int64), terminated, truncated

    def reader(self) -> Reader:
        """Return a function that reads rows."""
        table, roles = self._table.clone(), self.roles
        names = [*roles.observations.values(), roles.others["action"]]
        names += [roles.others["reward"]] if "reward" in roles.others else []

        def read(start: int, stop: int) -> Block:
            with reading(self.source):
                # One more row, for the next observation of the last one.
                extended = min(stop + 1, table.rows)
                columns = table.read([*names, *roles.next_observations.values()], start, extended)
                count = stop - start
                observations = {key: np.asarray(columns[name]) for key, name in roles.observations.items()}
                following = self._following(observations, columns, start, stop)
                actions = np.asarray(columns[roles.others["action"]])[:count]
                rewards = np.zeros(count, np.float32)
                if "reward" in roles.others:
                    rewards = np.asarray(columns[roles.others["reward"]])[:count].reshape(count)
                observations = {key: part[:count] for key, part in observations.items()}
                return Block(observations, following, actions, rewards, *self.episodes.flags(start, stop))

        return read

    def _following(
        self, observations: Parts, columns: dict[str, NDArray[Any] | Sparse], start: int, stop: int
    ) -> Parts:
        count, stored = stop - start, {key: columns[name] for key, name in self.roles.next_observations.items()}
        if stored and not any(isinstance(part, Sparse) for part in stored.values()):
            return {key: np.asarray(part)[:count] for key, part in stored.items()}
        first, last = np.searchsorted(self.episodes.stops, [start + 1, stop + 1])
        ends = self.episodes.stops[first:last] - 1
        terminated = self.episodes.terminated[first:last]
        found = {}
        for key, part in observations.items():
            shifted = np.concatenate([part[1 : count + 1], part[:0] if len(part) > count else part[-1:]])
            sparse = stored.get(key)
            if isinstance(sparse, Sparse):
                inside = sparse.rows < stop
                lost = ends[~terminated & ~np.isin(ends, sparse.rows)]
                if len(lost):
                    missing = f"none for the transition of row {lost[0]}"
                    raise FileContentError(self.source, "a final observation of each episode", missing)
                repeated = ends[terminated & ~np.isin(ends, sparse.rows)] - start
                shifted[repeated] = part[repeated]
                shifted[sparse.rows[inside] - start] = sparse.values[inside]
            elif not stored:
                # The end of an episode whose final observation is not in the table.
                repeated = ends[terminated & self._is_table_end(ends)] - start
                shifted[repeated] = part[repeated]
            found[key] = shifted
        return found

    def _is_table_end(self, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the row after the last transition of an episode belongs to another episode."""
        followers = np.searchsorted(self.episodes.starts, ends + 1)
        begins = np.append(self.episodes.starts, self._table.rows)[np.minimum(followers, len(self.episodes))]
        return np.asarray(begins == ends + 1)
