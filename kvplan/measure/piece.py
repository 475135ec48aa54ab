"""What is alive between two attentions: a piece of the compiled graph, and its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch.nn.functional import layer_norm


@dataclass(slots=True)
class Piece:
    """Buffers of a piece while it runs; the only object here that changes.

    Attributes:
        inputs: Attention's output and the residual stream that the piece was given: the caller
            holds them until the piece is through.
        entered: The (tokens, hidden) input of the next part, until that part takes it.
    """

    inputs: list[Any] = field(default_factory=list)
    entered: Any = None

    def enter(self, buffer: Any) -> None:
        """Hands the next part its input."""
        self.entered = buffer

    def take(self) -> Any:
        """The next part's input, which nothing else holds any more."""
        taken, self.entered = self.entered, None
        return taken

    def end(self) -> None:
        """Attention begins: the inputs are let go."""
        self.inputs.clear()


def normed(vectors: Any) -> Any:
    """A norm in one new buffer, as a fused kernel leaves it.

    torch's layer norm: RMS norm has no kernel of its own on every device, and needs as much.
    """
    return layer_norm(vectors, vectors.shape[-1:])
