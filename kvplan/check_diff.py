"""Two results of the same scenarios, line by line. The JSON form is `kvplan.diff/1`."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__

Unit = Literal["text", "count", "bytes", "tokens", "money", "share"]
Way = Literal["better", "worse", "other"]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )


class DiffRow(_Part):
    """One figure that differs.

    Attributes:
        name: ``requests``, ``ledger.weights.mlp``, ``options.max_num_seqs``.
        old, new: None where that side does not have it.
        way: Whether the change is for the better; ``other`` where that is not for kvplan to say.
        currency: Where the unit is money.
    """

    name: str
    unit: Unit
    old: int | float | str | None
    new: int | float | str | None
    way: Way = "other"
    currency: str | None = None


class ScenarioDiff(_Part):
    """One scenario on both sides.

    Attributes:
        status: ``added`` and ``removed``: only one side has it.
    """

    name: str
    status: Literal["same", "changed", "added", "removed"]
    rows: tuple[DiffRow, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether a figure became worse."""
        return any(row.way == "worse" for row in self.rows)


class Diff(_Part):
    """All scenarios of both sides: changed ones first, worse ones before those."""

    schema_: Literal["kvplan.diff/1"] = Field("kvplan.diff/1", alias="schema")
    kvplan_version: str = __version__
    old: str
    new: str
    scenarios: tuple[ScenarioDiff, ...]

    @property
    def worse(self) -> bool:
        """Whether anything became worse."""
        return any(each.worse for each in self.scenarios)
