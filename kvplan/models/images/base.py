"""What every rule for the tokens of an image has, and the one that needs no more."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

PositiveInt = Annotated[int, Field(gt=0)]
NaturalInt = Annotated[int, Field(ge=0)]


class ImageRule(BaseModel):
    """How a processor turns one image into tokens of the text model's context.

    Counted are the tokens that the processor puts in the image's place: those the tower fills,
    and the markers around and between them that are one token each. Line breaks and tags of
    several tokens are text.

    Attributes:
        source: Where the rule is stated.
        unstated: Settings of the processor that no file at hand states, with what stands in for
            them: its class's ``max_patches = 16``, or ``no largest image``.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    source: str
    unstated: tuple[str, ...] = ()

    def tokens(self, width: int, height: int) -> int:
        """Tokens of an image of ``width`` × ``height`` pixels.

        Raises:
            UsageError: the processor takes no image of that shape.
        """
        raise NotImplementedError

    def most(self) -> int | None:
        """Tokens that no image exceeds; None: there is no such figure at hand."""
        raise NotImplementedError


class FixedImage(ImageRule):
    """Every image takes the same number of tokens, whatever its size."""

    kind: Literal["fixed"] = "fixed"
    tokens_each: PositiveInt

    @override
    def tokens(self, width: int, height: int) -> int:
        return self.tokens_each

    @override
    def most(self) -> int:
        return self.tokens_each
