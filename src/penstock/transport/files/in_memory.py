"""Be a disk that forgets: after a power cut, only what was synced is certain to be there.

    visible now      what a running process reads: the page cache
    durable          what was synced
    after the cut    durable, and any part of what was not: the last write torn at any byte or
                     followed by rubbish, names rolled back, in order or not

A sync that fails has thrown its bytes away: they stay visible, and no later sync saves them.
`before` is called with the name of every operation and may raise; a write that it stops leaves any
part of itself behind.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True)
class _Inode:
    visible: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut there
    holder: int | None = None

    def change(self, at: int, data: bytes | None) -> None:
        _apply(self.visible, at, data)
        self.changes.append((at, data))


_Move: TypeAlias = tuple[str, str | None, _Inode | None]  # name, new name, file: see _replay


class MemoryFiles:
    """The files of one folder in memory, with every way of losing them that a disk has."""

    def __init__(
        self, rng: random.Random, before: Callable[[str], None] = lambda _operation: None
    ) -> None:
        self._rng = rng
        self._before = before
        self._entries: dict[str, _Inode] = {}
        self._durable_entries: dict[str, _Inode] = {}
        self._moves: list[_Move] = []
        self._handles: list[_Inode] = []
        self.actor = 0  # the process on whose behalf everything is done until this changes

    def names(self) -> list[str]:
        return list(self._entries)

    def sizes(self) -> dict[str, int]:
        return {name: len(inode.visible) for name, inode in self._entries.items()}

    def whole_lines(self, name: str) -> int | None:
        inode = self._entries.get(name)
        return inode.visible.count(b"\n") if inode else None

    def create(self, name: str) -> int:
        self._before("create")
        if name in self._entries:
            raise FileExistsError(name)
        inode = _Inode(holder=self.actor)
        self._move((name, None, inode))
        return self._handle(inode)

    def claim(self, name: str) -> int | None:
        self._before("claim")
        inode = self._entries.get(name)
        if inode is None or inode.holder is not None:
            return None
        inode.holder = self.actor
        return self._handle(inode)

    def read(self, handle: int) -> bytes:
        return bytes(self._handles[handle].visible)

    def append(self, handle: int, data: bytes) -> None:
        inode = self._handles[handle]
        try:
            self._before("append")
        except BaseException:
            inode.change(len(inode.visible), data[: self._rng.randrange(len(data) + 1)])
            raise
        inode.change(len(inode.visible), data)

    def truncate(self, handle: int, size: int) -> None:
        self._before("truncate")
        self._handles[handle].change(size, None)

    def sync(self, handle: int) -> None:
        inode = self._handles[handle]
        try:
            self._before("sync")
        except OSError:
            inode.changes.clear()
            raise
        for at, data in inode.changes:
            _apply(inode.durable, at, data)
        inode.changes.clear()

    def close(self, handle: int) -> None:
        self._handles[handle].holder = None

    def rename(self, old: str, new: str) -> None:
        self._before("rename")
        if old not in self._entries:
            raise FileNotFoundError(old)
        self._move((old, new, None))

    def unlink(self, name: str) -> None:
        self._before("unlink")
        self._move((name, None, None))

    def sync_folder(self) -> None:
        self._before("sync_folder")
        self._durable_entries = dict(self._entries)
        self._moves.clear()

    def release(self, actor: int) -> None:
        """Let go of what a process held that was killed."""
        for inode in self._handles:
            if inode.holder == actor:
                inode.holder = None

    def cut_power(self) -> None:
        """Forget what was not synced, or a part of it, and let go of everything."""
        for move in self._surviving(self._moves):
            _replay(self._durable_entries, move)
        self._entries = dict(self._durable_entries)
        self._moves.clear()
        for inode in self._entries.values():
            self._cut(inode)

    def _cut(self, inode: _Inode) -> None:
        changes = inode.changes[: self._rng.randrange(len(inode.changes) + 1)]
        for at, data in changes:
            _apply(inode.durable, at, data)
        torn = inode.changes[len(changes) : len(changes) + 1]
        for at, data in torn:
            if data:
                _apply(inode.durable, at, self._torn(data))
        inode.changes.clear()
        inode.visible = bytearray(inode.durable)
        inode.holder = None

    def _torn(self, data: bytes) -> bytes:
        kept = data[: self._rng.randrange(len(data) + 1)]
        rest = len(data) - len(kept)
        rubbish = (b"", bytes(rest), self._rng.randbytes(rest))
        return kept + self._rng.choice(rubbish)

    def _surviving(self, moves: list[_Move]) -> list[_Move]:
        if self._rng.random() < 0.5:
            return moves[: self._rng.randrange(len(moves) + 1)]
        return [move for move in moves if self._rng.random() < 0.5]

    def _move(self, move: _Move) -> None:
        _replay(self._entries, move)
        self._moves.append(move)

    def _handle(self, inode: _Inode) -> int:
        self._handles.append(inode)
        return len(self._handles) - 1


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    """Write at an offset, over zeros where nothing was written before; or cut there."""
    content.extend(bytes(max(0, at - len(content))))
    if data is None:
        del content[at:]
    else:
        content[at : at + len(data)] = data


def _replay(entries: dict[str, _Inode], move: _Move) -> None:
    """Create (name, None, file), rename (name, new name, None) or unlink (name, None, None)."""
    name, new_name, inode = move
    if inode is not None:
        entries[name] = inode
        return
    found = entries.pop(name, None)
    if found is not None and new_name is not None:
        entries[new_name] = found
