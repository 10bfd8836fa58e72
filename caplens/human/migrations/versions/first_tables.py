"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("owner_hash", sa.String(64), nullable=False),
        sa.Column("secret", sa.String(64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "images",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False, unique=True),
        sa.Column("path", sa.Text(), nullable=False),
    )
    op.create_table(
        "items",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("lang", sa.String(35), nullable=False),
        sa.Column("image_id", sa.Integer(), sa.ForeignKey("images.id"), nullable=False),
        sa.Column("sample_id", sa.Text(), nullable=False),
        sa.Column("captions", sa.JSON(), nullable=False),
        sa.Column("gold", sa.JSON()),
        sa.Column("is_gold", sa.Boolean(), nullable=False),
        sa.Column("pilot", sa.Boolean(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("load", sa.Integer(), nullable=False),
    )
    op.create_index("items_by_load", "items", ["lang", "load", "place"])
    op.create_table(
        "raters",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False, unique=True),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("langs", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
    )
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("item_id", sa.Integer(), sa.ForeignKey("items.id"), nullable=False),
        sa.Column("rater_id", sa.Integer(), sa.ForeignKey("raters.id"), nullable=False),
        sa.Column("repeat", sa.Boolean(), nullable=False),
        sa.Column("swapped", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("opened", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=False),
        sa.UniqueConstraint("item_id", "rater_id", "repeat", name="once_per_rater"),
    )
    op.create_index("assignments_by_rater", "assignments", ["rater_id", "state", "id"])
    op.create_index("assignments_by_expiry", "assignments", ["state", "expires"])
    op.create_table(
        "answers",
        sa.Column("assignment_id", sa.Integer(), sa.ForeignKey("assignments.id"), primary_key=True),
        sa.Column("step", sa.String(10), primary_key=True),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Float()),
        sa.Column("time", sa.Float(), nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
    )
