"""The language model that threads share."""

import time
from concurrent.futures import ThreadPoolExecutor

from caplens.text import identification


def test_threads_that_ask_at_once_open_the_model_once(monkeypatch):
    opened = []

    class Slow:
        def __init__(self):
            opened.append(self)
            time.sleep(0.05)

    monkeypatch.setattr(identification, "_Py3LangId", Slow)
    identification._opened_py3langid.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        models = set(pool.map(lambda _: identification.default_model(), range(8)))
    identification._opened_py3langid.cache_clear()
    assert models == set(opened)
    assert len(opened) == 1
