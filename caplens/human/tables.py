"""The tables of a study's database. Their history is in `migrations/`."""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("settings", JSON, nullable=False),
    Column("state", String(10), nullable=False),
    Column("owner_hash", String(64), nullable=False),
    Column("secret", String(64), nullable=False),
    Column("created", Float, nullable=False),
)
"""One row. The owner's token is not kept, only its hash; the secret signs forms."""

images = Table(
    "images",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("path", Text, nullable=False),
)

items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("lang", String(35), nullable=False),
    Column("image_id", Integer, ForeignKey("images.id"), nullable=False),
    Column("sample_id", Text, nullable=False),
    Column("captions", JSON, nullable=False),
    Column("gold", JSON),
    Column("is_gold", Boolean, nullable=False),
    Column("pilot", Boolean, nullable=False),
    Column("place", Integer, nullable=False),
    Column("load", Integer, nullable=False, default=0),
    Index("items_by_load", "lang", "load", "place"),
)
"""What one person judges at a time: a caption, two, or an image to be described.

`captions` is a list of {system, id, caption}; `gold` the answers that are right, where they are known; `place` a random order;
`load` how many people have answered the item or have it open.
"""

raters = Table(
    "raters",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("langs", JSON, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("created", Float, nullable=False),
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item_id", Integer, ForeignKey("items.id"), nullable=False),
    Column("rater_id", Integer, ForeignKey("raters.id"), nullable=False),
    Column("repeat", Boolean, nullable=False),
    Column("swapped", Boolean, nullable=False),
    Column("state", String(10), nullable=False),
    Column("batch", Integer, nullable=False),
    Column("opened", Float, nullable=False),
    Column("expires", Float, nullable=False),
    UniqueConstraint("item_id", "rater_id", "repeat", name="once_per_rater"),
    Index("assignments_by_rater", "rater_id", "state", "id"),
    Index("assignments_by_expiry", "state", "expires"),
)
"""Who has which item: `leased` until it expires, then `expired`, or `done`. `swapped` puts the second caption on the left."""

answers = Table(
    "answers",
    metadata,
    Column("assignment_id", Integer, ForeignKey("assignments.id"), primary_key=True),
    Column("step", String(10), primary_key=True),
    Column("value", JSON, nullable=False),
    Column("seconds", Float),
    Column("time", Float, nullable=False),
)
"""`step` is the task; of `write` there are two, `rate` and `write`."""

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("time", Float, nullable=False),
    Column("actor", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("detail", JSON, nullable=False),
)
"""All that happened, for the audit: who opened, answered, changed, undid, and what the owner did."""
