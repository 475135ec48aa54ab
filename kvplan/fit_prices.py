"""What can be bought: machines and single GPUs with their prices. The types that searches read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=200)]
Money = Annotated[float, Field(gt=0, allow_inf_nan=False, le=1e9)]
Count = Annotated[int, Field(gt=0, le=1024)]

HOURS_PER_MONTH = 730.0
"""8,760 hours of a year over twelve months."""


class Offer(BaseModel):
    """Something that is bought whole.

    Attributes:
        name: The machine's type as its seller calls it, or the GPU's id.
        gpu: Id of the GPU in it.
        gpus: How many of them.
        per_hour: Its price for an hour, or None: not known.
        currency: Of the price.
        date: When the price was read, as ``2026-07-20``.
        region: Where it holds.
        cloud: Who sells it.
        source: Where shape and price were found.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: Text
    gpu: Text
    gpus: Count = 1
    per_hour: Money | None = None
    currency: Text | None = None
    date: Text | None = None
    region: Text | None = None
    cloud: Text | None = None
    source: Text

    @property
    def whole(self) -> bool:
        """Whether it is a machine, rather than a GPU by itself."""
        return self.name != self.gpu


class MachinePrice(BaseModel):
    """A machine in a price file: a bundled type by its name, or one of your own.

    Attributes:
        gpu, gpus: Of a machine that is not bundled, or where yours differs.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: Text
    per_hour: Money
    gpu: Text | None = None
    gpus: Count | None = None


class PriceList(BaseModel):
    """A price file (``kvplan.prices/1``).

    Attributes:
        currency: Three letters; all prices are in it.
        date: When they held, as ``2026-11-01``.
        source: Where they come from, in words.
        gpus: Price of one GPU for an hour, by its name.
        instances: Prices of whole machines for an hour.
        hours_per_month: Hours that a month is charged for.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True
    )

    schema_: Literal["kvplan.prices/1"] = Field(alias="schema")
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: Text
    gpus: dict[Text, Money] = {}
    instances: tuple[MachinePrice, ...] = ()
    hours_per_month: Annotated[float, Field(gt=0, le=744)] = HOURS_PER_MONTH
