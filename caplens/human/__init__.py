"""People who judge and write captions: studies, the server they answer in, its database, and what their answers say."""
