"""`python -m fairway.cli`: the `fairway` script, for where that is not on the path."""

from fairway.cli.app import main

main()
