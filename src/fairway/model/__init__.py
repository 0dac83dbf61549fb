"""The nouns of Fairway: frozen values, with no behaviour beyond their own sense."""
