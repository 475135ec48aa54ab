"""Validation: measured engine starts against what kvplan says of them.

What `kvplan.planning.validate` finds and every report of it reads. The JSON form is
`kvplan.validation/1`. Memory is in GiB here, as logs print it, so that both sides can be compared
at sight.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__

CheckName = Literal["geometry", "weights", "overhead", "end_to_end", "verdict"]
CHECK_NAMES: tuple[CheckName, ...] = ("geometry", "weights", "overhead", "end_to_end", "verdict")
Outcome = Literal["started", "refused"]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )


class GeometryCheck(_Part):
    """Blocks, tokens and concurrency from the logged bytes of cache.

    Attributes:
        kv_gib: The logged bytes, printed with few digits: any value that prints so may be meant.
        low_tokens, high_tokens: Predicted at the two ends of what prints as ``kv_gib``.
        within_print_rounding: Every logged figure is what one and the same such value gives.
        reachable_with: Where they are not, a flag that the record leaves out and would make them.
        relative_error: Of the tokens, else the blocks, else the concurrency.
    """

    kv_gib: float
    predicted_blocks: int
    predicted_tokens: int
    predicted_concurrency: float
    low_tokens: int
    high_tokens: int
    measured_blocks: int | None
    measured_tokens: int | None
    measured_concurrency: float | None
    within_print_rounding: bool
    reachable_with: str | None
    relative_error: float


class WeightsCheck(_Part):
    """What a rank holds once the model is loaded."""

    predicted_weights_gib: float
    measured_weights_gib: float
    relative_error: float
    share_of_card: float | None


class KvCheck(_Part):
    """Memory left for the cache, on the fullest rank.

    Attributes:
        measured_from: ``log``, or what the bytes were worked out from where no log states them.
        relative_error: Above zero kvplan promised more than there was; None where nothing was.
        share_of_card: The distance, as a share of one card's memory.
        in_interval: The measured figure, as printed, lies between low and high.
        cause: Which part of the budget is off most, in words.
        predicted_tokens, measured_tokens: What the cache holds; of ``end_to_end`` alone.
    """

    predicted_kv_gib: float
    low_kv_gib: float | None
    high_kv_gib: float | None
    measured_kv_gib: float
    measured_from: Literal["log", "blocks", "tokens"] = "log"
    relative_error: float | None
    share_of_card: float
    in_interval: bool | None
    cause: str
    predicted_tokens: int | None = None
    measured_tokens: int | None = None


class VerdictCheck(_Part):
    """Whether the engine starts.

    Attributes:
        basis: ``flags``: model, GPU and flags alone; ``logged_kv``: the logged bytes of cache,
            where the record does not state enough for the former.
    """

    predicted: Outcome
    measured: Outcome
    basis: Literal["flags", "logged_kv"]

    @property
    def agrees(self) -> bool:
        """Whether they are the same."""
        return self.predicted == self.measured


class CheckedRecord(_Part):
    """One record and what became of it.

    Attributes:
        skipped: Why nothing could be compared, or None.
        not_checked: Why each check that is missing could not be made; its kind comes first and
            ends at the first colon.
        assumed: What the record does not state and was filled in, by its author or here.
    """

    id: str
    source: str | None
    model: str | None
    gpu: str | None
    engine: str | None
    skipped: str | None
    geometry: GeometryCheck | None = None
    weights: WeightsCheck | None = None
    overhead: KvCheck | None = None
    end_to_end: KvCheck | None = None
    verdict: VerdictCheck | None = None
    not_checked: dict[CheckName, str] = {}
    assumed: tuple[str, ...] = ()


class Worst(_Part):
    """The record that is off most."""

    id: str
    relative_error: float


class ErrorSummary(_Part):
    """How far off one check is, over all records that support it.

    Attributes:
        n: Records compared.
        skipped: Records that were not, by the kind of reason. With ``n`` they are all.
        within_print_rounding: Share whose figures are reachable; geometry only.
        interval_coverage: Share of the records with an interval that it holds.

    Shares and errors are None where there is nothing to take them of.
    """

    n: int
    skipped: dict[str, int]
    median_relative_error: float | None
    p90_relative_error: float | None
    worst: Worst | None
    within_2_percent: float | None
    within_5_percent: float | None
    within_10_percent: float | None
    optimistic_over_5_percent: float | None
    p90_share_of_card: float | None
    interval_coverage: float | None
    within_print_rounding: float | None


class VerdictSummary(_Part):
    """How often the verdict is right, starts and refusals apart."""

    n: int
    skipped: dict[str, int]
    refusals: int
    refusals_predicted: int
    starts: int
    starts_called_refused: int


class Summary(_Part):
    """One summary a check."""

    records: int
    skipped: int
    geometry: ErrorSummary
    weights: ErrorSummary
    overhead: ErrorSummary
    end_to_end: ErrorSummary
    verdict: VerdictSummary


class Validation(_Part):
    """All records of a file, compared."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    schema_: Literal["kvplan.validation/1"] = Field("kvplan.validation/1", alias="schema")
    kvplan_version: str = __version__
    records: tuple[CheckedRecord, ...]
    summary: Summary
