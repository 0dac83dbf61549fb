"""The ring: messages between processes through shared memory, which survive the death of any of them."""
