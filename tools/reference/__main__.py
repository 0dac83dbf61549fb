"""Write the pages of docs/reference anew: `python -m tools.reference`; `make docs` does it first."""

from __future__ import annotations

from tools.reference.pages import FOLDER, PAGES


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, made in PAGES.items():
        text = made()
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"docs/reference/{name} is new")


if __name__ == "__main__":
    main()
