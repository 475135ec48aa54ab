"""Images in a request: they are tokens of its context, and the cache holds them like any other."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvplan.errors import UsageError
from kvplan.models.images.base import FixedImage
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan, Reason
from kvplan.planning.size import Load


@dataclass(frozen=True, slots=True)
class Images:
    """The images of one request, all alike.

    Attributes:
        count: How many; 0: none.
        size: Width and height in pixels, or None.
        tokens: Tokens of each, or None: the model's own rule tells.
    """

    count: int = 0
    size: tuple[int, int] | None = None
    tokens: int | None = None


def tokens_each(model: ModelSpec, images: Images) -> int:
    """Tokens of context that one image takes.

    Raises:
        UsageError: the model's rule is not known, needs a size that is not given, or takes no
            image of that size.
    """
    if images.tokens is not None:
        return images.tokens
    rule = model.images
    if rule is None:
        raise UsageError(
            f"How many tokens an image takes is not known for {model.id}: it takes none, or"
            " nothing at hand states the rule.",
            hint="Give the tokens of an image: --image-tokens 1024.",
        )
    if images.size is not None:
        return rule.tokens(*images.size)
    if isinstance(rule, FixedImage):
        return rule.tokens_each
    raise UsageError(
        f"The tokens of an image depend on its size for {model.id}.",
        hint="Give width and height in pixels: --image-size 1024x768.",
    )


def with_images(model: ModelSpec, load: Load, images: Images) -> Load:
    """The load with the images' tokens on top of a length that is given.

    The model's own maximum, and the longest that fits, are lengths with images and all.

    Raises:
        UsageError: see `tokens_each`.
    """
    if images.count == 0:
        return load
    tokens = images.count * tokens_each(model, images)
    if not isinstance(load.context, int):
        return load
    return replace(load, context=load.context + tokens)


def with_image_note(plan: Plan, model: ModelSpec, images: Images) -> Plan:
    """The plan, with a reason that says what the images take and what that rests on."""
    if images.count == 0:
        return plan
    each = tokens_each(model, images)
    rule = model.images if images.tokens is None else None
    shape = "" if images.size is None else f" of {images.size[0]:,} × {images.size[1]:,} pixels"
    all_tokens = images.count * each
    of_all = f" of the {plan.workload.context:,}" if plan.workload.context else ""
    words = "1 token" if all_tokens == 1 else f"{all_tokens:,} tokens"
    message = f"{images.count:,} images{shape} take {words}{of_all}: {each:,} each."
    if images.count == 1:
        message = f"1 image{shape} takes {words}{of_all}."
    reason = Reason(
        code="images",
        message=f"{message} Rule: {rule.source}." if rule else message,
        hint=_unstated(rule.unstated) if rule else None,
    )
    return plan.model_copy(update={"reasons": (*plan.reasons, reason)})


def _unstated(settings: tuple[str, ...]) -> str | None:
    if not settings:
        return None
    return (
        f"No preprocessor_config.json at hand states it otherwise, so: {', '.join(settings)}."
        " --image-tokens overrides the rule."
    )
