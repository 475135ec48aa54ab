"""Images of a request: their tokens are context, and a reason says how many."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.api import read_spec
from kvplan.errors import UsageError
from kvplan.models.images.base import FixedImage
from kvplan.models.images.resized import ResizedImage
from kvplan.models.spec import ModelSpec
from kvplan.planning.images import Images, tokens_each, with_images
from kvplan.planning.size import Load
from kvplan.sources.gpus import find_gpu

RULE = ResizedImage(unit=28, min_pixels=0, max_pixels=None, source="here", unstated=("no bound",))


@pytest.fixture(scope="module")
def model() -> ModelSpec:
    return read_spec("Qwen/Qwen2.5-VL-7B-Instruct", offline=True)


def test_tokens_of_an_image(model: ModelSpec) -> None:
    fixed = model.model_copy(update={"images": FixedImage(tokens_each=258, source="here")})
    resized = model.model_copy(update={"images": RULE})
    assert tokens_each(fixed, Images(count=2)) == 258
    assert tokens_each(resized, Images(count=2, size=(56, 280))) == 20
    assert tokens_each(resized, Images(count=2, size=(56, 280), tokens=7)) == 7


def test_what_is_missing_is_asked_for(model: ModelSpec) -> None:
    resized = model.model_copy(update={"images": RULE})
    with pytest.raises(UsageError, match="depend on its size") as error:
        tokens_each(resized, Images(count=1))
    assert "--image-size" in str(error.value.hint)
    unknown = model.model_copy(update={"images": None})
    with pytest.raises(UsageError, match="is not known for Qwen") as error:
        tokens_each(unknown, Images(count=1, size=(56, 56)))
    assert "--image-tokens" in str(error.value.hint)


def test_images_come_on_top_of_a_length_that_is_given(model: ModelSpec) -> None:
    images = Images(count=3, tokens=100)
    assert with_images(model, Load(context=1000, concurrency=2), images) == Load(1300, 2)
    for context in (None, "auto"):
        assert with_images(model, Load(context=context), images) == Load(context)
    assert with_images(model, Load(context=1000), Images()) == Load(1000)


def test_a_plan_with_images_is_one_of_the_sum(model: ModelSpec) -> None:
    rules = {"context": 8192, "concurrency": 4, "advice": False}
    gpu = find_gpu("H100-SXM-80GB")
    with_pictures = kvplan.size(model, gpu, images=4, image_size=(1920, 1080), **rules)
    plain = kvplan.size(model, gpu, **(rules | {"context": 8192 + 4 * 2691}))
    assert with_pictures.kv == plain.kv
    assert with_pictures.capacity == plain.capacity
    assert with_pictures.workload == plain.workload
    (reason,) = set(with_pictures.reasons) - set(plain.reasons)
    assert reason.code == "images"
    assert reason.message.startswith(
        "4 images of 1,920 × 1,080 pixels take 10,764 tokens of the 18,956: 2,691 each. Rule: vLLM"
    )


def test_one_image_by_its_tokens(model: ModelSpec) -> None:
    plan = kvplan.size(model, "H100", context=1000, images=1, image_tokens=24, advice=False)
    (reason,) = (reason for reason in plan.reasons if reason.code == "images")
    assert (reason.message, reason.hint) == ("1 image takes 24 tokens of the 1,024.", None)


def test_what_no_file_states_is_said(model: ModelSpec) -> None:
    unstated = model.model_copy(update={"images": RULE})
    plan = kvplan.size(unstated, "H100", context=1000, images=1, image_size=(28, 28), advice=False)
    (reason,) = (reason for reason in plan.reasons if reason.code == "images")
    assert reason.message == "1 image of 28 × 28 pixels takes 1 token of the 1,001. Rule: here."
    assert reason.hint == (
        "No preprocessor_config.json at hand states it otherwise, so: no bound."
        " --image-tokens overrides the rule."
    )


def test_without_a_length_the_images_are_in_the_models_own(model: ModelSpec) -> None:
    plan = kvplan.size(model, "H100", images=2, image_tokens=10, advice=False)
    assert plan.workload.context == model.max_context
    (reason,) = (reason for reason in plan.reasons if reason.code == "images")
    assert reason.message == "2 images take 20 tokens of the 128,000: 10 each."


@pytest.mark.parametrize(
    "arguments",
    [
        {"images": -1, "image_tokens": 1},
        {"images": 1.5, "image_tokens": 1},
        {"image_tokens": 5},
        {"image_size": (5, 5)},
        {"images": 1, "image_size": "5x5"},
        {"images": 1, "image_size": (5,)},
        {"images": 1, "image_size": (5, 0)},
        {"images": 1, "image_size": (5, 10**6)},
        {"images": 1, "image_tokens": 0},
        {"images": 10**6, "image_tokens": 1},
    ],
)
def test_bad_arguments(model: ModelSpec, arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError) as error:
        kvplan.size(model, "H100", context=1000, **arguments)  # type: ignore[arg-type]
    assert error.value.hint
