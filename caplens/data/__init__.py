"""Samples, and reading and writing them."""

from caplens.data.reading import SampleFile, read_references, with_images, with_references
from caplens.data.sample import Sample
from caplens.data.writing import write_samples

__all__ = ["Sample", "SampleFile", "read_references", "with_images", "with_references", "write_samples"]
