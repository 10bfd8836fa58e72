"""How the database of a study became what it is: Alembic's revisions."""
