"""For tests of your own: simulator, faults, history checker, store conformance."""
