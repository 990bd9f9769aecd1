"""What a move loses or changes, collected by cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kalends.core.messages import Message
from kalends.core.tec.move_in import MoveInWarning

Key = tuple[str, str]  # kind and identity


@dataclass(slots=True)
class Warnings:
    by_cause: dict[Message, list[Key]] = field(default_factory=dict[Message, list[Key]])
    by_record: dict[Key, list[Message]] = field(default_factory=dict[Key, list[Message]])

    def add(self, key: Key, cause: Message) -> None:
        records = self.by_cause.setdefault(cause, [])
        if key not in records[-1:]:
            records.append(key)
            self.by_record.setdefault(key, []).append(cause)

    def of(self, key: Key) -> Sequence[Message]:
        return tuple(self.by_record.get(key, ()))

    def list(self) -> list[MoveInWarning]:
        causes: Mapping[Message, Sequence[Key]] = self.by_cause
        return [MoveInWarning(cause, tuple(records)) for cause, records in causes.items()]
