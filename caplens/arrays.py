"""Names for the kinds of arrays that travel between rooms."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Vectors = NDArray[np.float32]
"""A row for each item, of length one."""
