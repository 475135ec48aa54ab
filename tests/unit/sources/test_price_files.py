"""Machines of clouds, and price files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.errors import InputError, UnknownNameError
from kvplan.fit_prices import Offer
from kvplan.sources.gpus import list_gpus
from kvplan.sources.prices import bundled_offers, clouds, read_prices, with_prices

HEAD = 'schema: kvplan.prices/1\ndate: "2026-11-01"\nsource: a contract\n'


def prices(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_bundled_machine_has_a_known_gpu_and_a_source() -> None:
    assert clouds() == ("aws", "azure", "gcp")
    offers = bundled_offers(["all"])
    assert len({offer.name for offer in offers}) == len(offers) > 80
    assert {offer.gpu for offer in offers} <= {gpu.id for gpu in list_gpus()}
    for offer in offers:
        assert offer.source
        assert (offer.per_hour is None) == (offer.date is None) == (offer.currency is None)


def test_a_cloud_is_asked_for_by_name() -> None:
    aws = {offer.name: offer for offer in bundled_offers(["AWS"])}
    assert aws["p5.48xlarge"].gpus == 8
    assert aws["p5.48xlarge"].per_hour == 55.04
    assert aws["p5.48xlarge"].date == "2026-07-20"
    assert aws["p5.48xlarge"].region == "us-east-1"
    assert {offer.cloud for offer in bundled_offers(["gcp", "azure"])} == {"gcp", "azure"}
    with pytest.raises(UnknownNameError, match="no machines of 'ibm'"):
        bundled_offers(["ibm"])


def test_a_file_wins_over_what_is_bundled_and_adds_its_own(tmp_path: Path) -> None:
    listed = read_prices(prices(tmp_path, HEAD + (
        "gpus:\n  L40S: 0.6\ninstances:\n"
        "  - {name: p5.48xlarge, per_hour: 31.5}\n"
        "  - {name: rack, gpu: H200, gpus: 8, per_hour: 20}\n"
    )))  # fmt: skip
    found = {offer.name: offer for offer in with_prices(bundled_offers(["aws"]), listed)}
    assert found["p5.48xlarge"].per_hour == 31.5
    assert found["p5.48xlarge"].gpu == "H100-SXM-80GB"
    assert found["p5.48xlarge"].source == "a contract"
    assert found["rack"] == Offer(
        name="rack", gpu="H200-SXM-141GB", gpus=8, per_hour=20.0, currency="USD",
        date="2026-11-01", source="a contract",
    )  # fmt: skip
    assert (found["L40S-48GB"].gpus, found["L40S-48GB"].per_hour) == (1, 0.6)
    assert not found["L40S-48GB"].whole
    assert found["g5.xlarge"].per_hour == 1.006


def test_prices_in_another_currency_are_not_compared(tmp_path: Path) -> None:
    text = HEAD + "currency: EUR\ninstances:\n  - {name: g5.xlarge, per_hour: 0.9}\n"
    listed = read_prices(prices(tmp_path, text))
    found = {offer.name: offer for offer in with_prices(bundled_offers(["aws"]), listed)}
    assert (found["g5.xlarge"].per_hour, found["g5.xlarge"].currency) == (0.9, "EUR")
    assert found["p5.48xlarge"].per_hour is None


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("gpus: {L4: 1}\n", "1:1", "not a price file"),
        (HEAD + "gpus:\n  L400: 3\n", "5:3", "No GPU is called 'L400'"),
        (HEAD + "gpu:\n  L4: 3\n", "4:1", "`gpu` is not a known key. Did you mean gpus?"),
        (HEAD + "gpus:\n  L4: -3\n", "5:3", "greater than 0"),
        (HEAD + "gpus:\n  L4: cheap\n", "5:3", "a valid number"),
        (HEAD + "instances:\n  - {name: rack, per_hour: 1}\n", "5:6", "not a bundled machine"),
        (HEAD + "instances:\n  - {name: r, per_hour: 1, gpu: X, gpus: 1}\n", "5:", "called 'X'"),
        (HEAD + "hours_per_month: 900\n", "4:1", "744"),
    ],
)
def test_mistakes_are_said_with_their_place(
    tmp_path: Path, text: str, place: str, said: str
) -> None:
    with pytest.raises(InputError) as raised:
        read_prices(prices(tmp_path, text))
    assert said in raised.value.message
    assert raised.value.location is not None
    assert f"prices.yaml:{place}" in f"{raised.value.location}"
    assert raised.value.hint
