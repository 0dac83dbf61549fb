"""The verbs as a user calls them: checked, cut and put together, with no I/O of their own."""
