"""One module per family of promises; each check reads a history and returns the violations it can prove."""
