"""Samples, and reading and writing them."""

from caplens.data.reading import SampleFile, with_images
from caplens.data.references import References, read_references
from caplens.data.sample import Sample
from caplens.data.writing import write_samples

__all__ = ["References", "Sample", "SampleFile", "read_references", "with_images", "write_samples"]
