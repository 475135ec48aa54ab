"""What can be bought: bundled machines of clouds, and price files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan.errors import InputError, UnknownNameError, UsageError, nearest, shown
from kvplan.fit_prices import Count, MachinePrice, Money, Offer, PriceList, Text
from kvplan.sources.bundled import specs_dir
from kvplan.sources.gpus import find_gpu
from kvplan.sources.yaml_document import YamlDocument
from kvplan.sources.yaml_reader import read_yaml
from kvplan.sources.yaml_validation import validate

SCHEMA = "kvplan.prices/1"
ALL = "all"
_DATE = r"^\d{4}-\d{2}-\d{2}$"


class _Machine(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: Text
    gpus: Count
    per_hour: Money | None = None


class _Sold(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    gpu: Text
    source: Text | None = None
    machines: Annotated[tuple[_Machine, ...], Field(min_length=1)]


class _Prices(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    currency: Text
    region: Text
    kind: Text
    date: Annotated[str, Field(pattern=_DATE)]
    source: Text


class _Cloud(BaseModel):
    """A bundled file: one cloud's machines by GPU, and where its prices come from."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal["kvplan.instances/1"] = Field(alias="schema")
    cloud: Text
    source: Text
    prices: _Prices | None = None
    sold: tuple[_Sold, ...]


def clouds() -> tuple[str, ...]:
    """Names of the bundled clouds."""
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def bundled_offers(names: Iterable[str]) -> tuple[Offer, ...]:
    """Machines of the named clouds (``all``: of every one), the prices as of their date.

    Raises:
        UnknownNameError: no such cloud.
    """
    known = clouds()
    wanted = [one.strip().lower() for one in names]
    for name in wanted:
        if name not in (*known, ALL):
            raise UnknownNameError(
                f"There are no machines of {shown(name)}.",
                hint=nearest(name, known) or f"Bundled: {', '.join(known)}, or all.",
                location="--instances",
            )
    chosen = known if ALL in wanted else tuple(dict.fromkeys(wanted))
    return tuple(offer for name in chosen for offer in _offers(_read(name)))


def read_prices(path: Path) -> PriceList:
    """A price file.

    Raises:
        UsageError: there is no such file.
        InputError: it is no price file; every problem with its ``file:line:column``.
    """
    document = read_yaml(path)
    if document.data.get("schema") != SCHEMA:
        raise InputError(
            "This is not a price file of this version of kvplan.",
            hint=f"Its first line is `schema: {SCHEMA}`; docs/fit.md shows one.",
            location=document.location(("schema",)),
        )
    prices = validate(document, PriceList)
    _check(document, prices)
    return prices


def with_prices(offers: Iterable[Offer], prices: PriceList) -> tuple[Offer, ...]:
    """Offers with the file's prices in place of theirs, and with what the file adds.

    Raises:
        UsageError: a machine that is neither bundled nor described.
    """
    by_name = {offer.name: offer for offer in (*bundled_offers((ALL,)), *offers)}
    own = [_own(machine, prices, by_name) for machine in prices.instances]
    replaced = {offer.name for offer in own}
    kept = [_in_currency(offer, prices) for offer in offers if offer.name not in replaced]
    return (*own, *kept, *_single(prices))


def _in_currency(offer: Offer, prices: PriceList) -> Offer:
    """An offer whose price is in another currency has none that can be compared."""
    if offer.currency in (None, prices.currency):
        return offer
    return offer.model_copy(update={"per_hour": None, "currency": None})


def _single(prices: PriceList) -> Iterator[Offer]:
    for name, price in prices.gpus.items():
        gpu = find_gpu(name).id
        yield Offer(
            name=gpu,
            gpu=gpu,
            per_hour=price,
            currency=prices.currency,
            date=prices.date,
            source=prices.source,
        )


def _own(machine: MachinePrice, prices: PriceList, known: Mapping[str, Offer]) -> Offer:
    shape = known.get(machine.name)
    if shape is None and (machine.gpu is None or machine.gpus is None):
        raise UsageError(
            f"The price file names {shown(machine.name)}, which is not a bundled machine.",
            hint=nearest(machine.name, known) or "Add its gpu and gpus.",
        )
    return Offer(
        name=machine.name,
        gpu=find_gpu(machine.gpu).id if machine.gpu else (shape.gpu if shape else ""),
        gpus=machine.gpus or (shape.gpus if shape else 1),
        per_hour=machine.per_hour,
        currency=prices.currency,
        date=prices.date,
        cloud=shape.cloud if shape else None,
        source=prices.source,
    )


def _check(document: YamlDocument, prices: PriceList) -> None:
    """Names of GPUs and machines, each problem at its line."""
    for name in prices.gpus:
        _known(document, ("gpus", name), name)
    known = {offer.name for offer in bundled_offers((ALL,))}
    for index, machine in enumerate(prices.instances):
        if machine.gpu is not None:
            _known(document, ("instances", index, "gpu"), machine.gpu)
        if machine.name not in known and (machine.gpu is None or machine.gpus is None):
            raise InputError(
                f"{shown(machine.name)} is not a bundled machine.",
                hint=nearest(machine.name, known) or "Add its gpu and gpus.",
                location=document.location(("instances", index, "name")),
            )


def _known(document: YamlDocument, path: tuple[str | int, ...], name: str) -> None:
    try:
        find_gpu(name)
    except UsageError as error:
        raise InputError(
            error.message, hint=error.hint, location=document.location(path)
        ) from error


def _folder() -> Path:
    return specs_dir("gpu_specs") / "instances"


def _read(name: str) -> _Cloud:
    document = read_yaml(_folder() / f"{name}.yaml")
    return validate(replace(document, name=f"{name}.yaml"), _Cloud)


def _offers(cloud: _Cloud) -> Iterator[Offer]:
    prices = cloud.prices
    for sold in cloud.sold:
        for machine in sold.machines:
            priced = machine.per_hour is not None and prices is not None
            yield Offer(
                name=machine.name,
                gpu=sold.gpu,
                gpus=machine.gpus,
                per_hour=machine.per_hour,
                currency=prices.currency if prices and priced else None,
                date=prices.date if prices and priced else None,
                region=prices.region if prices and priced else None,
                cloud=cloud.cloud,
                source=prices.source if prices and priced else (sold.source or cloud.source),
            )
