"""The dashboard: pages for people, made of the same handlers, tokens and rights as REST."""
