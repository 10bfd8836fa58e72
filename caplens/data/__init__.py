"""Samples, and reading and writing them."""

from caplens.data.reading import SampleFile, samples_by_system, with_images
from caplens.data.references import References, read_references
from caplens.data.sample import Sample
from caplens.data.writing import write_samples

__all__ = ["References", "Sample", "SampleFile", "read_references", "samples_by_system", "with_images", "write_samples"]
