"""The reference pages: each is made from the code it tells of, and a test holds the two together."""
