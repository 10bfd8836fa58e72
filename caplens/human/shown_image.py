"""Images as pages show them: JPEG that any browser knows, without what the file says about place and camera."""

import io

from caplens.embed.images import opened

_QUALITY = 88


def as_jpeg(path: str, side: int) -> bytes:
    """The image at most `side` pixels wide and high.

    Raises
    ------
    UnreadableError
        If it is no image that can be opened.
    """
    out = io.BytesIO()
    with opened(path) as image:
        image.thumbnail((side, side))
        image.save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
