"""Samples, references and media, and reading and writing them."""

from caplens.data.image_folder import with_images
from caplens.data.media import Frames, ImageSource, VideoSource
from caplens.data.reading import SampleFile, samples_by_system
from caplens.data.references import References, read_references
from caplens.data.sample import Rating, Sample
from caplens.data.writing import write_samples

__all__ = [
    "Frames",
    "ImageSource",
    "Rating",
    "References",
    "Sample",
    "SampleFile",
    "VideoSource",
    "read_references",
    "samples_by_system",
    "with_images",
    "write_samples",
]
