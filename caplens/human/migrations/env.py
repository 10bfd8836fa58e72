"""What Alembic runs: the revisions, on the connection that `StudyDatabase` passes."""

from alembic import context

from caplens.human.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
