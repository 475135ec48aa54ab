"""What a configuration costs: whole machines, or single GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvplan.fit_prices import Offer
from kvplan.fit_result import Bought
from kvplan.models.formats import ceil_div


@dataclass(frozen=True, slots=True)
class Market:
    """What is for sale.

    Attributes:
        offers: By the GPU's id.
        closed: GPUs that nobody offers can't be bought.
        node: GPUs that share fast links where no machine is bought, or None: any number.
    """

    offers: Mapping[str, Sequence[Offer]]
    closed: bool
    node: int | None

    def widest(self, gpu: str) -> int | None:
        """The widest tensor parallel group that one machine holds; None: any."""
        offers = self.offers.get(gpu, ())
        machines = [offer.gpus for offer in offers if offer.whole]
        if machines:
            return max(machines)
        return 0 if self.closed and not offers else self.node

    def buy(self, gpu: str, *, tp: int, groups: int, most: int) -> Bought | None:
        """The cheapest way to have so many tensor parallel groups, each within a machine.

        Args:
            gpu: The device.
            tp: Devices of a group.
            groups: Groups: stages times replicas.
            most: Devices that may be bought.
        """
        ways = [_way(offer, tp, groups) for offer in self.offers.get(gpu, ())]
        found = [way for way in ways if way is not None and way.gpus <= most]
        return min(found, key=_cheapest, default=None)


def market_of(offers: Iterable[Offer], *, closed: bool, node: int | None) -> Market:
    """Offers by GPU."""
    by_gpu: dict[str, list[Offer]] = {}
    for offer in offers:
        by_gpu.setdefault(offer.gpu, []).append(offer)
    return Market(by_gpu, closed, node)


def _way(offer: Offer, tp: int, groups: int) -> Bought | None:
    each = offer.gpus // tp if offer.whole else 0
    if offer.whole and not each:
        return None
    count = ceil_div(groups, each) if offer.whole else tp * groups
    return Bought(
        name=offer.name,
        count=count,
        gpus=count * offer.gpus,
        per_hour=None if offer.per_hour is None else round(count * offer.per_hour, 6),
        currency=offer.currency,
        date=offer.date,
        region=offer.region,
        source=offer.source,
    )


def _cheapest(way: Bought) -> tuple[bool, float, int, str]:
    return (way.per_hour is None, way.per_hour or 0.0, way.gpus, way.name)
