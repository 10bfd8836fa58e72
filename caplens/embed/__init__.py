"""Images and texts become vectors, each once: the engine, and the store that keeps what it made."""

from caplens.embed.engine import Engine, open_engine
from caplens.embed.keys import Text
from caplens.embed.store import Store, default_store

__all__ = ["Engine", "Store", "Text", "default_store", "open_engine"]
