"""The pure queue: commands and the time in, replies and groups out."""
