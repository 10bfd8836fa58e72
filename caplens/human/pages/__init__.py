"""What the study's server shows: templates, their texts in seven languages, a style sheet and a script."""
