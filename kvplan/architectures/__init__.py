"""From what is stated about a model to what it stores."""

from kvplan.architectures.quantization.whatif import WEIGHT_FORMATS, quantize
from kvplan.architectures.reader import read_model

__all__ = ["WEIGHT_FORMATS", "quantize", "read_model"]
