"""Workers: processes that reserve chunks, run a function on each, and tell what became of them."""
