"""The `fairway` command."""
